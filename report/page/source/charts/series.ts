import {ticks} from "d3-array";
import {sizeText} from "../words.ts";

/** A curve whose points have a size, a value of their own and a text; where there is a bound, which part of it they are, in per cent. */
export interface Curve {
  name: string;
  points: {size: number; value: number; part?: number | null; text: string}[];
}

/** Curves over the sizes of all of them together. */
export interface Aligned {
  /** Binary logarithms, ascending; a size that a curve has twice is there twice. */
  positions: number[];
  sizes: number[];
  /** By curve; null where it has no point. */
  values: (number | null)[][];
  parts: (number | null)[][];
  texts: (string | null)[][];
}

export function alignCurves(curves: Curve[]): Aligned {
  const times = new Map<number, number>();
  for (const {points} of curves) {
    const own = new Map<number, number>();
    for (const {size} of points) own.set(size, (own.get(size) ?? 0) + 1);
    for (const [size, count] of own) times.set(size, Math.max(times.get(size) ?? 0, count));
  }
  const sizes = [...times].sort(([a], [b]) => a - b).flatMap(([size, count]) => new Array<number>(count).fill(size));
  const first = new Map<number, number>();
  sizes.forEach((size, i) => { if (!first.has(size)) first.set(size, i); });
  const values: (number | null)[][] = [], parts: (number | null)[][] = [], texts: (string | null)[][] = [];
  for (const {points} of curves) {
    const next = new Map(first), ownValues = sizes.map((): number | null => null), ownParts = [...ownValues], ownTexts = sizes.map((): string | null => null);
    for (const {size, value, part, text} of points) {
      const i = next.get(size)!;
      next.set(size, i + 1);
      ownValues[i] = value;
      ownParts[i] = part ?? null;
      ownTexts[i] = text;
    }
    values.push(ownValues);
    parts.push(ownParts);
    texts.push(ownTexts);
  }
  return {positions: sizes.map(Math.log2), sizes, values, parts, texts};
}

export type Range = [from: number, to: number];

/** All positions, with room for the marks at both ends. */
export function wholeRange(positions: number[]): Range {
  const from = positions[0], to = positions[positions.length - 1];
  const room = from === to ? 1 : Math.max(0.03 * (to - from), 0.25);
  return [from - room, to + room];
}

/** A factor less of a range, its middle staying where the whole lets it. */
export function zoomed([from, to]: Range, factor: number, whole: Range, least = 0.5): Range {
  const most = whole[1] - whole[0];
  const length = Math.min(most, Math.max(Math.min(least, most), (to - from) / factor));
  return within([(from + to - length) / 2, (from + to + length) / 2], whole);
}

/** The range moved, by as little as it takes, to lie within the whole. */
export function within([from, to]: Range, whole: Range): Range {
  const length = Math.min(to - from, whole[1] - whole[0]);
  const begin = Math.min(Math.max(from, whole[0]), whole[1] - length);
  return [begin, begin + length];
}

/** The range moved, by as little as it takes, to show a position, with a tenth of it beside. */
export function showing([from, to]: Range, position: number, whole: Range): Range {
  const room = (to - from) / 10;
  const by = position < from + room ? position - from - room : position > to - room ? position - to + room : 0;
  return within([from + by, to + by], whole);
}

/** Where an axis of sizes has its marks: powers of two, `most` of them; within less than two powers, round numbers of a binary unit. */
export function sizeMarks([from, to]: Range, most: number): number[] {
  const every = Math.max(1, Math.ceil((to - from) / most));
  const marks: number[] = [];
  for (let power = Math.ceil(from); power <= to; power += every) marks.push(power);
  if (marks.length > 1) return marks;
  const unit = 10 * Math.floor(from / 10);  // KiB are 10 powers above bytes.
  return ticks(2 ** (from - unit), 2 ** (to - unit), Math.min(most, 5)).map((mark) => unit + Math.log2(mark));
}

export function markText(position: number): string {
  return sizeText(Math.round(2 ** position));
}
