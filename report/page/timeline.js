
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

const PHASES = ["send", "wire", "recv", "reduce"];
/** Where in a lane a phase is, in parts of its height: a rank sends, receives and adds at once. */
const STRIPS = [[0, 1 / 3], [0, 1], [1 / 3, 1 / 3], [2 / 3, 1 / 3]];
const LANE = 16, HEAD = 22, NAMES = 150;

/** The spans by lane, in begin order; lanes where nothing happens are left out. */
function readLanes() {
  const begins = numbersOf(data.begins, Float64Array), lengths = numbersOf(data.lengths, Float64Array);
  for (let i = 1; i < data.count; ++i) begins[i] += begins[i - 1];
  const ends = lengths.map((length, i) => begins[i] + length);
  const places = numbersOf(data.lanes, Uint32Array), phases = numbersOf(data.phases, Uint8Array);
  const transfers = numbersOf(data.transfers, Uint32Array), chunks = numbersOf(data.chunks, Uint32Array);
  const names = [...data.ranks, ...data.links];
  const byLane = names.map(() => PHASES.map(() => []));
  for (let i = 0; i < data.count; ++i) {
    byLane[phases[i] === 1 ? data.ranks.length + places[i] : places[i]][phases[i]].push(i);
  }
  const lanes = [];
  names.forEach((name, i) => {
    if (byLane[i].every((spans) => spans.length === 0)) return;
    const path = data.path.filter(([, , link, rank]) => i < data.ranks.length ? rank === i : link === i - data.ranks.length);
    const rows = byLane[i].map((spans) => {
      const indices = Uint32Array.from(spans);
      let longest = 0;
      for (const span of indices) longest = Math.max(longest, lengths[span]);
      return {indices, longest};
    });
    lanes.push({name, rows, path});
  });
  return {lanes, begins, ends, transfers, chunks};
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
    lane.rows.forEach(({indices, longest}, phase) => {
      if (inLane < STRIPS[phase][0] || inLane > STRIPS[phase][0] + STRIPS[phase][1]) return;
      for (let i = this.firstFrom(indices, time - longest); i < indices.length; ++i) {
        const span = indices[i];
        if (this.begins[span] > time) break;
        if (this.ends[span] < time) continue;
        text.textContent = `${lane.name}: ${PHASES[phase]} of transfer ${this.transfers[span]}, chunk ` +
          `${this.chunks[span]}, from ${duration(this.begins[span])} for ${duration(this.ends[span] - this.begins[span])}`;
      }
    });
  }

  /** The first of the spans that begins at a time or later. */
  firstFrom(indices, time) {
    let low = 0, high = indices.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.begins[indices[middle]] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  redraw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  draw() {
    const scale = devicePixelRatio, paint = this.paint;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, width, height);
    const style = getComputedStyle(document.documentElement);
    this.colours = PHASES.map((phase) => style.getPropertyValue("--" + phase));
    this.ink = style.getPropertyValue("--ink");
    paint.font = "11px system-ui, sans-serif";
    const first = Math.floor(this.box.scrollTop / LANE);
    for (let i = first; i < this.lanes.length; ++i) {
      const y = HEAD + i * LANE - this.box.scrollTop;
      if (y > height) break;
      this.drawLane(this.lanes[i], y);
    }
    paint.fillStyle = style.getPropertyValue("--page");
    paint.fillRect(0, 0, width, HEAD);
    this.drawHead();
  }

  drawLane(lane, y) {
    const paint = this.paint;
    lane.rows.forEach(({indices, longest}, phase) => {
      paint.fillStyle = this.colours[phase];
      const top = y + 1 + STRIPS[phase][0] * (LANE - 2), height = STRIPS[phase][1] * (LANE - 2);
      let begin = 0, end = -1;  // spans that are nearer than a third of a pixel are one
      for (let i = this.firstFrom(indices, this.from - longest); i < indices.length; ++i) {
        const span = indices[i];
        if (this.begins[span] > this.to) break;
        if (this.ends[span] < this.from) continue;
        const left = Math.max(NAMES, this.xOf(this.begins[span])), right = this.xOf(this.ends[span]);
        if (end >= begin && left - end < 1 / 3) {
          end = Math.max(end, right);
          continue;
        }
        if (end >= begin) paint.fillRect(begin, top, Math.max(end - begin, 0.5), height);
        begin = left;
        end = right;
      }
      if (end >= begin) paint.fillRect(begin, top, Math.max(end - begin, 0.5), height);
    });
    paint.strokeStyle = this.ink;
    paint.lineWidth = 1.5;
    for (const [begin, end] of lane.path) {
      if (end < this.from || begin > this.to) continue;
      const left = Math.max(NAMES, this.xOf(begin));
      paint.strokeRect(left, y + 1, Math.max(this.xOf(end) - left, 0.5), LANE - 2);
    }
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
