import {firstFrom, readNumbers} from "../columns.ts";
import type {Look, PageData, PathStep} from "../page_data.ts";

/** The phases of a transfer, in the order of schedule/timeline/timeline.h. A rank sends, receives and adds at once. */
const PHASES: Look[] = [["send", "send", 0, 1 / 3], ["wire", "wire", 0, 1], ["recv", "recv", 1 / 3, 1 / 3], ["reduce", "reduce", 2 / 3, 1 / 3]];

/** Spans of one look in one lane, in begin order. Side by side in memory: a frame reads all that are in view. */
export interface Row {
  /** Of the spans in the columns. */
  indices: Uint32Array;
  longest: number;
  begins: Float64Array;
  ends: Float64Array;
}

export interface Lane {
  name: string;
  /** By look. */
  rows: Row[];
  path: PathStep[];
}

export interface Lanes {
  looks: Look[];
  lanes: Lane[];
  /** Of every span, in begin order. */
  transfers: Uint32Array;
  chunks: Uint32Array;
}

/** The spans by lane; lanes where nothing happens are left out. */
export function readLanes(data: PageData): Lanes {
  const {count} = data, looks = data.looks ?? PHASES;
  const begins = readNumbers(data.begins, new Float64Array(count)), lengths = readNumbers(data.lengths, new Float64Array(count));
  for (let i = 1; i < count; ++i) begins[i] += begins[i - 1];
  const places = readNumbers(data.lanes, new Uint32Array(count)), phases = readNumbers(data.phases, new Uint8Array(count));
  const names = [...data.ranks, ...data.links];
  const byLane: number[][][] = names.map(() => looks.map(() => []));
  for (let i = 0; i < count; ++i) {
    const isOnLink = data.links.length > 0 && phases[i] === 1;
    byLane[isOnLink ? data.ranks.length + places[i] : places[i]][phases[i]].push(i);
  }
  const rowOf = (spans: number[]): Row => {
    let longest = 0;
    for (const span of spans) longest = Math.max(longest, lengths[span]);
    return {indices: Uint32Array.from(spans), longest, begins: Float64Array.from(spans, (span) => begins[span]),
            ends: Float64Array.from(spans, (span) => begins[span] + lengths[span])};
  };
  const lanes: Lane[] = [];
  names.forEach((name, i) => {
    if (byLane[i].every((spans) => spans.length === 0)) return;
    const path = data.path.filter(([, , link, rank]) => i < data.ranks.length ? rank === i : link === i - data.ranks.length);
    lanes.push({name, rows: byLane[i].map(rowOf), path});
  });
  return {looks, lanes, transfers: readNumbers(data.transfers, new Uint32Array(count)),
          chunks: readNumbers(data.chunks, new Uint32Array(count))};
}

export interface FoundSpan {
  look: number;
  /** In the columns. */
  index: number;
  begin: number;
  end: number;
}

/** The last span of a lane at a moment and a height of it, from 0 at its top to 1; null where there is none. */
export function spanAt(looks: Look[], lane: Lane, time: number, height: number): FoundSpan | null {
  let found: FoundSpan | null = null;
  lane.rows.forEach(({indices, longest, begins, ends}, look) => {
    const [, , from, part] = looks[look];
    if (height < from || height > from + part) return;
    for (let i = firstFrom(begins, time - longest); i < indices.length && begins[i] <= time; ++i) {
      if (ends[i] >= time) found = {look, index: indices[i], begin: begins[i], end: ends[i]};
    }
  });
  return found;
}
