import assert from "node:assert/strict";
import test from "node:test";
import {csvOf, duration, sizeText} from "../source/words.ts";

test("durations", () => {
  assert.equal(duration(500), "0.5 ns");
  assert.equal(duration(1500), "1.5 ns");
  assert.equal(duration(2_500_000), "2.5 us");
  assert.equal(duration(12_345_678_900), "12.35 ms");
  assert.equal(duration(1e12), "1 s");
  assert.equal(duration(1e13), "10 s");
  assert.equal(duration(12_345.6e12), "12346 s");
});

test("sizes", () => {
  assert.equal(sizeText(1000), "1000 B");
  assert.equal(sizeText(1024), "1 KiB");
  assert.equal(sizeText(1.5 * 2 ** 20), "1.5 MiB");
  assert.equal(sizeText(2 ** 60), "1024 PiB");
});

test("CSV quotes what it must", () => {
  assert.equal(csvOf([["a", "b, c"], ['say "x"', "two\nlines"]]), 'a,"b, c"\r\n"say ""x""","two\nlines"\r\n');
});
