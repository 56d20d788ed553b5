import {readJson, type CurvesData} from "../page_data.ts";
import {Chart, type ChartSpec} from "./chart.ts";
import {Legend} from "./legend.ts";
import {alignCurves, wholeRange} from "./series.ts";

const RATES = 330, PARTS = 210;

/** What is said of a point: "ring by trees 12.34 GB/s, 81.23 us, 98.1 % of the bound". */
export function pointText(name: string, seconds: number, rate: number, by: string, part: number | null): string {
  const of = part === null ? "" : `, ${part.toFixed(1)} % of the bound`;
  return `${name}${by === "" ? "" : " by " + by} ${(rate / 1e9).toFixed(2)} GB/s, ${(seconds * 1e6).toFixed(2)} us${of}`;
}

/** Puts plots of the rates and of their part of the bound before a page's own drawing of them. */
export function workRates(figure: HTMLElement): Chart | null {
  const data = readJson<CurvesData>(figure.querySelector("script")), list = figure.querySelector<HTMLElement>(".legend");
  if (data === null || list === null) return null;
  const {bounds, measure} = data;
  const curves = alignCurves(data.curves.map(({name, bound, points}) => ({name, points: points.filter(([size]) => size > 0).map(
    ([size, seconds, rate, by, of]) => {
      const part = bound > 0 ? of : null;
      return {size, value: rate / 1e9, part, text: pointText(name, seconds, rate, by, part)};
    })})));
  const levels = bounds.map(({rate, text}) => ({at: rate / 1e9, text}));
  const places = data.crossovers.map(({to, size}) => ({at: Math.log2(size), text: to + " from here"}));
  const top = (of: number) => (_least: number | null, most: number | null, isWhole: boolean): [number, number] =>
    [0, 1.1 * Math.max(most ?? 0, isWhole || most === null ? of : 0) || 1];
  const plots: ChartSpec["plots"] = [{title: measure + " (GB/s)", height: RATES, values: top(Math.max(0, ...levels.map(({at}) => at))), places, levels}];
  if (levels.length > 0) {
    plots.push({title: "part of the bound (%)", height: PARTS, values: top(100), places: places.map(({at}) => ({at, text: ""})),
                levels: [{at: 100, text: ""}], shows: "parts"});
  }
  figure.classList.add("live");
  return new Chart({name: `${measure} against message size${levels.length > 0 ? ", and its part of the bound" : ""}`, curves,
                    whole: wholeRange(curves.positions), plots, legend: new Legend(list)}, (element) => figure.prepend(element));
}
