import assert from "node:assert/strict";
import test from "node:test";
import {linksOf, loadsOf, loadStep} from "../source/panels/loads.ts";
import {orderOf} from "../source/panels/tables.ts";
import type {PageData} from "../source/page_data.ts";

test("tables sort by number, and by text", () => {
  assert.deepEqual(orderOf(["10", "9", "-", "9"], true, true), [2, 1, 3, 0]);
  assert.deepEqual(orderOf(["10", "9", "-", "9"], true, false), [0, 1, 3, 2]);
  assert.deepEqual(orderOf(["b", "10", "9"], false, true), [1, 2, 0]);
});

test("steps of loads end where those of the drawing do", () => {
  assert.deepEqual([0, 1, 25, 26, 50, 75, 95, 96, 100].map(loadStep), [0, 1, 1, 2, 2, 3, 4, 5, 5]);
});

test("links of a line, regular ones by the first, the step and how many", () => {
  assert.deepEqual(linksOf("0 1"), [0, 1]);
  assert.deepEqual(linksOf("5+2x3 70 80+64x2"), [5, 7, 9, 70, 80, 144]);
});

test("loads by slice and link", () => {
  const data = {links: ["a>b", "b>a"], loads: btoa(String.fromCharCode(0, 10, 20, 30)), busy: [7, 8]} as unknown as PageData;
  const load = loadsOf(data);
  assert.deepEqual([load(-1, 1), load(0, 1), load(1, 0), load(1, 1)], [8, 10, 20, 30]);
});
