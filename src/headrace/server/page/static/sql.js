// The language as an editor sees it: tokens, statements, what may stand at the cursor.

const TOKEN = new RegExp(
  [
    "(?<space>\\s+)",
    "(?<comment>--[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$))",
    "(?<string>'(?:[^']|'')*(?:'|$))",
    "(?<quoted>`(?:[^`]|``)*(?:`|$)|\"(?:[^\"]|\"\")*(?:\"|$))",
    "(?<variable>\\$\\{[^}]*\\}?)",
    "(?<number>\\d+(?:\\.\\d*)?(?:[eE][+-]?\\d+)?)",
    "(?<word>[A-Za-z_][A-Za-z0-9_@]*)",
    "(?<symbol>[\\s\\S])",
  ].join("|"),
  "g",
);

let keywords = new Set();
let reserved = new Set();
export function learn(words) {
  reserved = new Set(words.reserved);
  keywords = new Set([...words.reserved, ...words.others]);
}

// Words that may also be names count as keywords where they are written like ones.
const isKeyword = (word) => keywords.has(word) || reserved.has(word.toUpperCase());

export function tokens(text) {
  return Array.from(text.matchAll(TOKEN), (match) => {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    return { kind: kind === "word" && isKeyword(match[0]) ? "keyword" : kind, text: match[0], start: match.index,
      end: match.index + match[0].length };
  });
}

const PLAIN = new Set(["space", "comment"]);

// The statements of a text, each from its first word to its semicolon.
export function statements(text) {
  const found = [];
  let start = null;
  for (const token of tokens(text)) {
    if (start === null && PLAIN.has(token.kind)) continue;
    start ??= token.start;
    if (token.text === ";" && token.kind === "symbol") {
      found.push(text.slice(start, token.end));
      start = null;
    }
  }
  if (start !== null) found.push(text.slice(start).trimEnd() + ";");
  return found.filter((statement) => statement !== ";");
}

export const words = (statement) =>
  tokens(statement).filter((token) => !PLAIN.has(token.kind)).map((token) => token.text);

const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
const escape = (text) => text.replace(/[&<>]/g, (character) => ESCAPED[character]);

export function painted(text) {
  const parts = tokens(text).map(({ kind, text: part }) =>
    kind === "space" || kind === "symbol" || kind === "word"
      ? escape(part)
      : `<span class="t-${kind}">${escape(part)}</span>`);
  return parts.join("") + "\n";
}

export const unquoted = (name) =>
  /^[`"]/.test(name) ? name.slice(1, -1) : name.toUpperCase();

// A name as a statement must spell it.
export const quoted = (name) =>
  /^[A-Z_][A-Z0-9_@]*$/.test(name) && !reserved.has(name) ? name : "`" + name.replace(/`/g, "``") + "`";

const SOURCE_FOLLOWS = new Set(["FROM", "JOIN", "INTO", "DESCRIBE", "TABLE", "STREAM"]);

// What may complete the word before the cursor: [{ text, insert, detail }], the likeliest first.
export function choices(text, cursor, known) {
  const before = text.slice(0, cursor);
  const [word] = before.match(/[A-Za-z0-9_@]*$/);
  const start = cursor - word.length;
  const inside = tokens(text).find((token) => token.start < cursor && cursor < token.end + 1);
  if (inside && (inside.kind === "comment" || inside.kind === "string") && inside.end >= cursor
      && !(inside.kind === "string" && inside.end === cursor && inside.text.endsWith("'"))) {
    return { start, found: [] };
  }
  const used = mentioned(text, known.sources);
  const qualifier = before.slice(0, start).match(/([A-Za-z0-9_@`"]+)\.$/)?.[1];
  const candidates = qualifier
    ? columnsOf(used.get(unquoted(qualifier)), known)
    : everything(before.slice(0, start), used, known);
  const wanted = word.toUpperCase();
  const seen = new Set();
  const found = candidates.filter(({ text: name }) => {
    const key = name.toUpperCase();
    return key.startsWith(wanted) && !seen.has(key) && seen.add(key);
  });
  return { start, found: found.length === 1 && found[0].text === word ? [] : found.slice(0, 60) };
}

// The sources that the text names, under their names and aliases.
function mentioned(text, sources) {
  const byName = new Map(sources.map((source) => [source.name, source]));
  const found = new Map();
  const parts = tokens(text).filter((token) => !PLAIN.has(token.kind));
  parts.forEach((part, index) => {
    const source = byName.get(unquoted(part.text));
    if (!source || !["word", "quoted", "keyword"].includes(part.kind)) return;
    found.set(source.name, source);
    const next = parts[index + 1]?.text.toUpperCase() === "AS" ? parts[index + 2] : parts[index + 1];
    if (next?.kind === "word") found.set(next.text.toUpperCase(), source);
  });
  return found;
}

const columnsOf = (source) => (source ? source.columns : []).map((column) => ({
  text: column.name, insert: quoted(column.name), detail: column.type }));

function everything(before, used, known) {
  const last = before.trimEnd().match(/([A-Za-z]+)$/)?.[1].toUpperCase();
  const columns = [...new Set(used.values())].flatMap((source) =>
    source.columns.map((column) => ({ text: column.name, insert: quoted(column.name),
      detail: `${column.type.toLowerCase()} of ${source.name}` })));
  const sources = known.sources.map(({ name, type }) => ({ text: name, insert: quoted(name),
    detail: type.toLowerCase() }));
  const others = [
    ...["ROWTIME", "ROWPARTITION", "ROWOFFSET"].map((name) => ({ text: name, insert: name,
      detail: "of every record" })),
    ...known.functions.map((name) => ({ text: name, insert: name + "(", detail: "function" })),
    ...[...keywords].map((name) => ({ text: name, insert: name, detail: "" })),
  ];
  return SOURCE_FOLLOWS.has(last) ? [...sources, ...columns, ...others] : [...columns, ...sources, ...others];
}
