/** A step of the critical path: begin and end in units of the timeline, then a link and a rank (one is -1), a transfer, a chunk. */
export type PathStep = [begin: number, end: number, link: number, rank: number, transfer: number, chunk: number];

/** What spans look like: a name, a custom property of the style, and where in a lane they are, in parts of its height. */
export type Look = [name: string, property: string, from: number, part: number];

/** Spans by columns: base64 of LEB128 numbers, as report/span_columns.h writes them. */
export interface SpanColumns {
  /** Picoseconds in a unit of time. */
  unit: number;
  /** When the last span ends, in units. */
  end: number;
  count: number;
  begins: string;
  lengths: string;
  lanes: string;
  phases: string;
  transfers: string;
  chunks: string;
}

/** The timeline and the loads of a page, as report/timeline_data.h and report/job_page.cpp write them. */
export interface PageData extends SpanColumns {
  ranks: string[];
  links: string[];
  path: PathStep[];
  /** One chunk in so many is in the page. */
  every: number;
  looks?: Look[];
  labels?: string[];
  slices?: number;
  /** Base64: per cent, by slice and link. */
  loads?: string;
  /** Per cent over the whole run, by link. */
  busy?: number[];
}

/** A point of a curve: bytes, seconds, bytes per second, what ran (may be empty), per cent of its bound; 0 where none is known. */
export type CurvePoint = [size: number, seconds: number, rate: number, by: string, part: number];

/** Rates over message sizes, as report/bandwidth_chart.cpp writes them. */
export interface CurvesData {
  measure: string;
  /** Bytes per second, each with what is said of it. */
  bounds: {rate: number; text: string}[];
  /** `bound`: its own, in bytes per second; 0 where none is known. It is not of all bytes: whole elements go to shards. */
  curves: {name: string; bound: number; points: CurvePoint[]}[];
  crossovers: {from: string; to: string; size: number}[];
}

/** The JSON in a script element, or null where there is no such element. */
export function readJson<Type>(element: Element | null): Type | null {
  return element === null ? null : JSON.parse(element.textContent ?? "null") as Type;
}
