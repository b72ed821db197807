// Running queries: state, how fast they read, how far they are behind.

import { execute } from "/page/api.js";
import { element, number, panel, STATES, svg, table } from "/page/dom.js";
import { refresh } from "/page/model.js";

const { body, count } = panel("queries");
const right = (text) => element("th", { textContent: text, className: "number" });
const grid = table(["Query", "State", right("Rows/s"), "", right("Lag")]);
const rows = new Map(); // by query; they stay where they are, so that a click meets its row
let opened = null; // the query that is told more of, and the row that does it
let current = [];

export function show({ queries }) {
  current = queries;
  count.textContent = queries.length || "";
  if (!queries.length) {
    body.replaceChildren(element("p", { className: "empty",
      textContent: "None run. CREATE STREAM … AS SELECT starts one." }));
    return;
  }
  if (!grid.isConnected) body.replaceChildren(grid);
  const sorted = [...queries].sort((a, b) => a.id.localeCompare(b.id));
  const wanted = sorted.flatMap((query) =>
    opened?.id === query.id ? [updated(query), opened.row] : [updated(query)]);
  const target = grid.tBodies[0];
  const same = wanted.length === target.children.length
    && wanted.every((row, index) => row === target.children[index]);
  if (!same) target.replaceChildren(...wanted);
}

function updated(query) {
  if (!rows.has(query.id)) rows.set(query.id, made(query));
  const [, state, rate, course, lag] = rows.get(query.id).cells;
  const [mark] = state.children;
  mark.className = `state ${STATES[query.state] || ""}`;
  mark.title = query.reason;
  mark.textContent = query.type === "PUSH" ? "push" : query.state.toLowerCase();
  rate.textContent = number(query.rate);
  lag.textContent = number(query.lag);
  course.replaceChildren(curve(query.rates));
  return rows.get(query.id);
}

function made({ id, sql }) {
  const row = element("tr", { title: sql },
    element("td", { className: "id", textContent: id }),
    element("td", {}, element("span")),
    element("td", { className: "number" }),
    element("td"),
    element("td", { className: "number" }));
  row.addEventListener("click", () => (opened?.id === id ? close() : look({ id })));
  return row;
}

function curve(rates) {
  const most = Math.max(...rates, 1);
  const points = rates.map((rate, index) =>
    `${72 - (rates.length - index) * 1.2},${15 - (rate / most) * 13}`).join(" ");
  return svg("svg", { width: 72, height: 16, "aria-hidden": "true" }, svg("polyline", { points }));
}

function close() {
  opened = null;
  show({ queries: current });
}

// What can be done with a query; only the last of it has no way back.
function actions(query) {
  const does = (verb, sure) => {
    const button = element("button", { className: "quiet", textContent: verb.toLowerCase() });
    button.addEventListener("click", async () => {
      if (sure && !confirm(`${verb} ${query.id}?`)) return;
      try {
        await execute(`${verb} ${query.id};`);
        close();
      } catch (error) {
        told([error.message]);
      }
      refresh();
    });
    return button;
  };
  const persistent = query.type !== "PUSH";
  return element("div", {}, ...(persistent ? [does(query.state === "PAUSED" ? "RESUME" : "PAUSE")] : []),
    does("TERMINATE", persistent));
}

const told = (messages) => opened?.row.cells[0].append(...messages.map((text) =>
  element("pre", { className: "bad", textContent: text })));

// Shows a query's statement and, once they are known, its failures.
export async function look({ id }) {
  const query = current.find((one) => one.id === id);
  const cell = element("td", { colSpan: 5 }, element("pre", { textContent: query.sql }), actions(query));
  opened = { id, row: element("tr", { className: "detail" }, cell) };
  show({ queries: current });
  if (query.type === "PUSH") return;
  try {
    const [answer] = await execute(`EXPLAIN ${id};`);
    if (opened?.id === id) told((answer.queryDescription.queryErrors || []).map((one) => one.errorMessage));
  } catch (error) {
    if (opened?.id === id) told([error.message]);
  }
}
