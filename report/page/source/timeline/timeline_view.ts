import {scaleLinear} from "d3-scale";
import {select} from "d3-selection";
import {zoom, zoomIdentity, zoomTransform} from "d3-zoom";
import type {PageData} from "../page_data.ts";
import {onColoursChange, styleOf} from "../theme.ts";
import {duration} from "../words.ts";
import {readLanes, spanAt, type Lane, type Lanes} from "./lanes.ts";
import {pixelOf, setSpans, type TimeColumns} from "./pixels.ts";

const LANE = 16, HEAD = 22, HIGHEST = 480, FONT = "11px system-ui, sans-serif";
/** The widths that the column of names may have. */
const NARROWEST = 60, WIDEST = 420;
/** The least units of time that a view shows. */
const LEAST = 10;

/** The timeline on its canvas. Its box scrolls through the lanes; zooming and panning are of time alone. */
export class TimelineView {
  readonly data: PageData;
  readonly canvas: HTMLCanvasElement;
  readonly paint: CanvasRenderingContext2D;
  readonly spans: Lanes;
  /** What is in view, in units of the timeline. */
  from = 0;
  to: number;

  /** The width of the column of names: the longest has room. */
  private readonly names: number;
  private readonly box: HTMLElement;
  private readonly told: HTMLElement;
  private readonly whole: number;
  private readonly zooming = zoom<HTMLElement, unknown>();
  private image!: ImageData;
  private pixels = new Uint32Array();
  private isAsked = false;
  private heldAt: number | null = null;

  constructor(box: HTMLElement, told: HTMLElement, data: PageData) {
    this.box = box;
    this.told = told;
    this.data = data;
    this.canvas = box.querySelector("canvas")!;
    this.paint = this.canvas.getContext("2d")!;
    this.spans = readLanes(data);
    this.paint.font = FONT;
    const longest = this.spans.lanes.reduce((most, {name}) => Math.max(most, this.paint.measureText(name).width), 0);
    this.names = Math.min(WIDEST, Math.max(NARROWEST, Math.ceil(longest) + 14));
    this.to = this.whole = Math.max(data.end, 1);
    const height = HEAD + this.spans.lanes.length * LANE;
    box.hidden = false;
    box.style.height = this.canvas.style.height = Math.min(HIGHEST, height + 4) + "px";
    box.querySelector<HTMLElement>(".spacer")!.style.height = height - box.clientHeight + "px";
    this.listen();
    this.redraw();
  }

  /** Shows a factor less of the time, the moment in the middle staying; 0 shows all. */
  zoom(factor: number): void {
    if (factor === 0) select(this.box).call(this.zooming.transform, zoomIdentity);
    else select(this.box).call(this.zooming.scaleBy, factor);
  }

  /** Moves by a part of what is in view. */
  pan(part: number): void {
    select(this.box).call(this.zooming.translateBy, -part * this.width / zoomTransform(this.box).k, 0);
  }

  press(key: string): boolean {
    if (key !== "ArrowLeft" && key !== "ArrowRight") return false;
    this.pan(key === "ArrowLeft" ? -0.1 : 0.1);
    return true;
  }

  xOf(time: number): number {
    return this.names + (time - this.from) / (this.to - this.from) * this.width;
  }

  /** Where the lane of a number is on the canvas. */
  topOf(lane: number): number {
    return HEAD + lane * LANE - this.box.scrollTop;
  }

  private get width(): number {
    return Math.max(1, this.canvas.clientWidth - this.names);
  }

  private listen(): void {
    const {box, zooming} = this;
    zooming.scaleExtent([1, Math.max(1, this.whole / LEAST)])
      // The wheel scrolls through the lanes, and so does a finger; with Ctrl, or two fingers, they zoom.
      .filter((event) => event.type === "wheel" ? event.ctrlKey : event.type === "touchstart" ? event.touches.length > 1 : !event.button)
      .on("start", ({sourceEvent}) => { this.heldAt = sourceEvent instanceof MouseEvent ? sourceEvent.clientY : null; })
      .on("zoom", (event) => {
        this.scrollWith(event.sourceEvent);
        this.show();
      })
      .on("end", () => { this.heldAt = null; });
    this.fit();
    select(box).call(zooming);
    box.addEventListener("scroll", () => this.redraw());
    box.addEventListener("wheel", (event) => this.onWheel(event), {passive: false});
    box.addEventListener("pointermove", (event) => this.tell(event));
    new ResizeObserver(() => this.fit()).observe(box);
    onColoursChange(() => this.draw());
  }

  /** After a change of width the same time is in view. */
  private fit(): void {
    const right = this.names + this.width, k = this.whole / (this.to - this.from);
    const area: [[number, number], [number, number]] = [[this.names, 0], [right, HIGHEST]];
    this.zooming.extent(area).translateExtent(area);
    const x = this.names - k * (this.names + this.from / this.whole * this.width);
    select(this.box).call(this.zooming.transform, zoomIdentity.translate(x, 0).scale(k));
  }

  /** Takes over from the zooming what is in view. */
  private show(): void {
    const all = scaleLinear([0, this.whole], [this.names, this.names + this.width]);
    const [from, to] = zoomTransform(this.box).rescaleX(all).domain();
    this.from = Math.max(0, from);
    this.to = Math.min(this.whole, to);
    this.redraw();
  }

  /** Dragging up and down scrolls through the lanes. */
  private scrollWith(event: unknown): void {
    if (!(event instanceof MouseEvent) || event.type !== "mousemove" || this.heldAt === null) return;
    this.box.scrollTop -= event.clientY - this.heldAt;
    this.heldAt = event.clientY;
  }

  private onWheel(event: WheelEvent): void {
    if (event.ctrlKey || event.deltaX === 0) return;
    event.preventDefault();
    this.pan(event.deltaX / this.width);
    this.box.scrollTop += event.deltaY;
  }

  /** Says what is under the pointer. */
  tell({clientX, clientY}: {clientX: number; clientY: number}): void {
    const {looks, lanes, transfers, chunks} = this.spans, {data} = this;
    const area = this.canvas.getBoundingClientRect();
    const time = this.from + (clientX - area.left - this.names) / this.width * (this.to - this.from);
    const y = clientY - area.top - HEAD + this.box.scrollTop;
    const lane = lanes[Math.floor(y / LANE)];
    const found = lane === undefined || clientY - area.top < HEAD ? null : spanAt(looks, lane, time, (y % LANE) / LANE);
    if (found === null) {
      this.told.textContent = "";
      return;
    }
    const [name] = looks[found.look];
    const what = data.labels === undefined ? `${name} of transfer ${transfers[found.index]}, chunk ${chunks[found.index]}`
      : `${name}: ${data.labels[transfers[found.index]]}`;
    this.told.textContent = `${lane.name}: ${what}, from ${duration(found.begin * data.unit)} for ` +
      duration((found.end - found.begin) * data.unit);
  }

  redraw(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  /** Everything anew. */
  draw(): void {
    const scale = devicePixelRatio, {paint, canvas, spans} = this;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.max(1, Math.round(width * scale));
      canvas.height = Math.max(1, Math.round(height * scale));
      this.image = paint.createImageData(canvas.width, canvas.height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const colours = spans.looks.map(([, property]) => pixelOf(styleOf(property)));
    const ink = styleOf("ink");
    const first = Math.floor(this.box.scrollTop / LANE);
    const shown = spans.lanes.slice(first, first + Math.ceil(height / LANE) + 1);
    this.pixels.fill(0);
    shown.forEach((lane, i) => this.setLane(lane, this.topOf(first + i), colours, scale));
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.putImageData(this.image, 0, 0);
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.font = FONT;
    paint.fillStyle = paint.strokeStyle = ink;
    shown.forEach((lane, i) => this.drawLane(lane, this.topOf(first + i)));
    paint.clearRect(0, 0, width, HEAD);
    this.drawHead();
  }

  private setLane(lane: Lane, y: number, colours: number[], scale: number): void {
    const perUnit = this.width * scale / (this.to - this.from);
    const at: TimeColumns = {from: this.from, to: this.to, origin: this.names * scale - this.from * perUnit, perUnit, left: Math.round(this.names * scale)};
    lane.rows.forEach((row, look) => {
      const [, , from, part] = this.spans.looks[look];
      const top = Math.max(Math.round(HEAD * scale), Math.round((y + 1 + from * (LANE - 2)) * scale));
      const bottom = Math.min(this.canvas.height, Math.round((y + 1 + (from + part) * (LANE - 2)) * scale));
      setSpans(this.pixels, this.canvas.width, row, at, top, bottom, colours[look]);
    });
  }

  /** The critical path in a lane, and its name. */
  private drawLane(lane: Lane, y: number): void {
    const {paint} = this;
    paint.lineWidth = 1.5;
    paint.beginPath();
    let drawn = -1;  // Steps within a pixel of the one before are not seen apart.
    for (const [begin, end] of lane.path) {
      if (end < this.from || begin > this.to) continue;
      const left = Math.max(this.names, this.xOf(begin)), right = Math.max(this.xOf(end), left + 0.5);
      if (right - drawn < 1 && right - left < 1) continue;
      paint.rect(left, y + 1, right - left, LANE - 2);
      drawn = right;
    }
    paint.stroke();
    paint.clearRect(0, y, this.names, LANE);
    paint.textAlign = "right";
    paint.fillText(lane.name, this.names - 8, y + LANE - 4, this.names - 12);
  }

  /** The times above the lanes. */
  private drawHead(): void {
    const {paint, data} = this;
    // In picoseconds: a unit is no round number of them.
    const times = scaleLinear([this.from * data.unit, this.to * data.unit], [this.names, this.names + this.width]);
    paint.textAlign = "center";
    for (const mark of times.ticks(Math.min(6, this.width / 90))) {
      const x = times(mark);
      if (x > this.names + this.width - 24) break;
      paint.fillRect(x, HEAD - 5, 1, 4);
      paint.fillText(mark === 0 ? "0" : duration(mark), x, HEAD - 8);
    }
    paint.textAlign = "left";
    if (data.every > 1) paint.fillText(`1 chunk of ${data.every}`, 4, HEAD - 8);
  }
}
