import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, microseconds, percent, quantity } from "../../src/base/format.ts";
import { cppSource } from "../../embed.mjs";

test("quantities as people read them", () => {
  assert.deepEqual([0, 1023, 1024, 1536, 5 * 1024 ** 3, 1e18].map(bytes), [
    "0 B",
    "1023 B",
    "1.00 KiB",
    "1.50 KiB",
    "5.00 GiB",
    "909495 TiB",
  ]);
  assert.deepEqual([0.5, 12.34, 999, 1500, 2.5e6].map(microseconds), [
    "0.50 µs",
    "12.3 µs",
    "999 µs",
    "1.50 ms",
    "2.50 s",
  ]);
  assert.deepEqual([0, 0.1234567, -3, 1e-9, 123456789, NaN].map(quantity), [
    "0",
    "0.1235",
    "-3",
    "1.000e-9",
    "1.235e+8",
    "NaN",
  ]);
  assert.equal(percent(0.1234), "12.3 %");
  assert.equal(count(1, "node"), "1 node");
  assert.equal(count(2000, "box", "boxes"), "2,000 boxes");
});

test("the page as C++ source has every file once, and only the hashed ones as unchanging", () => {
  const source = cppSource("/somewhere", ["index.html", "page-12.js"]);
  assert.equal(source.match(/\.incbin/g)?.length, 2);
  assert.match(source, /\.incbin "\/somewhere\/page-12\.js"/);
  assert.match(source, /WebFile\{"\/index\.html", "text\/html; charset=utf-8", .*, false\}/);
  assert.match(source, /WebFile\{"\/page-12\.js", "text\/javascript; charset=utf-8", .*, true\}/);
  assert.throws(() => cppSource("/x", ["a.exe"]), /a\.exe: no content type/);
});
