// Sources and the queries between them, as a picture that reads from left to right.

import { number, panel, STATES, svg } from "/page/dom.js";

const { body } = panel("graph");
const COLUMN_GAP = 34, ROW_GAP = 16, MARGIN = 4, LONGEST = 22;
let last = "";

export function show({ sources, queries }, chosen) {
  const persistent = queries.filter((query) => query.type !== "PUSH");
  const used = new Set(persistent.flatMap((query) => [...query.sources, ...query.sinks]));
  const drawn = sources.filter((source) => used.has(source.name) || !isLog(source));
  const now = JSON.stringify([drawn.map((s) => [s.name, s.total]),
    persistent.map((q) => [q.id, q.state, number(q.rate), q.sources, q.sinks]), body.clientWidth, body.clientHeight]);
  if (now === last) return;
  last = now;
  const nodes = new Map([
    ...drawn.map((source) => [source.name, { id: source.name, source, next: [], before: [] }]),
    ...persistent.map((query) => [`query ${query.id}`, { id: `query ${query.id}`, query, next: [], before: [] }]),
  ]);
  const edges = persistent.flatMap((query) => {
    const middle = `query ${query.id}`;
    return [...query.sources.map((name) => [name, middle, query]), ...query.sinks.map((name) => [middle, name, query])];
  }).filter(([from, to]) => nodes.has(from) && nodes.has(to));
  for (const [from, to] of edges) { nodes.get(from).next.push(to); nodes.get(to).before.push(from); }
  body.replaceChildren(picture(arrange(nodes), edges, nodes, chosen));
}

const titleOf = ({ source, query }) => cut(source ? source.name : query.id.split("_")[0], LONGEST);

function subtitleOf({ source, query }) {
  if (source) return source.type.toLowerCase() + (source.total === null ? "" : ` · ${number(source.total)} rows`);
  return query.state === "RUNNING" ? `${number(query.rate) || 0} rows/s` : query.state.toLowerCase();
}

function sizeOf(node) {
  if (node.query) return { width: 104, height: 26 };
  const wide = Math.max(titleOf(node).length * 7.1, subtitleOf(node).length * 5.7);
  return { width: Math.max(84, wide + 20), height: 36 };
}

const isLog = (source) => /processing_log$/i.test(source.topic);

// Each node in the column after the last of those before it; a circle is cut where it closes.
function arrange(nodes) {
  const depth = new Map();
  const place = (id, path) => {
    if (depth.has(id)) return depth.get(id);
    if (path.has(id)) return -1;
    path.add(id);
    const found = 1 + Math.max(-1, ...nodes.get(id).before.map((from) => place(from, path)));
    path.delete(id);
    depth.set(id, found);
    return found;
  };
  const columns = [];
  for (const id of [...nodes.keys()].sort()) (columns[place(id, new Set())] ??= []).push(nodes.get(id));
  const layers = columns.filter(Boolean);
  for (let round = 0; round < 4; round += 1) {
    const forth = round % 2 === 0;
    for (const layer of forth ? layers : [...layers].reverse()) order(layer, nodes, forth);
    layers.forEach((layer) => layer.forEach((node, index) => { node.rank = (index + .5) / layer.length; }));
  }
  return layers;
}

// Nodes lie near those that they are tied to.
function order(layer, nodes, forth) {
  for (const node of layer) {
    const ties = (forth ? node.before : node.next).map((id) => nodes.get(id).rank ?? .5);
    node.wish = ties.length ? ties.reduce((a, b) => a + b) / ties.length : node.rank ?? .5;
  }
  layer.sort((a, b) => a.wish - b.wish || a.id.localeCompare(b.id));
}

function picture(layers, edges, nodes, chosen) {
  const heights = layers.map((layer) =>
    layer.reduce((sum, node) => sum + sizeOf(node).height + ROW_GAP, -ROW_GAP));
  const height = Math.max(...heights, 40) + 2 * MARGIN;
  let x = MARGIN;
  layers.forEach((layer, index) => {
    const width = Math.max(...layer.map((node) => sizeOf(node).width));
    let y = (height - heights[index]) / 2;
    for (const node of layer) {
      const size = sizeOf(node);
      Object.assign(node, size, { x: x + (width - size.width) / 2, y });
      y += size.height + ROW_GAP;
    }
    x += width + COLUMN_GAP;
  });
  const width = Math.max(x - COLUMN_GAP + MARGIN, 1);
  const scale = Math.max(.55, Math.min(1.15, (body.clientWidth - 14) / width, (body.clientHeight - 14) / height));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: width * scale, height: height * scale,
    role: "img", "aria-label": `${nodes.size} sources and queries` });
  drawing.append(...edges.map(([from, to, query]) => edge(nodes.get(from), nodes.get(to), query)));
  for (const node of nodes.values()) drawing.append(box(node, drawing, chosen));
  return drawing;
}

function edge(from, to, query) {
  const x1 = from.x + from.width, y1 = from.y + from.height / 2, x2 = to.x, y2 = to.y + to.height / 2;
  const bend = Math.max(18, Math.abs(x2 - x1) / 2);
  const path = svg("path", { class: `edge${query.rate > 0 ? " flows" : ""}`,
    d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
  path.dataset.ends = JSON.stringify([from.id, to.id]);
  return path;
}

const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

function box(node, drawing, chosen) {
  const { x, y, width, height, source, query } = node;
  const style = source ? `source ${source.type.toLowerCase()}` : `query ${STATES[query.state] || ""}`;
  const group = svg("g", { class: `node ${style}`, tabindex: 0 });
  const full = svg("title");
  full.textContent = source ? source.statement : query.sql;
  const middle = x + width / 2;
  const label = (text, at, name) => {
    const made = svg("text", { x: middle, y: at, "text-anchor": "middle", class: name });
    made.textContent = text;
    return made;
  };
  group.append(full, svg("rect", { x, y, width, height, rx: source ? 6 : 13 }));
  if (source) group.append(label(titleOf(node), y + 16, ""), label(subtitleOf(node), y + 29, "small"));
  else group.append(label(`${titleOf(node)} · ${subtitleOf(node)}`, y + 17, "small"));
  group.addEventListener("mouseenter", () => dim(drawing, node));
  group.addEventListener("mouseleave", () => dim(drawing, null));
  group.addEventListener("click", () => chosen(node));
  group.dataset.id = node.id;
  return group;
}

// Only what is tied to a node stays bright.
function dim(drawing, node) {
  const bright = node && new Set([node.id, ...node.next, ...node.before]);
  for (const group of drawing.querySelectorAll("g.node")) group.classList.toggle("dim", !!node && !bright.has(group.dataset.id));
  for (const path of drawing.querySelectorAll("path.edge")) {
    path.classList.toggle("dim", !!node && !JSON.parse(path.dataset.ends).includes(node.id));
  }
}
