"use strict";

/** What the page holds beside its text, or null. */
const data = JSON.parse(document.getElementById("data")?.textContent ?? "null");

for (const control of document.querySelectorAll(".control")) control.hidden = data === null;

/** A field of a CSV file. Source: RFC 4180. */
function csvField(text) {
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

function download(table) {
  const lines = [...table.rows].map((row) => [...row.cells].map((cell) => csvField(cell.textContent)).join(","));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], {type: "text/csv"}));
  link.download = table.dataset.name + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Sorts the rows by a column; by it again turns the order round. Equal rows keep theirs. */
function sortBy(table, column) {
  const head = table.tHead.rows[0].cells[column];
  const order = head.ariaSort === "ascending" ? "descending" : "ascending";
  const isNumber = head.classList.contains("number");
  const value = (row) => row.cells[column].textContent;
  const number = (row) => Number.isNaN(parseFloat(value(row))) ? -Infinity : parseFloat(value(row));
  const sign = order === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => sign * (isNumber ? number(a) - number(b) || 0 : value(a).localeCompare(value(b))));
  table.tBodies[0].append(...rows);
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.ariaSort = order;
}

for (const table of document.querySelectorAll("table")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sortBy(table, column));
    head.replaceChildren(button);
  });
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Download CSV";
  button.addEventListener("click", () => download(table));
  table.caption.append(button);
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** A duration in units of the timeline for people. */
function duration(units) {
  const ns = units * data.unit / 1000;
  if (ns < 1e3) return ns.toPrecision(3) + " ns";
  return ns < 1e6 ? (ns / 1e3).toPrecision(4) + " us" : (ns / 1e6).toPrecision(4) + " ms";
}

/** Colours the network's lines by the loads of the whole run (0) or of one slice of it. */
function showLoads() {
  const slider = document.getElementById("slice");
  if (slider === null || data === null) return;
  const loads = bytesOf(data.loads);
  const ends = [0, 25, 50, 75, 95];
  const lines = [...document.querySelectorAll(".network [data-links]")].map((line) => ({
    line, links: line.dataset.links.split(" ").map(Number), title: line.querySelector("title"),
    what: line.querySelector("title").textContent.replace(/; busy .*/, "")}));
  const show = () => {
    const slice = Number(slider.value) - 1;
    const load = (link) => slice < 0 ? data.busy[link] : loads[slice * data.links.length + link];
    for (const {line, links, title, what} of lines) {
      const most = Math.max(...links.map(load));
      const step = ends.findIndex((end) => most <= end);
      line.setAttribute("class", "load" + (step < 0 ? ends.length : step));
      title.textContent = `${what}; busy ${most} %`;
    }
    const length = data.end / data.slices;
    const text = slice < 0 ? "the whole run" : `${duration(slice * length)} to ${duration((slice + 1) * length)}`;
    document.getElementById("slice-text").textContent = text;
    slider.setAttribute("aria-valuetext", text);
  };
  slider.addEventListener("input", show);
}
showLoads();
