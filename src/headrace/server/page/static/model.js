// What the server has, asked for again and again: sources, queries, how far each has read.

import { execute, info } from "/page/api.js";

const EVERY = 2000; // milliseconds from one answer to the next question, at least
const REST = 4; // times as long as the answer took: a server with much to tell is asked less often
const WINDOW = 10_000; // over which a rate is counted
const KEPT = 60; // rates, for the little curve

export const known = { sources: [], queries: [], functions: [], server: null };
const listeners = [];
const progress = new Map(); // by query: samples { at, read }, and rates
let timer = null;

export const onChange = (listener) => listeners.push(listener);

export function typeText(schema) {
  const { type, fields, memberSchema, parameters } = schema;
  if (type === "ARRAY") return `ARRAY<${typeText(memberSchema)}>`;
  if (type === "MAP") return `MAP<STRING, ${typeText(memberSchema)}>`;
  if (type === "STRUCT") return `STRUCT<${fields.map((f) => `${f.name} ${typeText(f.schema)}`).join(", ")}>`;
  if (type === "DECIMAL" && parameters) return `DECIMAL(${parameters.precision}, ${parameters.scale})`;
  return type;
}

function sourceOf(description) {
  const columns = description.fields.map((field) => ({
    name: field.name,
    type: typeText(field.schema),
    mark: field.type === "KEY" ? (description.type === "TABLE" ? "PRIMARY KEY" : "KEY")
      : field.type === "HEADER" ? (field.headerKey ? `HEADER('${field.headerKey}')` : "HEADERS") : "",
  }));
  return {
    name: description.name, type: description.type, topic: description.topic,
    format: description.valueFormat, partitions: description.partitions, columns,
    statement: description.statement, total: description.topicRecords ?? null,
    readers: description.readQueries.map((query) => query.id),
    writers: description.writeQueries.map((query) => query.id),
    offsets: description.queryOffsetSummaries || [],
  };
}

// How far a query is behind, and how fast it reads, from where it stands in its topics.
function measure(query, sources) {
  let read = null, lag = 0;
  for (const source of sources) {
    for (const group of source.offsets) {
      if (!group.groupId.endsWith(`query_${query.id}`)) continue;
      for (const topic of group.topicSummaries) {
        for (const partition of topic.offsets) {
          read = (read ?? 0) + partition.consumerOffset;
          lag += Math.max(0, partition.logEndOffset - partition.consumerOffset);
        }
      }
    }
  }
  const now = performance.now();
  const seen = progress.get(query.id) || { samples: [], rates: [] };
  progress.set(query.id, seen);
  if (read === null) return { ...query, rate: null, lag: null, rates: seen.rates };
  seen.samples = [...seen.samples.filter((sample) => now - sample.at < WINDOW), { at: now, read }];
  const [first] = seen.samples;
  const rate = now > first.at ? Math.max(0, ((read - first.read) * 1000) / (now - first.at)) : 0;
  seen.rates = [...seen.rates, rate].slice(-KEPT);
  return { ...query, rate, lag, rates: seen.rates };
}

function queryOf(told, sources, warnings) {
  const failing = warnings.find(({ message }) => message.startsWith(`Query ${told.id} is `));
  return measure({
    reason: failing ? failing.message : "",
    id: told.id, sql: told.queryString, type: told.queryType,
    state: Object.keys(told.statusCount)[0] || told.state, // `state` does not know PAUSED
    sinks: told.sinks || [],
    sources: sources.filter((source) => source.readers.includes(told.id)).map((source) => source.name),
  }, sources);
}

async function look() {
  const [streams, tables, queries] = await execute(
    "SHOW STREAMS EXTENDED; SHOW TABLES EXTENDED; SHOW QUERIES;");
  known.sources = [...streams.sourceDescriptions, ...tables.sourceDescriptions].map(sourceOf);
  known.queries = queries.queries.map((query) => queryOf(query, known.sources, queries.warnings));
  known.server ??= await info();
}

export async function refresh() {
  clearTimeout(timer);
  const asked = performance.now();
  let failure = null;
  try { await look(); } catch (error) { failure = error; }
  for (const listener of listeners) listener(known, failure);
  const pause = Math.max(EVERY, REST * (performance.now() - asked));
  timer = setTimeout(() => (document.hidden ? wait() : refresh()), pause);
}

// A page that nobody looks at asks nothing.
function wait() {
  document.addEventListener("visibilitychange", () => refresh(), { once: true });
}

export async function learnFunctions() {
  const [told] = await execute("SHOW FUNCTIONS;");
  known.functions = told.functions.map((one) => one.name);
}
