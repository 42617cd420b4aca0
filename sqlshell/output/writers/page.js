"use strict";
const ROW = 26, TALLEST = 8e6, BEYOND = 20;
const blocks = [...document.querySelectorAll("script[type='application/json']")];
const columns = JSON.parse(blocks.shift().textContent);
const rows = [];
for (const block of blocks) {
  for (const row of JSON.parse(block.textContent)) rows.push(row);
  block.remove();
}
const view = document.querySelector("main"), head = document.querySelector("thead tr");
const body = document.querySelector("tbody"), search = document.querySelector("input");
const count = document.querySelector("output");
const all = Int32Array.from(rows, (_, number) => number);
let shown = all, sorted = null, direction = 0, texts = null, waiting = 0;

const words = new Intl.Collator(undefined, { numeric: false });
const decimal = /^-?\d+(\.\d+)?$/;
function numbers(a, b) {
  const x = Number(a), y = Number(b);
  if (x < y) return -1;
  if (x > y) return 1;
  if (a === b) return 0;
  // Beyond the precision of a double, all digits count.
  if (decimal.test(a) && decimal.test(b)) {
    const [m, p = ""] = a.split("."), [n, q = ""] = b.split("."), scale = Math.max(p.length, q.length);
    const difference = BigInt(m + p.padEnd(scale, "0")) - BigInt(n + q.padEnd(scale, "0"));
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  }
  return Number.isNaN(x) - Number.isNaN(y);
}
function ordered(chosen) {
  if (!direction) return chosen;
  const compare = columns[sorted].number ? numbers : words.compare;
  const full = [], empty = [];
  for (const number of chosen) (rows[number][sorted] === null ? empty : full).push(number);
  full.sort((a, b) => direction * compare(rows[a][sorted], rows[b][sorted]) || a - b);
  return Int32Array.from(full.concat(empty));
}
function choose() {
  const wanted = search.value.toLowerCase();
  if (wanted && !texts) texts = rows.map(row => row.join("\u0000").toLowerCase());
  shown = ordered(wanted ? all.filter(number => texts[number].includes(wanted)) : all);
  const total = rows.length.toLocaleString();
  count.textContent = wanted ? `${shown.length.toLocaleString()} of ${total} rows` : `${total} rows`;
  view.scrollTop = 0;
  draw();
}
function gap(height) {
  const row = document.createElement("tr"), cell = document.createElement("td");
  row.className = "gap";
  cell.colSpan = columns.length;
  cell.style.height = `${height}px`;
  row.append(cell);
  return row;
}
function draw() {
  waiting = 0;
  const full = shown.length * ROW, height = Math.min(full, TALLEST), room = view.clientHeight - head.offsetHeight;
  const visible = Math.ceil(room / ROW), reach = Math.max(1, height - room);
  // A browser's elements have a greatest height: beyond it, the place of the scroll bar is a share of the rows.
  const top = full > height ? Math.min(1, view.scrollTop / reach) * Math.max(0, full - room) : view.scrollTop;
  const first = Math.max(0, Math.min(shown.length, Math.floor(top / ROW)) - BEYOND);
  const last = Math.min(shown.length, first + visible + 2 * BEYOND);
  const above = full > height ? Math.max(0, view.scrollTop - (top - first * ROW)) : first * ROW;
  const drawn = [gap(above)];
  for (let place = first; place < last; place++) {
    const row = document.createElement("tr"), values = rows[shown[place]];
    for (let number = 0; number < columns.length; number++) {
      const cell = document.createElement("td"), value = values[number];
      cell.className = (columns[number].number ? "number" : "") + (value === null ? " null" : "");
      cell.textContent = value === null ? columns[number].null : value.length > 500 ? value.slice(0, 500) + "…" : value;
      if (value !== null && value.length > 30) cell.title = value.slice(0, 5000);
      row.append(cell);
    }
    drawn.push(row);
  }
  drawn.push(gap(Math.max(0, height - above - (last - first) * ROW)));
  body.replaceChildren(...drawn);
}
function later() {
  waiting = waiting || requestAnimationFrame(draw);
}

columns.forEach((column, number) => {
  const cell = document.createElement("th"), button = document.createElement("button");
  const name = document.createElement("b"), type = document.createElement("small");
  name.textContent = column.name;
  type.textContent = column.type;
  cell.className = column.number ? "number" : "";
  cell.scope = "col";
  button.append(name, type);
  button.addEventListener("click", () => {
    direction = sorted !== number ? 1 : direction === 1 ? -1 : direction === -1 ? 0 : 1;
    sorted = number;
    for (const other of head.children) other.removeAttribute("aria-sort");
    if (direction) cell.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    choose();
  });
  cell.append(button);
  head.append(cell);
});
search.addEventListener("input", () => { clearTimeout(search.timer); search.timer = setTimeout(choose, 120); });
view.addEventListener("scroll", later, { passive: true });
addEventListener("resize", later);
choose();
