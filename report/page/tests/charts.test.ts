import assert from "node:assert/strict";
import test from "node:test";
import {entryOf, errorCurves} from "../source/charts/errors.ts";
import {pointText} from "../source/charts/rates.ts";
import {alignCurves, markText, showing, sizeMarks, wholeRange, within, zoomed, type Curve} from "../source/charts/series.ts";

const curve = (name: string, ...sizes: number[]): Curve => ({name, points: sizes.map((size, i) => ({size, value: i, text: name + i}))});

test("curves share their sizes", () => {
  const aligned = alignCurves([curve("a", 1024, 4096), curve("b", 2048, 4096)]);
  assert.deepEqual(aligned.sizes, [1024, 2048, 4096]);
  assert.deepEqual(aligned.positions, [10, 11, 12]);
  assert.deepEqual(aligned.values, [[0, null, 1], [null, 0, 1]]);
  assert.deepEqual(aligned.texts[1], [null, "b0", "b1"]);
});

test("a size that was measured twice has both points", () => {
  assert.deepEqual(alignCurves([curve("a", 8, 8, 16), curve("b", 8)]).values, [[0, 1, 2], [0, null, null]]);
});

test("ranges", () => {
  assert.deepEqual(wholeRange([10, 15, 20]), [9.7, 20.3]);
  assert.deepEqual(wholeRange([10]), [9, 11]);
  assert.deepEqual(zoomed([0, 8], 2, [0, 8]), [2, 6]);
  assert.deepEqual(zoomed([0, 4], 0.5, [0, 16]), [0, 8]);  // Not before the whole.
  assert.deepEqual(zoomed([0, 4], 1 / 100, [0, 16]), [0, 16]);
  assert.deepEqual(zoomed([0, 8], 100, [0, 8]), [3.75, 4.25]);  // Not less than the least.
  assert.deepEqual(within([-3, 1], [0, 8]), [0, 4]);
  assert.deepEqual(within([6, 10], [0, 8]), [4, 8]);
  assert.deepEqual(showing([0, 10], 5, [0, 40]), [0, 10]);
  assert.deepEqual(showing([0, 10], 19, [0, 40]), [10, 20]);
  assert.deepEqual(showing([20, 30], 10, [0, 40]), [9, 19]);
});

test("marks of sizes are powers of two, ten at most, and round numbers where there are none", () => {
  assert.deepEqual(sizeMarks([9.8, 13.2], 10), [10, 11, 12, 13]);
  assert.deepEqual(sizeMarks([10, 30], 10), [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]);
  assert.deepEqual(sizeMarks([10.1, 10.9], 10).map(markText), ["1.2 KiB", "1.4 KiB", "1.6 KiB", "1.8 KiB"]);
  assert.deepEqual([10, 20.58496250072116].map(markText), ["1 KiB", "1.5 MiB"]);
});

test("what is said of a point", () => {
  assert.equal(pointText("ring", 1e-6, 1e9, "", 50), "ring 1.00 GB/s, 1.00 us, 50.0 % of the bound");
  assert.equal(pointText("auto", 1e-6, 1e9, "tree", null), "auto by tree 1.00 GB/s, 1.00 us");
});

test("errors by algorithm, from the rows of their table", () => {
  const curves = errorCurves([["1024", "ring", "2.00", "1.00", "100.0"], ["1024", "", "1.00", "1.10", "-9.1"], ["x", "ring", "1", "1", "0.0"],
                              ["2048", "ring", "2.00", "0.00", "-"]]);
  assert.deepEqual(curves.map(({name, points}) => [name, points.map(({size, value}) => [size, value])]), [["ring", [[1024, 100]]], ["", [[1024, -9.1]]]]);
  assert.equal(curves[0].points[0].text, "ring 100.0 % (2.00 against 1.00 us)");
  assert.equal(curves[1].points[0].text, "-9.1 % (1.00 against 1.10 us)");
});

test("an algorithm's errors look as its curve does", () => {
  const names = ["tree", "ring in a.json", "ring in b.json"];
  assert.equal(entryOf(names, "ring", 0), 1);
  assert.equal(entryOf(names, "tree", 2), 0);
  assert.equal(entryOf(names, "", 4), 1);
  assert.equal(entryOf(names, "ri", 2), 2);
});
