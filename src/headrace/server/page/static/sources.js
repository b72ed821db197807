// The list of streams and tables with their columns.

import { element, number, panel } from "/page/dom.js";
import { quoted } from "/page/sql.js";

const { body, count } = panel("sources");
const closed = new Set();
const open = new Set();
const FEW = 3; // that many show their columns by themselves
let last = "";

export function show({ sources }, insert) {
  const now = JSON.stringify(sources.map(({ name, columns, total, type }) => [name, columns, total, type]));
  if (now === last) return; // what did not change is not touched: someone may be reading it
  last = now;
  count.textContent = sources.length || "";
  if (!sources.length) {
    body.replaceChildren(element("p", { className: "empty", textContent: "None yet. CREATE STREAM makes one." }));
    return;
  }
  const sorted = [...sources].sort((a, b) => a.name.localeCompare(b.name));
  body.replaceChildren(...sorted.map((source) => entry(source, sources.length <= FEW, insert)));
}

function entry(source, few, insert) {
  const kind = source.type.toLowerCase();
  const made = element("details", { open: open.has(source.name) || (few && !closed.has(source.name)) },
    element("summary", { title: source.statement },
      element("span", { className: "name", textContent: source.name }),
      element("span", { className: `kind ${kind}`, textContent: kind }),
      element("span", { className: "kind number", textContent: number(source.total) })),
    element("div", { className: "topic",
      textContent: `${source.topic} · ${source.format} · ${source.partitions} partition${source.partitions === 1 ? "" : "s"}` }),
    element("dl", {}, ...source.columns.map((column) => {
      const row = element("div", { title: `${column.type} ${column.mark}`.trim() },
        element("dt", {}, column.name, column.mark ? element("b", { textContent: column.mark }) : null),
        element("dd", { textContent: column.type }));
      row.addEventListener("click", () => insert(quoted(column.name)));
      return row;
    })));
  made.dataset.name = source.name;
  made.querySelector("summary").addEventListener("click", () => {
    (made.open ? closed : open).add(source.name); // as it is before the click takes effect
    (made.open ? open : closed).delete(source.name);
  });
  return made;
}

// Opens a source and brings it into view.
export function reveal(name) {
  const found = [...body.children].find((child) => child.dataset.name === name);
  if (found) { found.open = true; found.scrollIntoView({ block: "nearest" }); }
}
