import uPlot from "uplot";
import {styleOf} from "../theme.ts";
import type {CurveLook} from "./legend.ts";
import {markText, sizeMarks, type Aligned, type Range} from "./series.ts";

/** A line across a plot, and what stands beside it. */
export interface Rule {
  at: number;
  text: string;
}

/** One plot of curves over message sizes. */
export interface PlotSpec {
  title: string;
  height: number;
  /** Of its chart: it says what the axis of sizes is. */
  isLast?: boolean;
  aligned: Aligned;
  /** The looks of the curves, in the colours that the page has now. */
  looks: () => CurveLook[];
  whole: Range;
  /** Whether all sizes are in view. */
  isWhole: () => boolean;
  /** The range of values, where those in view go from `least` to `most` (null: none is in view). */
  values: (least: number | null, most: number | null, isWhole: boolean) => Range;
  /** Across, of a value: the bound. */
  levels: Rule[];
  /** Upright, of a size's position: the crossovers. */
  places: Rule[];
  /** Plots of the same name share what is in view and the cursor. */
  group: string;
}

export interface PlotEvents {
  moved: (range: Range) => void;
  pointed: (index: number | null) => void;
  reset: () => void;
}

const FONT = "12px system-ui, sans-serif";
const MARKER = 6;  // Pixels from a marker's middle to its end, at most.

/** The markers of a curve's points. */
function markers(spec: PlotSpec): uPlot.Series.Points.PathBuilder {
  return (plot, curve, first, last) => {
    const path = new Path2D(), clip = new Path2D(), scale = uPlot.pxRatio, room = MARKER * scale;
    const marker = spec.looks()[curve - 1].marker;
    for (let i = first; i <= last; ++i) {
      const value = plot.data[curve][i];
      if (value === null || value === undefined) continue;
      const x = plot.valToPos(plot.data[0][i] as number, "x", true), y = plot.valToPos(value, "y", true);
      path.addPath(marker, new DOMMatrix([scale, 0, 0, scale, x, y]));
    }
    const {left, top, width, height} = plot.bbox;
    clip.rect(left - room, top - room, width + 2 * room, height + 2 * room);
    return {stroke: path, fill: path, clip, flags: 3};
  };
}

/** The bound and the crossovers. */
function drawRules(plot: uPlot, spec: PlotSpec): void {
  const {ctx, bbox} = plot, scale = uPlot.pxRatio;
  const line = (x1: number, y1: number, x2: number, y2: number) => {
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
    ctx.stroke();
  };
  ctx.save();
  ctx.font = FONT.replace("12px", 12 * scale + "px");
  ctx.lineWidth = 1.5 * scale;
  ctx.strokeStyle = styleOf("ink");
  ctx.fillStyle = styleOf("soft");
  ctx.setLineDash([8 * scale, 4 * scale]);
  for (const {at, text} of spec.levels) {
    const y = plot.valToPos(at, "y", true);
    if (y < bbox.top || y > bbox.top + bbox.height) continue;
    line(bbox.left, y, bbox.left + bbox.width, y);
    ctx.textAlign = "left";
    ctx.fillText(text, bbox.left + 6 * scale, y + 14 * scale);
  }
  ctx.strokeStyle = styleOf("soft");
  ctx.setLineDash([2 * scale, 4 * scale]);
  let free = -Infinity;  // Names that would lie over the one before are left out: the list below has them.
  for (const {at, text} of spec.places) {
    const x = plot.valToPos(at, "x", true), length = ctx.measureText(text).width;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    line(x, bbox.top, x, bbox.top + bbox.height);
    const begin = Math.min(x + 5 * scale, bbox.left + bbox.width - length);
    if (begin < free) continue;
    ctx.textAlign = "left";
    ctx.fillText(text, begin, bbox.top + 11 * scale);
    free = begin + length + 8 * scale;
  }
  ctx.restore();
}

/** A plot by uPlot in an element. */
export function makePlot(host: HTMLElement, spec: PlotSpec, events: PlotEvents): uPlot {
  const axis: uPlot.Axis = {
    stroke: () => styleOf("soft"), grid: {stroke: () => styleOf("line"), width: 1}, ticks: {show: false}, font: FONT, labelFont: FONT,
  };
  let isBegun = false;
  const options: uPlot.Options = {
    width: Math.max(200, host.clientWidth),
    height: spec.height,
    padding: [12, 30, 0, 0],
    legend: {show: false},
    scales: {
      x: {time: false, range: (_plot, from, to) => {
        // What uPlot begins with is the data's own range, which leaves no room for markers at its ends.
        const range: Range = isBegun ? [from, to] : spec.whole;
        isBegun = true;
        return range;
      }},
      y: {range: (_plot, least, most) => spec.values(least ?? null, most ?? null, spec.isWhole())},
    },
    axes: [
      {...axis, size: 34, splits: (self, _axis, from, to) => sizeMarks([from, to], Math.max(2, Math.floor(self.width / 90))),
       values: (_plot, splits) => splits.map(markText),
       ...spec.isLast ? {label: "message size", labelSize: 20} : {}},
      {...axis, size: 60, label: spec.title, labelSize: 20},
    ],
    series: [{}, ...spec.aligned.values.map((_, i): uPlot.Series => ({
      stroke: () => spec.looks()[i].stroke, width: 2, dash: spec.looks()[i].dash, spanGaps: true,
      points: {show: true, paths: markers(spec), width: 2, stroke: () => spec.looks()[i].stroke, fill: () => spec.looks()[i].fill},
    }))],
    cursor: {
      y: false,
      drag: {x: true, y: false},
      sync: {key: spec.group, scales: ["x", null]},
      points: {size: 11, width: 2, fill: "transparent", stroke: (_plot, i) => spec.looks()[i - 1].stroke},
      bind: {dblclick: () => () => {
        events.reset();
        return null;
      }},
    },
    hooks: {
      drawAxes: [(self) => drawRules(self, spec)],
      setScale: [(self, key) => { if (key === "x") events.moved([self.scales.x.min!, self.scales.x.max!]); }],
      setCursor: [(self) => events.pointed(self.cursor.idx ?? null)],
    },
  };
  const plot = new uPlot(options, [spec.aligned.positions, ...spec.aligned.values], host);
  plot.ctx.canvas.setAttribute("aria-hidden", "true");  // Its box says what it shows.
  return plot;
}
