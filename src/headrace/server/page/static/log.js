// The processing log: one line for each record that failed, as it fails.

import { printed } from "/page/api.js";
import { byId, element, panel, table } from "/page/dom.js";

const KEPT = 500;
const { body, count } = panel("log");
const filter = byId("filter");
let following = null; // the topic that is printed
let entries = [];
let total = 0;
const open = new Set();

filter.addEventListener("input", draw);

// Follows the topic of the log once the server has one. PRINT costs no streaming query.
export function show({ sources }) {
  const source = sources.find((one) => /processing_log$/i.test(one.topic));
  if (!source) {
    if (!following) body.replaceChildren(element("p", { className: "empty", textContent: "This server keeps none." }));
    return;
  }
  if (following) return;
  following = source.topic;
  draw();
  follow().catch(() => { following = null; }); // looked for again with the next answer
}

async function follow() {
  entries = [];
  total = 0;
  const sql = `PRINT '${following.replace(/'/g, "''")}' FROM BEGINNING;`;
  for await (const batch of printed(sql, {})) {
    const found = batch.map(entry).filter(Boolean);
    if (!found.length) continue;
    total += found.length;
    entries = [...found.reverse(), ...entries].slice(0, KEPT);
    draw();
  }
  following = null;
}

const DETAILS = ["deserializationError", "recordProcessingError", "productionError", "serializationError", "kafkaStreamsThreadError"];

// An entry from a line of PRINT: … value: {…}, partition: 0
function entry(line) {
  const start = line.indexOf("value: {");
  if (start < 0) return null;
  try {
    const record = JSON.parse(line.slice(start + 7, line.lastIndexOf("}") + 1));
    const kind = DETAILS.find((name) => record.message?.[name]);
    const { recordB64, ...detail } = (kind ? record.message[kind] : record.message) || {};
    if (recordB64) detail.record = decoded(recordB64);
    return { at: record.time, logger: record.logger || "", kind, detail };
  } catch {
    return null;
  }
}

const queryOf = (logger) => logger.replace(/^processing\./, "").split(".")[0];

function decoded(base64) {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
  } catch {
    return base64;
  }
}

function draw() {
  count.textContent = total > KEPT ? `${total}, the last ${KEPT} shown` : total || "";
  const wanted = filter.value.toLowerCase();
  const found = entries.filter((one) => !wanted || JSON.stringify(one).toLowerCase().includes(wanted));
  if (!found.length) {
    body.replaceChildren(element("p", { className: "empty",
      textContent: entries.length ? "No entry matches." : "Empty: no record has failed." }));
    return;
  }
  body.replaceChildren(table(["Time", "Query", "What"],
    found.flatMap((one) => (open.has(one) ? [row(one), detail(one)] : [row(one)]))));
}

function row(one) {
  const moment = new Date(Number(one.at));
  const made = element("tr", {},
    element("td", { className: "at", title: moment.toISOString(), textContent: moment.toLocaleTimeString("en-GB") }),
    element("td", { className: "mono", textContent: queryOf(one.logger), title: one.logger }),
    element("td", { textContent: one.detail.errorMessage || one.kind || "",
      title: one.detail.errorMessage || "" }));
  made.addEventListener("click", () => { open.has(one) ? open.delete(one) : open.add(one); draw(); });
  return made;
}

function detail(one) {
  const lines = Object.entries({ logger: one.logger, kind: one.kind, ...one.detail })
    .filter(([, value]) => value !== null && value !== undefined && !(Array.isArray(value) && !value.length))
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return element("tr", { className: "detail" },
    element("td", { colSpan: 3 }, element("pre", { textContent: lines.join("\n") })));
}
