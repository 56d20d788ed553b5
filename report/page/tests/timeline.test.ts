import assert from "node:assert/strict";
import test from "node:test";
import type {PageData} from "../source/page_data.ts";
import {readLanes, spanAt} from "../source/timeline/lanes.ts";
import {pixelOf, setSpans} from "../source/timeline/pixels.ts";

const column = (...numbers: number[]) => btoa(String.fromCharCode(...numbers));  // Each below 128: a byte of LEB128.

/** Rank a sends from 0 to 10 and from 5 to 25; link a>b carries from 5 to 15; nothing happens at b. */
const data: PageData = {
  unit: 1000, end: 25, count: 3, every: 1, ranks: ["a", "b"], links: ["b>a", "a>b"],
  begins: column(0, 5, 0), lengths: column(10, 10, 20), lanes: column(0, 1, 0), phases: column(0, 1, 0),
  transfers: column(3, 3, 4), chunks: column(0, 0, 1), path: [[0, 10, -1, 0, 3, 0], [5, 15, 1, -1, 3, 0]],
};

test("spans come to their lanes, and lanes without any are left out", () => {
  const {looks, lanes, transfers, chunks} = readLanes(data);
  assert.deepEqual(lanes.map(({name}) => name), ["a", "a>b"]);
  assert.equal(looks[1][0], "wire");
  assert.deepEqual(lanes[0].rows[0], {indices: Uint32Array.of(0, 2), longest: 20, begins: Float64Array.of(0, 5), ends: Float64Array.of(10, 25)});
  assert.deepEqual([...lanes[1].rows[1].indices], [1]);
  assert.deepEqual(lanes.map(({path}) => path.length), [1, 1]);
  assert.deepEqual([[...transfers], [...chunks]], [[3, 3, 4], [0, 0, 1]]);
});

test("looks of a page's own take lanes of ranks", () => {
  const {lanes} = readLanes({...data, links: [], lanes: column(0, 0, 1), looks: [["computes", "c0", 0, 1], ["waits", "c3", 0, 1]]});
  assert.deepEqual(lanes.map(({rows}) => rows.map(({indices}) => indices.length)), [[1, 1], [1, 0]]);
});

test("the span at a moment is the last that is there, at the height of its look", () => {
  const {looks, lanes} = readLanes(data);
  const index = (lane: number, time: number, height: number) => spanAt(looks, lanes[lane], time, height)?.index;
  assert.equal(index(0, 2, 0.1), 0);
  assert.equal(index(0, 7, 0.1), 2);
  assert.equal(index(0, 20, 0.1), 2);  // Begun long before: found by the longest.
  assert.equal(index(0, 26, 0.1), undefined);
  assert.equal(index(0, 2, 0.5), undefined);  // There it would receive.
  assert.equal(index(1, 5, 0.9), 1);
});

test("pixels: what is in view, at least one for each, from the left edge on", () => {
  const {rows: [row]} = readLanes(data).lanes[0];
  const lines = (from: number, to: number, left: number) => {
    const pixels = new Uint32Array(2 * 10);
    // Ten columns for the view, one behind the other.
    setSpans(pixels, 10, row, {from, to, origin: -from * 10 / (to - from), perUnit: 10 / (to - from), left}, 1, 2, 9);
    assert.deepEqual([...pixels.slice(0, 10)], new Array(10).fill(0));
    return pixels.slice(10).map((pixel) => pixel / 9).join("");
  };
  assert.equal(lines(0, 50, 0), "1111100000");  // Until 25.
  assert.equal(lines(20, 40, 0), "1110000000");  // 25 is at 2.5, rounded up.
  assert.equal(lines(0, 50, 3), "0001100000");
  assert.equal(lines(0, 2000, 0), "1000000000");
  assert.equal(lines(30, 40, 0), "0000000000");
});

test("colours as pixels have their channels in the order of ImageData", () => {
  assert.deepEqual([...new Uint8Array(Uint32Array.of(pixelOf("#0a64ff")).buffer)], [10, 100, 255, 255]);
});
