import type uPlot from "uplot";
import {listenToKeys, zoomControls} from "../panels/zoom_controls.ts";
import {onColoursChange} from "../theme.ts";
import {sizeText} from "../words.ts";
import type {CurveLook, Legend} from "./legend.ts";
import {makePlot, type PlotSpec} from "./plot.ts";
import {showing, within, zoomed, type Aligned, type Range} from "./series.ts";

type OwnPlot = Omit<PlotSpec, "aligned" | "looks" | "whole" | "isWhole" | "isLast" | "group"> & {shows?: "values" | "parts"};

export interface ChartSpec {
  /** What it shows, for those who do not see it. */
  name: string;
  curves: Aligned;
  whole: Range;
  /** One below the other; each shows the curves' values, or their parts of the bound. */
  plots: OwnPlot[];
  legend: Legend;
}

let charts = 0;

/** Curves over message sizes in one or several plots with one axis of sizes, worked by mouse and keys. */
export class Chart {
  readonly element = document.createElement("div");
  readonly plots: uPlot[];
  range: Range;

  private readonly box = document.createElement("div");
  private readonly told = document.createElement("p");
  private looks: CurveLook[];
  private at: number | null = null;

  /** `place` puts the chart's element into the page, as plots are as wide as it is. */
  constructor(private readonly spec: ChartSpec, place: (element: HTMLElement) => void) {
    const {legend, curves, whole} = spec;
    this.range = whole;
    this.element.className = "plots";
    this.box.className = "plot-box";
    this.box.tabIndex = 0;
    this.box.setAttribute("aria-label", spec.name + "; the table has the numbers");
    this.box.setAttribute("role", "application");
    this.told.className = "span";
    this.told.setAttribute("role", "status");
    this.told.setAttribute("aria-label", "Values at the cursor");
    this.element.append(zoomControls("chart", this, "drag over a part to zoom, arrow keys for points, + and - to zoom"), this.box, this.told);
    place(this.element);
    this.looks = legend.looks();
    const group = "chart" + charts++;
    this.plots = spec.plots.map((plot, i) => {
      const aligned = {...curves, values: plot.shows === "parts" ? curves.parts : curves.values};
      return makePlot(this.box, {...plot, isLast: i + 1 === spec.plots.length, aligned, whole, isWhole: () => this.isWhole, looks: () => this.looks, group}, {
        moved: (range) => this.follow(range), pointed: (index) => this.tell(index), reset: () => this.zoom(0)});
    });
    legend.makeButtons((curve, isShown) => {
      for (const plot of this.plots) plot.setSeries(curve + 1, {show: isShown});
      this.tell(this.at);
    });
    listenToKeys(this.box, this);
    onColoursChange(() => {
      this.looks = legend.looks();
      for (const plot of this.plots) plot.redraw();
    });
    new ResizeObserver(() => {
      for (const plot of this.plots) {
        if (this.box.clientWidth > 0) plot.setSize({width: this.box.clientWidth, height: plot.height});
      }
    }).observe(this.box);
  }

  zoom(factor: number): void {
    this.show(factor === 0 ? this.spec.whole : zoomed(this.range, factor, this.spec.whole));
  }

  press(key: string): boolean {
    if (key === "Escape") this.point(null);
    else if (key === "ArrowLeft" || key === "ArrowRight") this.step(key === "ArrowLeft" ? -1 : 1);
    else return false;
    return true;
  }

  show(range: Range): void {
    this.range = range;
    for (const plot of this.plots) plot.setScale("x", {min: range[0], max: range[1]});
  }

  private get isWhole(): boolean {
    return this.range[1] - this.range[0] > 0.999 * (this.spec.whole[1] - this.spec.whole[0]);
  }

  /** All plots show what one of them was dragged to, which is never outside the whole. */
  private follow(range: Range): void {
    const [from, to] = within(range, this.spec.whole);
    if (from === this.range[0] && to === this.range[1]) return;
    this.show([from, to]);
  }

  /** Moves the cursor by a point, from where it is, or to the first one in view. */
  private step(by: number): void {
    const {positions} = this.spec.curves, [from, to] = this.range;
    const inView = positions.findIndex((position) => position >= from && position <= to);
    const next = this.at === null ? Math.max(0, inView) : Math.min(Math.max(this.at + by, 0), positions.length - 1);
    this.show(showing(this.range, positions[next], this.spec.whole));
    this.point(next);
  }

  private point(index: number | null): void {
    this.at = index;
    for (const plot of this.plots) {
      // Scales change when the current task is done.
      queueMicrotask(() => plot.setCursor(index === null ? {left: -10, top: -10} : {left: plot.valToPos(this.spec.curves.positions[index], "x"), top: 0}));
    }
  }

  /** Says what the curves are at a size. */
  private tell(index: number | null): void {
    this.at = index;
    const {sizes, texts} = this.spec.curves;
    const found = index === null ? [] : texts.map((column, i) => this.plots[0]?.series[i + 1].show ? column[index] : null).filter((text) => text !== null);
    this.told.textContent = found.length === 0 ? "" : `${sizeText(sizes[index!])}: ${found.join("; ")}`;
  }
}
