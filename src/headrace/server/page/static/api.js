// The REST API, as far as the page needs it.

const JSON_TYPE = "application/json";
const ROWS = "application/vnd.ksql.v1+json";
const LINES = "application/vnd.ksqlapi.delimited.v1";

export class Refused extends Error {
  constructor(status, body) {
    super(body?.message || `The server answered ${status}.`);
    this.entities = body?.entities || [];
  }
}

// Numbers that JavaScript cannot hold stay the text that the server sent.
function exact(_, value, context) {
  if (typeof value !== "number" || context?.source === undefined || !JSON.rawJSON) return value;
  return String(value) === context.source ? value : JSON.rawJSON(context.source);
}

export const parse = (text) => JSON.parse(text, exact);

// Whole addresses: a page that was opened with a password in its address has no relative ones.
async function post(path, body, accept, signal) {
  const response = await fetch(location.origin + path, {
    method: "POST",
    headers: { "content-type": JSON_TYPE, accept },
    body: JSON.stringify(body),
    signal,
  });
  if (response.ok) return response;
  const text = await response.text();
  let told;
  try { told = JSON.parse(text); } catch { told = { message: text }; }
  throw new Refused(response.status, told);
}

export async function info() {
  const response = await fetch(location.origin + "/info", { headers: { accept: JSON_TYPE } });
  if (!response.ok) throw new Refused(response.status);
  return (await response.json()).KsqlServerInfo;
}

// The answers to statements that are neither SELECT nor PRINT, one entity each.
export async function execute(sql, { properties = {}, variables = {} } = {}) {
  const body = { ksql: sql, streamsProperties: properties, sessionVariables: variables };
  return parse(await (await post("/ksql", body, JSON_TYPE)).text());
}

async function* lines(sql, { properties = {}, variables = {} }, accept, signal) {
  const body = { sql, properties, sessionVariables: variables };
  const response = await post("/query-stream", body, accept, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const parts = (rest + (value || "")).split("\n");
    rest = done ? "" : parts.pop();
    const full = parts.filter((line) => line.trim());
    if (full.length) yield full; // all that came at once, so that it is drawn at once
    if (done) return;
  }
}

// The rows of a query in batches of objects: header, row, finalMessage or errorMessage.
export async function* rows(sql, session, signal) {
  for await (const batch of lines(sql, session, ROWS, signal)) {
    yield batch
      .map((line) => line.slice(line.indexOf("{"), line.lastIndexOf("}") + 1))
      .filter(Boolean)
      .map(parse);
  }
}

// The lines of PRINT, in batches.
export const printed = (sql, session, signal) => lines(sql, session, LINES, signal);
