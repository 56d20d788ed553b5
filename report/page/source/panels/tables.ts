import {csvOf} from "../words.ts";

/** The order of rows by one of their cells: indices; equal ones keep theirs. What is no number is less than all numbers. */
export function orderOf(cells: string[], isNumber: boolean, isAscending: boolean): number[] {
  const number = (text: string) => Number.isNaN(parseFloat(text)) ? -Infinity : parseFloat(text);
  const sign = isAscending ? 1 : -1;
  return cells.map((_, i) => i).sort((a, b) =>
    sign * (isNumber ? number(cells[a]) - number(cells[b]) || 0 : cells[a].localeCompare(cells[b])));
}

/** Sorts the rows by a column; by it again turns the order round. */
function sortBy(table: HTMLTableElement, column: number): void {
  const heads = [...table.tHead!.rows[0].cells], head = heads[column];
  const isAscending = head.getAttribute("aria-sort") !== "ascending";
  const rows = [...table.tBodies[0].rows];
  const order = orderOf(rows.map((row) => row.cells[column].textContent ?? ""), head.classList.contains("number"), isAscending);
  table.tBodies[0].append(...order.map((i) => rows[i]));
  for (const other of heads) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
}

function download(table: HTMLTableElement): void {
  const text = csvOf([...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent ?? "")));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
  link.download = table.dataset.name + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function buttonOf(text: string, onClick: () => void): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.addEventListener("click", onClick);
  return button;
}

/** Makes a table sortable by its heads, and downloadable. */
export function workTable(table: HTMLTableElement): void {
  [...table.tHead!.rows[0].cells].forEach((head, column) => {
    head.replaceChildren(buttonOf(head.textContent ?? "", () => sortBy(table, column)));
  });
  table.caption!.append(buttonOf("Download CSV", () => download(table)));
}
