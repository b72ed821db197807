// The page: what the server has goes to the panels, what is written goes to the server.

import { byId } from "/page/dom.js";
import { Editor } from "/page/editor.js";
import * as graph from "/page/graph.js";
import * as log from "/page/log.js";
import { known, learnFunctions, onChange, refresh } from "/page/model.js";
import * as queries from "/page/queries.js";
import { run } from "/page/results.js";
import * as sources from "/page/sources.js";
import { learn } from "/page/sql.js";

const editor = new Editor(known, run);
const insert = (text) => editor.insert(text);

function pick(node) {
  if (node.query) queries.look(node.query);
  else sources.reveal(node.source.name);
}

onChange((model, failure) => {
  const health = byId("health");
  health.textContent = failure ? failure.message : "running";
  health.className = `state ${failure ? "bad" : "good"}`;
  if (failure) return;
  byId("server").textContent = `${model.server.version} · ${location.host} · ${model.server.ksqlServiceId}`;
  sources.show(model, insert);
  queries.show(model);
  graph.show(model, pick);
  log.show(model);
});

const theme = localStorage.getItem("headrace.theme");
if (theme) document.documentElement.dataset.theme = theme;
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("headrace.theme", root.dataset.theme);
});

addEventListener("resize", () => graph.show(known, pick));
fetch(location.origin + "/page/words.json").then((answer) => answer.json()).then((words) => {
  learn(words);
  editor.draw();
});
refresh().then(learnFunctions).catch(() => {});
