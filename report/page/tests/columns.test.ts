import assert from "node:assert/strict";
import test from "node:test";
import {bytesOf, firstFrom, readNumbers} from "../source/columns.ts";

const base64 = (...bytes: number[]) => btoa(String.fromCharCode(...bytes));

test("base64 is that of its standard", () => {
  // Source: RFC 4648, section 10.
  assert.deepEqual([...bytesOf("Zm9vYmE=")], [...new TextEncoder().encode("fooba")]);
  assert.deepEqual([...bytesOf("")], []);
});

test("numbers of LEB128, small, of several bytes, beyond 32 bits", () => {
  // 300 = 2 * 128 + 44; 2^35 has five groups of seven zero bits below its one.
  const column = base64(0, 127, 0x80 | 44, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 1);
  assert.deepEqual([...readNumbers(column, new Float64Array(4))], [0, 127, 300, 2 ** 35]);
  assert.deepEqual([...readNumbers(base64(0x80 | 44, 2), new Uint32Array(1))], [300]);
});

test("the first number that is so great", () => {
  const numbers = Float64Array.of(1, 3, 3, 8);
  assert.deepEqual([0, 1, 2, 3, 4, 8, 9].map((least) => firstFrom(numbers, least)), [0, 0, 1, 1, 3, 3, 4]);
  assert.equal(firstFrom(new Float64Array(), 1), 0);
});
