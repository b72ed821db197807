// Where statements are written: colours, completion, and what to run.

import { byId, element } from "/page/dom.js";
import { choices, painted } from "/page/sql.js";

const KEPT = "headrace.text";
const WELCOME = `-- Ctrl-Enter runs the selection, or everything. Tab completes.
CREATE STREAM orders (id INT KEY, item STRING, amount DOUBLE)
  WITH (kafka_topic = 'orders', value_format = 'JSON', partitions = 1);

INSERT INTO orders (id, item, amount) VALUES (1, 'keyboard', 120);

SELECT * FROM orders EMIT CHANGES;
`;

export class Editor {
  constructor(known, run) {
    this.known = known;
    this.run = run;
    this.text = byId("text");
    this.paint = byId("paint");
    this.list = byId("choices");
    this.found = [];
    this.text.value = localStorage.getItem(KEPT) ?? WELCOME;
    this.text.addEventListener("input", () => { this.draw(); this.offer(false); });
    this.text.addEventListener("scroll", () => this.follow());
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.text.addEventListener("blur", () => this.close());
    this.text.addEventListener("click", () => this.close());
    this.list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const item = event.target.closest("li");
      if (item) this.accept([...this.list.children].indexOf(item));
    });
    byId("run").addEventListener("click", () => this.run(this.chosen()));
    this.draw();
  }

  // The selection, or everything.
  chosen() {
    const { value, selectionStart, selectionEnd } = this.text;
    return value.slice(selectionStart, selectionEnd).trim() || value;
  }

  draw() {
    this.paint.innerHTML = painted(this.text.value);
    localStorage.setItem(KEPT, this.text.value);
    const { value, selectionStart } = this.text;
    const lineStart = value.lastIndexOf("\n", selectionStart - 1) + 1;
    if (selectionStart === lineStart) this.text.scrollLeft = 0; // the caret alone leaves the margin out
    this.follow();
  }

  follow() {
    this.paint.scrollTop = this.text.scrollTop;
    this.paint.scrollLeft = this.text.scrollLeft;
  }

  // Puts a text where the cursor is.
  insert(words, from = this.text.selectionStart) {
    this.text.focus();
    this.text.setSelectionRange(from, this.text.selectionEnd);
    // Unlike setting the value, this can be undone; it is an input like any other.
    if (!document.execCommand("insertText", false, words)) {
      this.text.setRangeText(words, from, this.text.selectionEnd, "end");
      this.draw();
    }
  }

  key(event) {
    const open = !this.list.hidden;
    const does = {
      "Enter": () => (event.ctrlKey || event.metaKey) ? this.run(this.chosen()) : this.enter(),
      "Tab": () => open ? this.accept(this.at) : event.shiftKey ? false : this.tab(),
      " ": () => (event.ctrlKey ? this.offer(true) : false),
      "Escape": () => open && this.close(),
      "ArrowDown": () => open && this.pick(1),
      "ArrowUp": () => open && this.pick(-1),
    }[event.key];
    if (does && does() !== false) event.preventDefault();
  }

  // Ends the line, unless something was picked from the list: nobody's words are changed unasked.
  enter() {
    if (this.list.hidden || !this.picked) { this.close(); return false; }
    this.accept(this.at);
  }

  // After a word Tab completes; elsewhere it indents.
  tab() {
    const before = this.text.value[this.text.selectionStart - 1] || "";
    if (/[A-Za-z0-9_.]/.test(before)) this.offer(true);
    if (this.list.hidden) this.insert("  ");
    else if (this.found.length === 1) this.accept(0);
  }

  offer(asked) {
    const cursor = this.text.selectionStart;
    const { start, found } = choices(this.text.value, cursor, this.known);
    const word = this.text.value.slice(start, cursor).toUpperCase();
    const early = word.length < 2 && this.text.value[start - 1] !== ".";
    const whole = found.some((choice) => choice.text.toUpperCase() === word);
    if (!found.length || (!asked && (early || whole))) return this.close();
    this.start = start;
    this.found = found;
    this.at = 0;
    this.picked = asked;
    this.list.replaceChildren(...found.map((choice) =>
      element("li", { role: "option" }, choice.text, element("span", { textContent: choice.detail }))));
    this.list.hidden = false;
    this.place();
    this.move(0);
  }

  // The list opens under the word that it completes.
  place() {
    const before = this.text.value.slice(0, this.start).split("\n");
    const style = getComputedStyle(this.text);
    const line = parseFloat(style.lineHeight);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${style.fontSize} ${style.fontFamily}`;
    const wide = pen.measureText("0").width;
    const column = before[before.length - 1].length;
    const top = 10 + before.length * line - this.text.scrollTop;
    const left = 14 + column * wide - this.text.scrollLeft;
    const room = this.text.clientHeight;
    const high = Math.min(196, this.list.scrollHeight);
    this.list.style.top = `${top + high > room && top - line > high ? top - line - high - 2 : top + 2}px`;
    this.list.style.left = `${Math.max(0, Math.min(left - 9, this.text.clientWidth - 326))}px`;
  }

  pick(by) {
    this.picked = true;
    this.move(by);
  }

  move(by) {
    this.at = (this.at + by + this.found.length) % this.found.length;
    [...this.list.children].forEach((item, index) => item.setAttribute("aria-selected", index === this.at));
    this.list.children[this.at].scrollIntoView({ block: "nearest" });
  }

  accept(index) {
    const { insert } = this.found[index];
    this.insert(insert, this.start);
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.found = [];
  }
}
