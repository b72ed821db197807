// Runs statements one after the other and shows what comes of them, rows as they come.

import { execute, printed, rows } from "/page/api.js";
import { byId, element, panel, shown, table } from "/page/dom.js";
import { refresh, typeText } from "/page/model.js";
import { statements, words } from "/page/sql.js";

const KEPT_ROWS = 1000;
const { body, count, note } = panel("results");
const stop = byId("stop");

// What SET and DEFINE said; a server keeps nothing between requests.
const session = { properties: {}, variables: {} };
let running = null;

stop.addEventListener("click", () => running?.abort());

function settings() {
  const earliest = byId("earliest").checked ? { "auto.offset.reset": "earliest" } : {};
  return { properties: { ...earliest, ...session.properties }, variables: session.variables };
}

const literal = (text) => text.slice(1, -1).replace(/''/g, "'");

// Statements about the session itself, by their first word.
const OWN = {
  SET: ([, name, , value]) => { session.properties[literal(name)] = literal(value); },
  UNSET: ([, name]) => { delete session.properties[literal(name)]; },
  DEFINE: ([, name, , value]) => { session.variables[name] = literal(value); },
  UNDEFINE: ([, name]) => { delete session.variables[name]; },
};

export async function run(text) {
  running?.abort();
  const mine = (running = new AbortController());
  body.replaceChildren();
  count.textContent = note.textContent = "";
  stop.hidden = false;
  try {
    for (const statement of statements(text)) {
      if (mine.signal.aborted) break;
      await one(statement, mine.signal);
    }
  } catch (error) {
    if (error.name === "AbortError") note.textContent = "stopped";
    else failed(error);
  }
  if (running === mine) { stop.hidden = true; running = null; }
  refresh();
}

async function one(statement, signal) {
  const said = words(statement);
  const verb = said[0].toUpperCase();
  note.textContent = "running …";
  if (verb === "SELECT") await select(statement, signal);
  else if (verb === "PRINT") await print(statement, signal);
  else if (OWN[verb]) { OWN[verb](said); message(statement, "Holds for this page."); }
  else for (const entity of await execute(statement, settings())) answer(entity);
  if (note.textContent === "running …") note.textContent = "";
}

function failed(error) {
  error.entities?.forEach(answer);
  note.textContent = "failed";
  body.append(element("div", { className: "answer" },
    element("p", { className: "bad", textContent: error.message })));
  body.lastChild.scrollIntoView({ block: "nearest" });
}

function message(said, text) {
  body.append(element("div", { className: "answer" },
    element("p", { className: "said", textContent: said.replace(/\s+/g, " ") }),
    element("p", { textContent: text })));
}

// ------------------------------------------------------------------------------------- rows

async function select(statement, signal) {
  let target = null, total = 0, ending = "ended";
  const began = performance.now();
  for await (const batch of rows(statement, settings(), signal)) {
    const drawn = [];
    for (const part of batch) {
      if (part.header) body.append(target = grid(part.header.schema));
      else if (part.row) drawn.push(line(part.row));
      else if (part.finalMessage) ending = part.finalMessage;
      else if (part.errorMessage) throw new Error(part.errorMessage.message);
    }
    if (!drawn.length) { if (target && !total) note.textContent = "waiting for rows"; continue; }
    total += drawn.length;
    append(target.tBodies[0], drawn);
    count.textContent = total > KEPT_ROWS ? `${total} rows, the last ${KEPT_ROWS} shown` : `${total} rows`;
    const seconds = (performance.now() - began) / 1000;
    note.textContent = `streaming, ${(total / Math.max(seconds, 1)).toFixed(1)} rows/s`;
  }
  note.textContent = ending;
}

// Stays at the end if that is where one looks.
function append(target, drawn) {
  const atEnd = body.scrollTop + body.clientHeight >= body.scrollHeight - 30;
  target.append(...drawn.slice(-KEPT_ROWS));
  while (target.children.length > KEPT_ROWS) target.firstChild.remove();
  if (atEnd) body.scrollTop = body.scrollHeight;
}

// The columns of a schema text such as `ID` STRING KEY, `A` ARRAY<INTEGER>.
function columns(schema) {
  const found = [];
  let depth = 0, quoted = false, start = 0;
  [...schema, ","].forEach((character, index) => {
    if (character === "`") quoted = !quoted;
    else if (quoted) return;
    else if ("<(".includes(character)) depth += 1;
    else if (">)".includes(character)) depth -= 1;
    else if (character === "," && depth === 0) {
      const [, name, type] = /^`((?:[^`]|``)*)` (.*)$/.exec([...schema].slice(start, index).join("").trim());
      found.push({ name, type });
      start = index + 1;
    }
  });
  return found;
}

const NUMBERS = /^(INTEGER|BIGINT|DOUBLE|DECIMAL)/;
let aligned = [];

function grid(schema) {
  const heads = columns(schema);
  aligned = heads.map(({ type }) => (NUMBERS.test(type) ? "number" : ""));
  return table(heads.map(({ name, type }, index) =>
    element("th", { className: aligned[index], title: type }, name,
      element("small", { textContent: type.length < 24 ? type.toLowerCase() : type.split("<")[0].toLowerCase() }))));
}

function line({ columns: values, tombstone }) {
  return element("tr", { className: tombstone ? "gone" : "" }, ...values.map((value, index) => {
    const text = shown(value);
    const missing = value === null ? " null" : "";
    return element("td", { textContent: text, title: text.length > 40 ? text : "",
      className: aligned[index] + missing });
  }));
}

async function print(statement, signal) {
  const target = table(["Record"]);
  body.append(target);
  let total = 0;
  for await (const batch of printed(statement, settings(), signal)) {
    total += batch.length;
    append(target.tBodies[0], batch.map((text) =>
      element("tr", {}, element("td", { textContent: text, className: "wide" }))));
    count.textContent = `${total} lines`;
    note.textContent = "printing";
  }
  note.textContent = "ended";
}

// ---------------------------------------------------------------------------------- answers

// How a kind of entity is told; all others are a table of what they list.
const TOLD = {
  currentStatus: (e) => e.commandStatus.message,
  warning_entity: (e) => e.message,
  terminate_query: (e) => `Query ${e.queryId} terminated.`,
  sourceDescription: (e) => fields(e.sourceDescription),
  queryDescription: (e) => element("pre", { textContent: e.queryDescription.executionPlan }),
};

function answer(entity) {
  const told = TOLD[entity["@type"]]?.(entity) ?? listed(entity);
  const shownAs = told instanceof Node ? told : element("p", { textContent: told });
  body.append(element("div", { className: "answer" },
    element("p", { className: "said", textContent: (entity.statementText || "").replace(/\s+/g, " ") }), shownAs));
  for (const { message: text } of entity.warnings || []) {
    body.lastChild.append(element("p", { className: "said", textContent: text }));
  }
}

const cells = (values) => element("tr", {}, ...values.map((value) =>
  element("td", { textContent: shown(value), title: shown(value) })));

function fields(description) {
  return table(["Column", "Type", ""], description.fields.map((field) =>
    cells([field.name, typeText(field.schema),
      field.type ? field.type.toLowerCase() + (field.headerKey ? ` ${field.headerKey}` : "") : ""])));
}

function listed(entity) {
  const list = Object.values(entity).find((value) =>
    Array.isArray(value) && value.length && typeof value[0] === "object" && value !== entity.warnings);
  if (!list) {
    const { "@type": _, statementText, warnings, ...rest } = entity;
    return JSON.stringify(rest, null, 2);
  }
  const heads = Object.keys(list[0]).filter((name) => typeof list[0][name] !== "object");
  return table(heads, list.map((item) => cells(heads.map((name) => item[name]))));
}

