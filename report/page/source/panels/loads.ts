import {bytesOf} from "../columns.ts";
import type {PageData} from "../page_data.ts";
import {duration} from "../words.ts";

/** Where steps of loads end, in per cent, as in topology/draw/drawn_use.cpp. */
const STEP_ENDS = [0, 25, 50, 75, 95];

export function loadStep(percent: number): number {
  const step = STEP_ENDS.findIndex((end) => percent <= end);
  return step < 0 ? STEP_ENDS.length : step;
}

/** A function of slice (-1: the whole run) and link: per cent. */
export function loadsOf(data: PageData): (slice: number, link: number) => number {
  const loads = bytesOf(data.loads ?? ""), busy = data.busy ?? [];
  return (slice, link) => slice < 0 ? busy[link] : loads[slice * data.links.length + link];
}

/** The numbers in a line's `data-links`, where "5+2x3" is 5, 7 and 9. */
export function linksOf(text: string): number[] {
  return text.split(" ").flatMap((word) => {
    const [first, step, count] = word.split(/[+x]/).map(Number);
    return count === undefined ? [first] : Array.from({length: count}, (_, i) => first + i * step);
  });
}

/** Lets the slider colour the network's lines by the loads of the whole run (0) or of one slice of it. */
export function workLoads(slider: HTMLInputElement, data: PageData): void {
  const load = loadsOf(data), length = data.end * data.unit / (data.slices ?? 1);
  const lines = [...document.querySelectorAll<SVGElement>(".network [data-links]")].map((line) => {
    const title = line.querySelector("title")!;
    return {line, title, links: linksOf(line.dataset.links!), what: title.textContent!.replace(/; busy .*/, "")};
  });
  slider.addEventListener("input", () => {
    const slice = Number(slider.value) - 1;
    for (const {line, links, title, what} of lines) {
      const most = links.reduce((most, link) => Math.max(most, load(slice, link)), 0);
      line.setAttribute("class", "load" + loadStep(most));
      title.textContent = `${what}; busy ${most} %`;
    }
    const text = slice < 0 ? "the whole run" : `${duration(slice * length)} to ${duration((slice + 1) * length)}`;
    document.getElementById("slice-text")!.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  });
}
