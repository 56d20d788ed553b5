import {Chart} from "./chart.ts";
import type {Legend} from "./legend.ts";
import {alignCurves, wholeRange, type Curve} from "./series.ts";

const HEIGHT = 250;

/** The curves of a table of errors by size: a curve per algorithm. Cells: size in bytes, algorithm, two times, error in per cent. */
export function errorCurves(rows: string[][]): Curve[] {
  const curves = new Map<string, Curve>();
  for (const [size, algorithm, a, b, error] of rows) {
    const value = parseFloat(error);
    if (Number.isNaN(value) || !(Number(size) > 0)) continue;
    if (!curves.has(algorithm)) curves.set(algorithm, {name: algorithm, points: []});
    curves.get(algorithm)!.points.push({size: Number(size), value, text: `${algorithm} ${error} % (${a} against ${b} us)`.trim()});
  }
  return [...curves.values()];
}

/** The number of the legend's entry that an algorithm is drawn as: its own where there is one, else the next. */
export function entryOf(names: string[], algorithm: string, number: number): number {
  const own = names.findIndex((name) => name === algorithm || name.startsWith(algorithm + " in "));
  return own >= 0 && algorithm !== "" ? own : number % names.length;
}

/** Puts a plot of the errors of a table by size before it. Curves look as those of the same algorithm in another chart do. */
export function workErrors(table: HTMLTableElement, others: Legend): Chart | null {
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent ?? ""));
  const found = errorCurves(rows);
  if (new Set(found.flatMap(({points}) => points.map(({size}) => size))).size < 2) return null;  // The table says it all.
  const names = others.entries.map((entry) => entry.textContent!.trim());
  const legend = others.copyOf(found.map(({name}, i) => [entryOf(names, name, i), name === "" ? "all" : name]));
  const curves = alignCurves(found), box = table.closest(".table")!;
  const values = (least: number | null, most: number | null): [number, number] => {
    const low = Math.min(0, least ?? 0), high = Math.max(0, most ?? 0), room = 0.12 * (high - low) || 1;
    return [low - room, high + room];
  };
  const caption = table.caption!.firstChild?.textContent ?? "";
  const figure = document.createElement("div");
  figure.className = "curves live errors";
  return new Chart({name: `${caption}: error by message size`, curves, whole: wholeRange(curves.positions), legend,
                    plots: [{title: "error (%)", height: HEIGHT, values, levels: [{at: 0, text: ""}], places: []}]}, (element) => {
    figure.append(element, legend.element);
    box.before(figure);
  });
}
