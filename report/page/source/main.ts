import type {Chart} from "./charts/chart.ts";
import {workErrors} from "./charts/errors.ts";
import {Legend} from "./charts/legend.ts";
import {workRates} from "./charts/rates.ts";
import {readJson, type PageData} from "./page_data.ts";
import {workDrawing} from "./panels/drawing.ts";
import {workLoads} from "./panels/loads.ts";
import {workTable} from "./panels/tables.ts";
import {listenToKeys, zoomControls} from "./panels/zoom_controls.ts";
import {printLight} from "./theme.ts";
import {TimelineView} from "./timeline/timeline_view.ts";

function workTimeline(data: PageData): TimelineView | null {
  const box = document.querySelector<HTMLElement>(".lanes"), told = document.getElementById("span-text");
  if (box === null || told === null) return null;
  const view = new TimelineView(box, told, data);
  listenToKeys(box, view);
  box.before(zoomControls("timeline", view, "drag or arrow keys to pan, + and - or Ctrl with the wheel to zoom"));
  return view;
}

function workCharts(): Chart[] {
  const figures = [...document.querySelectorAll<HTMLElement>(".curves")];
  const lists = figures.flatMap((figure) => [...figure.querySelectorAll<HTMLElement>(".legend")]);
  // Copied before its entries become buttons.
  const looks = lists.length === 0 ? null : new Legend(lists[0].cloneNode(true) as HTMLElement);
  const charts = figures.map(workRates);
  if (looks !== null) {
    for (const table of document.querySelectorAll<HTMLTableElement>("table[data-name=errors-by-size]")) charts.push(workErrors(table, looks));
  }
  return charts.filter((chart) => chart !== null);
}

printLight();
const data = readJson<PageData>(document.getElementById("data"));
const charts = workCharts();
for (const table of document.querySelectorAll("table")) workTable(table);
for (const box of document.querySelectorAll<HTMLElement>(".drawing")) workDrawing(box);
const slider = document.querySelector<HTMLInputElement>("#slice");
if (data !== null && slider !== null) {
  slider.closest<HTMLElement>(".control")!.hidden = false;
  workLoads(slider, data);
}
/** For those who look closer, by the browser's console, and for tests. */
Object.assign(globalThis, {espalier: {timeline: data === null ? null : workTimeline(data), charts}});
