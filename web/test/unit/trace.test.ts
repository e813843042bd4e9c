import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LiveTrace } from "../../src/graph/live.ts";
import { parseTrace, timeOf, type Trace } from "../../src/graph/trace.ts";
import { largeTrace } from "../support/large_trace.ts";

const sampleText = readFileSync(
  join(process.env["HEDDLE_WEB_DIR"] ?? "", "test", "sample-trace.json"),
  "utf8",
);
type Fields = Record<string, unknown>;
type Sample = {
  heddle: {
    plans: (Fields & { nodes: Fields[]; splits: Fields[]; arenas: Fields[] })[];
    runs: (Fields & { records: Fields[] })[];
  };
};
const sample = () => JSON.parse(sampleText) as Sample;

function only<T>(items: readonly T[], index = 0): T {
  return items[index] ?? assert.fail(`there is no item ${index}`);
}

test("a trace that heddle wrote is read as a whole", () => {
  const raw = sample().heddle;
  const trace = parseTrace(sampleText);
  assert.equal(trace.plans.size, raw.plans.length);
  assert.equal(trace.runs.length, raw.runs.length);
  trace.runs.forEach((run, index) => {
    const records = only(raw.runs, index).records;
    assert.equal(run.records.length, records.length);
    run.records.forEach((record, at) => {
      const { encode, wait, node, values } = only(records, at);
      assert.equal(timeOf(record), Number(encode) + Number(wait));
      assert.equal(record.node, node);
      assert.equal(record.values.length, (values as unknown[]).length);
    });
  });
  const value = trace.runs
    .flatMap((run) => run.records)
    .flatMap((record) => record.values)
    .find((one) => one.histogram.length > 0);
  assert.equal(
    value?.histogram.reduce((sum, bin) => sum + bin, 0),
    value?.count,
  );
});

test("files that are something else are told apart", () => {
  assert.throws(() => parseTrace("PK\u0003"), /not JSON/);
  assert.throws(() => parseTrace("[]"), /another program/);
  assert.throws(() => parseTrace('{"traceEvents":[]}'), /another program.*Perfetto/);
  for (const other of ["{}", "7", "null", '"x"'])
    assert.throws(() => parseTrace(other), /not a trace/);
  assert.throws(
    () => parseTrace('{"heddle":{"version":2}}'),
    /version 2; this page reads version 1/,
  );
  assert.throws(() => parseTrace('{"heddle":[]}'), /heddle should be an object, and is a list/);
});

/** The message for the sample after `change` has been made to it. */
function refusal(change: (file: Sample) => void): string {
  const file = sample();
  change(file);
  try {
    parseTrace(JSON.stringify(file));
  } catch (error) {
    return (error as Error).message;
  }
  return "was accepted";
}

test("whatever is wrong is named with its place", () => {
  const plan = (file: Sample) => only(file.heddle.plans);
  const node = (file: Sample) => only(plan(file).nodes, 40);
  assert.match(
    refusal((file) => (node(file)["kind"] = "gadget")),
    /plans\[0\]\.nodes\[40\]\.kind is “gadget”/,
  );
  assert.match(
    refusal((file) => (node(file)["inputs"] = [[40, 0]])),
    /nodes\[40\]\.inputs\[0\]\[0\] is 40, .* from 0 to 39/,
  );
  assert.match(
    refusal((file) => (node(file)["inputs"] = [[-1, 0]])),
    /is -1/,
  );
  assert.match(
    refusal((file) => (node(file)["inputs"] = [[1.5, 0]])),
    /is 1.5/,
  );
  assert.match(
    refusal((file) => (node(file)["inputs"] = [null])),
    /inputs\[0\] should be a list, and is null/,
  );
  assert.match(
    refusal((file) => (node(file)["split"] = 99)),
    /nodes\[40\]\.split is 99/,
  );
  assert.match(
    refusal((file) => delete node(file)["name"]),
    /nodes\[40\]\.name should be text, and is missing/,
  );
  assert.match(
    refusal((file) => (node(file)["bytes"] = "many")),
    /bytes should be a number, and is string/,
  );
  assert.match(
    refusal((file) => (only(plan(file).splits)["nodes"] = [1e9])),
    /splits\[0\]\.nodes\[0\] is 1000000000/,
  );
  assert.match(
    refusal((file) => (only(plan(file).arenas)["items"] = [{ node: -1 }])),
    /arenas\[0\]\.items\[0\]\.node is -1/,
  );
  assert.match(
    refusal((file) => (only(file.heddle.runs)["plan"] = 77)),
    /runs\[0\]\.plan is 77, and there is no such plan/,
  );
  assert.match(
    refusal((file) => (only(only(file.heddle.runs).records, 3)["node"] = 5000)),
    /runs\[0\]\.records\[3\]\.node is 5000/,
  );
  assert.match(
    refusal((file) => (only(only(file.heddle.runs).records, 3)["begin"] = null)),
    /records\[3\]\.begin should be a number, and is null/,
  );
  assert.match(
    refusal(
      (file) =>
        (only(only(file.heddle.runs).records, 3)["values"] = [
          { output: 0, count: 1, sample: [[true]] },
        ]),
    ),
    /sample\[0\]\[0\] should be a number/,
  );
});

test("no damage to a file does more than make it refused", () => {
  const whole = JSON.stringify({
    heddle: { ...sample().heddle, runs: sample().heddle.runs.slice(0, 1) },
  });
  let seed = 12345;
  const random = (end: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % end;
  const scraps = ["null", "-1", "1e308", "[]", "{}", '"x"', "true", "0.5"];
  let refused = 0;
  for (let round = 0; round < 300; ++round) {
    // A number or a list somewhere becomes something else.
    const at = random(whole.length);
    const found = /-?\d+(\.\d+)?|\[\]/.exec(whole.slice(at));
    if (!found) continue;
    const from = at + found.index;
    const damaged =
      whole.slice(0, from) +
      (scraps[random(scraps.length)] ?? "") +
      whole.slice(from + found[0].length);
    try {
      parseTrace(damaged);
    } catch (error) {
      assert.equal((error as Error).name, "FormatError");
      ++refused;
    }
  }
  assert.ok(refused > 50, `${refused} of 300 were refused`);
});

const lazyRecord = (node: number, device: string) => ({
  node,
  begin: 10 * node,
  encode: 1,
  wait: 2,
  bytes: 8,
  operations: 4,
  values: [],
  op: "add",
  family: "binary",
  text: "binary(kind=add)",
  device,
  outputs: [{ dtype: "f32", shape: [2] }],
});

test("a run without a plan gets one from its records, cut by device", () => {
  const records = [
    lazyRecord(0, "cpu"),
    lazyRecord(1, "cpu"),
    lazyRecord(2, "vulkan:0"),
    lazyRecord(3, "cpu"),
  ];
  const run = { run: 1, plan: null, begin: 0, end: 50, error: null, records };
  const trace = parseTrace(JSON.stringify({ heddle: { version: 1, plans: [], runs: [run] } }));
  const { plan } = only(trace.runs);
  assert.ok(plan.lazy);
  assert.deepEqual(
    plan.splits.map(({ device, nodes }) => [device, nodes]),
    [
      ["cpu", [0, 1]],
      ["vulkan:0", [2]],
      ["cpu", [3]],
    ],
  );
  assert.equal(only(plan.nodes, 2).text, "binary(kind=add)");
});

/** The lines that the live view would get for a trace. */
function linesOf(file: Sample): string[] {
  const lines = file.heddle.plans.map((plan) => ({ type: "plan", ...plan }) as Fields);
  for (const { records, ...run } of file.heddle.runs) {
    lines.push({ type: "run", run: run["run"], plan: run["plan"], begin: run["begin"] });
    lines.push(...records.map((record) => ({ type: "record", run: run["run"], ...record })));
    lines.push({ type: "end", run: run["run"], end: run["end"], error: null });
  }
  return lines.map((line) => JSON.stringify(line));
}

const comparable = ({ plans, runs }: Trace) => ({ plans: [...plans], runs });

test("what came live is the same as what a file has", () => {
  const live = new LiveTrace();
  for (const line of linesOf(sample())) live.accept(line);
  assert.deepEqual(comparable(live.trace), comparable(parseTrace(sampleText)));
});

test("live runs without a plan grow", () => {
  const live = new LiveTrace();
  live.accept('{"type":"run","run":1,"plan":null,"begin":0}');
  for (const node of [0, 1, 2])
    live.accept(JSON.stringify({ type: "record", run: 1, ...lazyRecord(node, "cpu") }));
  const run = only(live.trace.runs);
  assert.equal(run.plan.nodes.length, 3);
  assert.equal(run.records.length, 3);
  assert.equal(run.end, null);
});

test("live lines of runs that began earlier, and of kinds to come, are passed over", () => {
  const live = new LiveTrace();
  assert.equal(live.accept('{"type":"record","run":5,"node":0,"begin":0}').kind, "nothing");
  assert.equal(live.accept('{"type":"end","run":5,"end":1}').kind, "nothing");
  assert.equal(live.accept('{"type":"weather"}').kind, "nothing");
  assert.throws(() => live.accept("{"), /not JSON/);
  assert.throws(
    () => live.accept('{"type":"run","run":1,"plan":3,"begin":0}'),
    /plan is 3, and that plan was never sent/,
  );
});

test("only the last runs are kept while watching", () => {
  const live = new LiveTrace();
  for (let run = 0; run < 100; ++run)
    live.accept(JSON.stringify({ type: "run", run, plan: null, begin: run }));
  assert.equal(live.trace.runs.length, 32);
  assert.equal(live.trace.droppedRuns, 68);
  assert.equal(live.accept('{"type":"end","run":3,"end":1}').kind, "nothing");
});

test("a large trace is read", () => {
  const trace = parseTrace(JSON.stringify(largeTrace(60)));
  assert.equal(only(trace.runs).plan.nodes.length, 2162);
});
