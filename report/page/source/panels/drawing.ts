import {select} from "d3-selection";
import {zoom, zoomIdentity, zoomTransform} from "d3-zoom";
import {listenToKeys, zoomControls} from "./zoom_controls.ts";

const MOST = 40;
const STEPS: Record<string, [number, number]> = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]};

/** What is drawn, but for its paper, as one group: made when it is first moved, as thousands of lines take their time. */
function groupOf(svg: SVGSVGElement): SVGGElement {
  const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
  group.append(...[...svg.children].filter((part) => part.tagName !== "style" && !part.classList.contains("paper")));
  svg.append(group);
  return group;
}

/** Lets a drawing in its box be zoomed and panned. What it shows at first, it shows again on Home. */
export function workDrawing(box: HTMLElement): void {
  const svg = box.querySelector("svg")!;
  const {x, y, width, height} = svg.viewBox.baseVal;
  let moved: SVGGElement | null = null;
  const area: [[number, number], [number, number]] = [[x, y], [x + width, y + height]];
  const zooming = zoom<SVGSVGElement, unknown>()
    .extent(area)
    .translateExtent(area)
    .scaleExtent([1, MOST])
    // The wheel and a finger scroll the page, as everywhere; with Ctrl, or two fingers, they zoom.
    .filter((event) => event.type === "wheel" ? event.ctrlKey : event.type === "touchstart" ? event.touches.length > 1 : !event.button)
    .on("zoom", (event) => {
      moved ??= groupOf(svg);
      moved.setAttribute("transform", event.transform.toString());
      box.classList.toggle("zoomed", event.transform.k > 1);
    });
  const drawn = select<SVGSVGElement, unknown>(svg).call(zooming);
  const zoomable = {
    zoom: (factor: number) => factor === 0 ? drawn.call(zooming.transform, zoomIdentity) : drawn.call(zooming.scaleBy, factor),
    press: (key: string) => {
      if (!(key in STEPS) || !box.classList.contains("zoomed")) return false;  // then the keys scroll the box
      const {k} = zoomTransform(svg);
      drawn.call(zooming.translateBy, STEPS[key][0] / k, STEPS[key][1] / k);
      return true;
    },
  };
  listenToKeys(box, zoomable);
  const name = (box.getAttribute("aria-label") ?? "drawing").toLowerCase();
  box.before(zoomControls(name, zoomable, "drag or arrow keys to pan, + and - or Ctrl with the wheel to zoom"));
}
