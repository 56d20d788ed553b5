
/** Numbers of LEB128, as many as there are spans. */
function numbersOf(base64, Type) {
  const bytes = bytesOf(base64);
  const numbers = new Type(data.count);
  for (let i = 0, at = 0; i < data.count; ++i) {
    let number = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      number += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    numbers[i] = number;
  }
  return numbers;
}

/**
 * What spans look like: a name, a custom property of the style, and where in a lane they are, in parts of its height, as a rank
 * sends, receives and adds at once.
 */
const LOOKS = data?.looks ?? [["send", "send", 0, 1 / 3], ["wire", "wire", 0, 1], ["recv", "recv", 1 / 3, 1 / 3],
  ["reduce", "reduce", 2 / 3, 1 / 3]];
const LANE = 16, HEAD = 22, NAMES = 150;

/** The spans by lane, in begin order; lanes where nothing happens are left out. */
function readLanes() {
  const begins = numbersOf(data.begins, Float64Array), lengths = numbersOf(data.lengths, Float64Array);
  for (let i = 1; i < data.count; ++i) begins[i] += begins[i - 1];
  const ends = lengths.map((length, i) => begins[i] + length);
  const places = numbersOf(data.lanes, Uint32Array), phases = numbersOf(data.phases, Uint8Array);
  const transfers = numbersOf(data.transfers, Uint32Array), chunks = numbersOf(data.chunks, Uint32Array);
  const names = [...data.ranks, ...data.links];
  const byLane = names.map(() => LOOKS.map(() => []));
  for (let i = 0; i < data.count; ++i) {
    const isOnLink = data.links.length > 0 && phases[i] === 1;
    byLane[isOnLink ? data.ranks.length + places[i] : places[i]][phases[i]].push(i);
  }
  const lanes = [];
  names.forEach((name, i) => {
    if (byLane[i].every((spans) => spans.length === 0)) return;
    const path = data.path.filter(([, , link, rank]) => i < data.ranks.length ? rank === i : link === i - data.ranks.length);
    const rows = byLane[i].map((spans) => {
      const indices = Uint32Array.from(spans);
      let longest = 0;
      for (const span of indices) longest = Math.max(longest, lengths[span]);
      // Side by side in memory: a frame reads all that are in view.
      return {indices, longest, begins: Float64Array.from(spans, (span) => begins[span]),
              ends: Float64Array.from(spans, (span) => ends[span])};
    });
    lanes.push({name, rows, path});
  });
  return {lanes, begins, ends, transfers, chunks};
}

/** The first of ascending moments that is a time or later. */
function firstFrom(begins, time) {
  let low = 0, high = begins.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begins[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A colour of the style, "#4477aa", as a pixel of ImageData. */
function pixelOf(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.trim().slice(at, at + 2), 16));
  const bytes = new Uint8ClampedArray([red, green, blue, 255]);
  return new Uint32Array(bytes.buffer)[0];
}

class TimelineView {
  constructor(box) {
    this.box = box;
    this.canvas = box.querySelector("canvas");
    this.paint = this.canvas.getContext("2d");
    Object.assign(this, readLanes());
    this.from = 0;
    this.to = Math.max(data.end, 1);
    box.hidden = false;
    box.style.height = Math.min(480, HEAD + this.lanes.length * LANE + 4) + "px";
    this.canvas.style.height = box.style.height;
    box.querySelector(".spacer").style.height = HEAD + this.lanes.length * LANE - box.clientHeight + "px";
    box.addEventListener("scroll", () => this.redraw());
    box.addEventListener("wheel", (event) => this.onWheel(event), {passive: false});
    box.addEventListener("pointerdown", (event) => this.onDown(event));
    box.addEventListener("pointermove", (event) => this.onMove(event));
    box.addEventListener("pointerup", () => { this.held = null; });
    box.addEventListener("keydown", (event) => this.onKey(event));
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => this.zoom(Number(button.dataset.zoom), 0.5));
    }
    new ResizeObserver(() => this.redraw()).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    this.redraw();
  }

  get width() { return Math.max(1, this.canvas.clientWidth - NAMES); }
  xOf(time) { return NAMES + (time - this.from) / (this.to - this.from) * this.width; }
  timeAt(x) { return this.from + (x - NAMES) / this.width * (this.to - this.from); }

  /** Shows a factor less of the time, the moment at `part` of the width staying; 0 shows all. */
  zoom(factor, part) {
    const whole = Math.max(data.end, 1);
    const length = factor === 0 ? whole : Math.min(whole, Math.max(10, (this.to - this.from) / factor));
    this.moveTo(this.from + part * (this.to - this.from - length), length);
  }

  moveTo(from, length) {
    const whole = Math.max(data.end, 1);
    this.from = Math.max(0, Math.min(from, whole - length));
    this.to = this.from + length;
    this.redraw();
  }

  onWheel(event) {
    if (!event.ctrlKey && event.deltaX === 0) return;
    event.preventDefault();
    const length = this.to - this.from;
    if (event.ctrlKey) this.zoom(Math.exp(-event.deltaY / 300), (event.offsetX - NAMES) / this.width);
    else this.moveTo(this.from + event.deltaX / this.width * length, length);
  }

  onDown(event) {
    this.held = {x: event.clientX, from: this.from};
    this.box.setPointerCapture(event.pointerId);
  }

  onMove(event) {
    const length = this.to - this.from;
    if (this.held) this.moveTo(this.held.from - (event.clientX - this.held.x) / this.width * length, length);
    else this.tell(event);
  }

  onKey(event) {
    const length = this.to - this.from;
    const steps = {ArrowLeft: -0.1, ArrowRight: 0.1, "+": 1.5, "=": 1.5, "-": 1 / 1.5, Home: 0};
    if (!(event.key in steps) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (event.key.startsWith("Arrow")) this.moveTo(this.from + steps[event.key] * length, length);
    else this.zoom(steps[event.key], 0.5);
  }

  /** Says what is under the pointer. */
  tell(event) {
    const area = this.canvas.getBoundingClientRect();
    const time = this.timeAt(event.clientX - area.left);
    const y = event.clientY - area.top - HEAD + this.box.scrollTop;
    const lane = this.lanes[Math.floor(y / LANE)];
    const text = document.getElementById("span-text");
    text.textContent = "";
    if (lane === undefined || event.clientY - area.top < HEAD) return;
    const inLane = (y % LANE) / LANE;
    lane.rows.forEach(({indices, longest, begins, ends}, phase) => {
      const [name, , from, part] = LOOKS[phase];
      if (inLane < from || inLane > from + part) return;
      for (let i = firstFrom(begins, time - longest); i < indices.length; ++i) {
        const span = indices[i];
        if (begins[i] > time) break;
        if (ends[i] < time) continue;
        const what = data.labels === undefined ? `${name} of transfer ${this.transfers[span]}, chunk ${this.chunks[span]}`
          : `${name}: ${data.labels[this.transfers[span]]}`;
        text.textContent =
          `${lane.name}: ${what}, from ${duration(this.begins[span])} for ${duration(this.ends[span] - this.begins[span])}`;
      }
    });
  }

  redraw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  /** Everything anew. Spans are set pixel by pixel: a frame costs what is in view and no more. */
  draw() {
    const scale = devicePixelRatio, paint = this.paint;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.max(1, Math.round(width * scale));
      this.canvas.height = Math.max(1, Math.round(height * scale));
      this.image = paint.createImageData(this.canvas.width, this.canvas.height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const style = getComputedStyle(document.documentElement);
    const colours = LOOKS.map(([, property]) => pixelOf(style.getPropertyValue("--" + property)));
    this.ink = style.getPropertyValue("--ink");
    const first = Math.floor(this.box.scrollTop / LANE);
    const shown = this.lanes.slice(first, first + Math.ceil(height / LANE) + 1);
    this.pixels.fill(0);
    shown.forEach((lane, i) => this.setLane(lane, HEAD + (first + i) * LANE - this.box.scrollTop, colours, scale));
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.putImageData(this.image, 0, 0);
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.font = "11px system-ui, sans-serif";
    shown.forEach((lane, i) => this.drawLane(lane, HEAD + (first + i) * LANE - this.box.scrollTop));
    paint.clearRect(0, 0, width, HEAD);
    this.drawHead();
  }

  /** The spans of a lane that are in view; what is closer than a pixel is one. */
  setLane(lane, y, colours, scale) {
    const columns = this.canvas.width, lines = this.canvas.height, left = Math.round(NAMES * scale);
    const perUnit = this.width * scale / (this.to - this.from), origin = NAMES * scale - this.from * perUnit;
    lane.rows.forEach(({longest, begins, ends}, phase) => {
      const [, , from, part] = LOOKS[phase];
      const top = Math.max(Math.round(HEAD * scale), Math.round((y + 1 + from * (LANE - 2)) * scale));
      const bottom = Math.min(lines, Math.round((y + 1 + (from + part) * (LANE - 2)) * scale));
      if (top >= bottom || begins.length === 0) return;
      const row = this.pixels.subarray(top * columns, (top + 1) * columns), colour = colours[phase];
      for (let i = firstFrom(begins, this.from - longest); i < begins.length && begins[i] <= this.to; ++i) {
        if (ends[i] < this.from) continue;
        const begin = Math.max(left, Math.floor(origin + begins[i] * perUnit));
        const end = Math.min(columns, Math.max(begin + 1, Math.round(origin + ends[i] * perUnit)));
        for (let x = begin; x < end; ++x) row[x] = colour;
      }
      for (let line = top + 1; line < bottom; ++line) this.pixels.set(row, line * columns);
    });
  }

  /** The critical path in a lane, and its name. */
  drawLane(lane, y) {
    const paint = this.paint;
    paint.strokeStyle = this.ink;
    paint.lineWidth = 1.5;
    paint.beginPath();
    let drawn = -1;  // Steps within a pixel of the one before are not seen apart.
    for (const [begin, end] of lane.path) {
      if (end < this.from || begin > this.to) continue;
      const left = Math.max(NAMES, this.xOf(begin)), right = Math.max(this.xOf(end), left + 0.5);
      if (right - drawn < 1 && right - left < 1) continue;
      paint.rect(left, y + 1, right - left, LANE - 2);
      drawn = right;
    }
    paint.stroke();
    paint.clearRect(0, y, NAMES, LANE);
    paint.fillStyle = this.ink;
    paint.textAlign = "right";
    paint.fillText(lane.name, NAMES - 8, y + LANE - 4, NAMES - 12);
  }

  /** The times above the lanes. */
  drawHead() {
    const paint = this.paint, length = this.to - this.from;
    const power = 10 ** Math.floor(Math.log10(length / 6));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= length / 6);
    paint.fillStyle = this.ink;
    paint.textAlign = "center";
    for (let mark = Math.ceil(this.from / step) * step; mark <= this.to; mark += step) {
      const x = this.xOf(mark);
      if (x > NAMES + this.width - 24) break;
      paint.fillRect(x, HEAD - 5, 1, 4);
      paint.fillText(mark === 0 ? "0" : duration(mark), x, HEAD - 8);
    }
    const shown = data.every > 1 ? `1 chunk of ${data.every}` : "";
    paint.textAlign = "left";
    paint.fillText(shown, 4, HEAD - 8);
  }
}

const lanesBox = document.querySelector(".lanes");
const view = data !== null && lanesBox !== null ? new TimelineView(lanesBox) : null;
