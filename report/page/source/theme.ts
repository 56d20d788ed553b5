/** A custom property of the page's style. */
export function styleOf(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + property).trim();
}

/**
 * Calls `redraw` whenever the colours of the page have changed: from light to dark or back, and before and after printing, which is
 * always light. A canvas keeps the colours that it was drawn in.
 */
export function onColoursChange(redraw: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", redraw);
  addEventListener("afterprint", redraw);
}

/** Makes the page light while it is printed. Comes before every onColoursChange. */
export function printLight(): void {
  addEventListener("beforeprint", () => document.documentElement.classList.add("printing"));
  addEventListener("afterprint", () => document.documentElement.classList.remove("printing"));
}
