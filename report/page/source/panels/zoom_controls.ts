import {buttonOf} from "./tables.ts";

/** What keys and buttons do to a drawing. */
export interface Zoomable {
  /** Shows a factor less of it; 0 shows all. */
  zoom(factor: number): void;
  /** What another key does; false where it does nothing. */
  press(key: string): boolean;
}

const FACTORS: Record<string, number> = {"+": 1.5, "=": 1.5, "-": 1 / 1.5, Home: 0};

/** Zooms by the keys + and - and Home while the focus is on the box. */
export function listenToKeys(box: HTMLElement, drawing: Zoomable): void {
  box.addEventListener("keydown", (event) => {
    if (event.target !== box || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in FACTORS) drawing.zoom(FACTORS[event.key]);
    else if (!drawing.press(event.key)) return;
    event.preventDefault();
  });
}

/** A line of buttons, and what can be done without them. */
export function zoomControls(name: string, drawing: Zoomable, keys: string): HTMLElement {
  const line = document.createElement("p");
  line.className = "control";
  line.setAttribute("role", "group");
  line.setAttribute("aria-label", "Zoom of the " + name);
  for (const [text, factor] of [["Zoom in", 2], ["Zoom out", 0.5], ["All", 0]] as const) {
    const button = buttonOf(text, () => drawing.zoom(factor));
    button.dataset.zoom = String(factor);
    line.append(button, " ");
  }
  const help = document.createElement("span");
  help.className = "keys";
  help.textContent = keys;
  line.append(help);
  return line;
}
