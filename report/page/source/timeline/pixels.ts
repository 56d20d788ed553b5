import {firstFrom} from "../columns.ts";
import type {Row} from "./lanes.ts";

/** A colour of the style, "#4477aa", as a pixel of ImageData. */
export function pixelOf(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return new Uint32Array(new Uint8ClampedArray([red, green, blue, 255]).buffer)[0];
}

/** Where moments are in a picture: `x = origin + perUnit * time`, from the column `left` on, for times from `from` to `to`. */
export interface TimeColumns {
  from: number;
  to: number;
  origin: number;
  perUnit: number;
  left: number;
}

/**
 * Sets the pixels of spans in the lines from `top` to before `bottom` of a picture. What is closer than a pixel is one, so it costs what is
 * in view, and no more.
 */
export function setSpans(pixels: Uint32Array, columns: number, row: Row, at: TimeColumns, top: number, bottom: number, colour: number): void {
  if (top >= bottom || row.begins.length === 0) return;
  const {begins, ends} = row, {from, to, origin, perUnit, left} = at;
  const line = pixels.subarray(top * columns, (top + 1) * columns);
  for (let i = firstFrom(begins, from - row.longest); i < begins.length && begins[i] <= to; ++i) {
    if (ends[i] < from) continue;
    const begin = Math.max(left, Math.floor(origin + begins[i] * perUnit));
    const end = Math.min(columns, Math.max(begin + 1, Math.round(origin + ends[i] * perUnit)));
    for (let x = begin; x < end; ++x) line[x] = colour;
  }
  for (let y = top + 1; y < bottom; ++y) pixels.set(line, y * columns);
}
