// Running queries: state, how fast they read, how far they are behind.

import { execute } from "/page/api.js";
import { element, number, panel, STATES, svg, table } from "/page/dom.js";

const { body, count } = panel("queries");
let opened = null; // the query that is told more of, and what
let current = [];

export function show({ queries }) {
  current = queries;
  count.textContent = queries.length || "";
  if (!queries.length) {
    body.replaceChildren(element("p", { className: "empty",
      textContent: "None run. CREATE STREAM … AS SELECT starts one." }));
    return;
  }
  const right = (text) => element("th", { textContent: text, className: "number" });
  const sorted = [...queries].sort((a, b) => a.id.localeCompare(b.id));
  body.replaceChildren(table(["Query", "State", right("Rows/s"), "", right("Lag")],
    sorted.flatMap((query) => (opened?.id === query.id ? [row(query), detail(query)] : [row(query)]))));
}

function row(query) {
  const made = element("tr", { title: query.sql },
    element("td", { className: "id", textContent: query.id }),
    element("td", {}, element("span", { className: `state ${STATES[query.state] || ""}`,
      textContent: query.type === "PUSH" ? "push" : query.state.toLowerCase() })),
    element("td", { className: "number", textContent: number(query.rate) }),
    element("td", {}, curve(query.rates)),
    element("td", { className: "number", textContent: number(query.lag) }));
  made.addEventListener("click", () => (opened?.id === query.id ? close() : look(query)));
  return made;
}

function curve(rates) {
  const most = Math.max(...rates, 1);
  const points = rates.map((rate, index) => `${72 - (rates.length - index) * 1.2},${15 - (rate / most) * 13}`).join(" ");
  return svg("svg", { width: 72, height: 16, "aria-hidden": "true" }, svg("polyline", { points }));
}

function close() {
  opened = null;
  show({ queries: current });
}

export async function look({ id }) {
  opened = { id, errors: [] };
  show({ queries: current });
  try {
    const [told] = await execute(`EXPLAIN ${id};`);
    if (opened?.id !== id) return;
    opened = { id, errors: told.queryDescription.queryErrors || [] };
  } catch (error) {
    opened = { id, errors: [{ errorMessage: error.message }] };
  }
  show({ queries: current });
}

function detail(query) {
  const errors = opened.errors.map(({ errorMessage }) =>
    element("pre", { className: "bad", textContent: errorMessage }));
  const cell = element("td", { colSpan: 5 }, element("pre", { textContent: query.sql }), ...errors);
  return element("tr", { className: "detail" }, cell);
}
