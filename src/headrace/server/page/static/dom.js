// Elements, and the few ways in which the page writes values.

export const byId = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A panel's parts: its body, and the count and the note in its heading.
export function panel(id) {
  const section = byId(id);
  const find = (name) => section.querySelector(name);
  return { section, body: find(".body"), count: find(".count"), note: find(".note") };
}

export function table(heads, rows = []) {
  const cells = heads.map((head) => (head instanceof Node ? head : element("th", { textContent: head })));
  return element("table", {},
    element("thead", {}, element("tr", {}, ...cells)),
    element("tbody", {}, ...rows));
}

// A value in a cell: texts as they are, everything else as JSON.
export function shown(value) {
  if (value === null || value === undefined) return "null";
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function number(value) {
  if (value === null || value === undefined) return "";
  if (value >= 1e6) return (value / 1e6).toFixed(1) + " M";
  if (value >= 1e4) return (value / 1e3).toFixed(1) + " k";
  return value >= 10 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

export const STATES = { RUNNING: "good", PAUSED: "warn", ERROR: "bad", UNRESPONSIVE: "bad", DEGRADED: "bad" };
