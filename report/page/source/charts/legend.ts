/** How a curve is drawn, as its entry in the legend is. */
export interface CurveLook {
  name: string;
  marker: Path2D;
  stroke: string;
  fill: string;
  dash: number[];
}

/** A legend, whose entries become buttons that hide and show their curves. */
export class Legend {
  readonly entries: HTMLElement[];

  constructor(private readonly list: HTMLElement) {
    this.entries = [...list.querySelectorAll("li")];
  }

  /** The looks in the colours that the page has now. */
  looks(): CurveLook[] {
    return this.entries.map((entry) => {
      const line = entry.querySelector("path.curve")!, mark = entry.querySelector("g.curve")!;
      const {stroke, strokeDasharray} = getComputedStyle(line);
      return {
        name: entry.textContent!.trim(),
        marker: new Path2D(mark.querySelector("path")!.getAttribute("d")!),
        stroke,
        fill: getComputedStyle(mark).fill,
        dash: strokeDasharray === "none" ? [] : strokeDasharray.split(",").map(parseFloat),
      };
    });
  }

  /** Another legend, with the entries of these numbers, under these names. */
  copyOf(entries: [number, string][]): Legend {
    const list = this.list.cloneNode() as HTMLElement;
    for (const [number, name] of entries) {
      const entry = document.createElement("li");
      entry.append(this.entries[number].querySelector("svg")!.cloneNode(true), name);
      list.append(entry);
    }
    return new Legend(list);
  }

  get element(): HTMLElement {
    return this.list;
  }

  makeButtons(show: (curve: number, isShown: boolean) => void): void {
    this.list.setAttribute("aria-label", "Curves to show");
    this.entries.forEach((entry, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...entry.childNodes);
      button.addEventListener("click", () => {
        const isShown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(isShown));
        show(i, isShown);
      });
      entry.append(button);
    });
  }
}
