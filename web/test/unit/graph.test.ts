import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { itemAt, itemName } from "../../src/graph/arena_view.ts";
import { fitted, panned, revealing, scaleLimits, zoomed } from "../../src/graph/camera.ts";
import { GraphModel } from "../../src/graph/graph_model.ts";
import { layerOfName, layersOf, repetition } from "../../src/graph/layers.ts";
import {
  boxAt,
  boxHeight,
  boxWidth,
  layOut,
  neighbour,
  visibleRanks,
} from "../../src/graph/layout.ts";
import { groupsOf, makeScene, type Scene } from "../../src/graph/scene.ts";
import {
  currentNode,
  endOf,
  figuresOf,
  phasesAt,
  stepsOf,
  totals,
} from "../../src/graph/timeline.ts";
import { parseTrace, timeOf, type Plan, type Run, type Trace } from "../../src/graph/trace.ts";
import { histogramText } from "../../src/graph/values_view.ts";
import { largeTrace } from "../support/large_trace.ts";

const sample = () =>
  parseTrace(
    readFileSync(join(process.env["HEDDLE_WEB_DIR"] ?? "", "test", "sample-trace.json"), "utf8"),
  );
const large = () => parseTrace(JSON.stringify(largeTrace(60)));

function firstRun(trace: Trace): Run {
  return trace.runs[0] ?? assert.fail("no run");
}

const planOf = (trace: Trace): Plan => firstRun(trace).plan;

test("layers by the names of weights and states", () => {
  assert.equal(layerOfName("blk.12.attn_q.weight/linear"), 12);
  assert.equal(layerOfName("model.layers.3.mlp/linear#2"), 3);
  assert.equal(layerOfName("k.0/attend"), 0);
  assert.equal(layerOfName("v.17"), 17);
  for (const name of [
    "output_norm.weight/rms_norm",
    "token_embd.weight",
    "blk.x",
    "block_table",
    "lengths",
    "12",
  ]) {
    assert.equal(layerOfName(name), null, name);
  }
});

test("layers by what repeats, where names say nothing", () => {
  const body = ["norm", "linear", "attend", "linear", "add"];
  const signs = ["embed", ...body, ...body, ...body, ...body, "norm", "out"];
  assert.deepEqual(repetition(signs), { first: 1, period: 5, end: 21 });
  assert.equal(repetition(["a", "b", "c", "d"]), null);
  assert.equal(repetition([...body, ...body]), null);
  assert.equal(repetition([]), null);
});

test("all nodes of a model's layers are found, and nothing else", () => {
  const plan = planOf(sample());
  const layers = layersOf(plan);
  plan.nodes.forEach((node, index) => {
    if (node.kind !== "op") assert.equal(layers[index], null);
    else if (/^(token_embd|output_norm)/.test(node.name))
      assert.equal(layers[index], null, node.name);
    else assert.equal(typeof layers[index], "number", node.name);
  });
  assert.deepEqual(groupsOf(plan, layers), ["1/0", "1/1", "2/2", "2/3"]);
});

function checkScene(plan: Plan, scene: Scene): void {
  const drawn = scene.boxes.flatMap((box) => box.nodes);
  const expected = plan.nodes.flatMap((node, index) =>
    ["op", "copy", "input"].includes(node.kind) ? [index] : [],
  );
  assert.deepEqual(
    [...drawn].sort((a, b) => a - b),
    expected,
  );
  for (const [node, box] of scene.boxOf) assert.ok(scene.boxes[box]?.nodes.includes(node));
  const pairs = new Set(scene.edges.map(({ from, to }) => `${from}>${to}`));
  assert.equal(pairs.size, scene.edges.length);
  plan.nodes.forEach((node, reader) => {
    for (const [source] of node.inputs) {
      const from = scene.boxOf.get(source);
      const to = scene.boxOf.get(reader);
      if (from !== undefined && to !== undefined && from !== to)
        assert.ok(pairs.has(`${from}>${to}`));
    }
  });
}

test("every node is in one box, and every reading an edge, folded or not", () => {
  for (const trace of [sample(), large()]) {
    const plan = planOf(trace);
    const groups = groupsOf(plan, layersOf(plan));
    const unfolded = makeScene(plan, new Set());
    const folded = makeScene(plan, new Set(groups));
    checkScene(plan, unfolded);
    checkScene(plan, folded);
    assert.ok(folded.boxes.length < unfolded.boxes.length / 2);
    assert.equal(folded.boxes.filter((box) => box.folded).length, groups.length);
  }
});

function checkLayout(plan: Plan, scene: Scene): void {
  const layout = layOut(plan, scene);
  for (const { from, to } of scene.edges) {
    if (from < to) assert.ok((layout.y[from] ?? 0) < (layout.y[to] ?? 0), "edges lead down");
  }
  for (const row of layout.ranks) {
    const sorted = [...row].sort((a, b) => (layout.x[a] ?? 0) - (layout.x[b] ?? 0));
    assert.deepEqual(row, sorted);
    row
      .slice(1)
      .forEach((box, at) =>
        assert.ok(
          (layout.x[box] ?? 0) >= (layout.x[row[at] ?? 0] ?? 0) + boxWidth,
          "boxes do not overlap",
        ),
      );
    assert.equal(
      new Set(row.map((box) => scene.boxes[box]?.split)).size,
      1,
      "a rank is of one split",
    );
  }
  scene.boxes.forEach((box, index) => {
    const x = layout.x[index] ?? NaN;
    const y = layout.y[index] ?? NaN;
    assert.ok(x >= 0 && x + boxWidth <= layout.width && y >= 0 && y + boxHeight <= layout.height);
    const frame = layout.frames.find(({ split }) => split === box.split) ?? assert.fail("no frame");
    assert.ok(
      frame.x < x &&
        frame.y < y &&
        frame.x + frame.width > x + boxWidth &&
        frame.y + frame.height > y + boxHeight,
    );
    assert.equal(boxAt(layout, x + 1, y + 1), index);
  });
  const frames = [...layout.frames].sort((a, b) => a.y - b.y);
  frames.slice(1).forEach((frame, at) => {
    const above = frames[at] ?? frame;
    assert.ok(frame.y > above.y + above.height, "splits do not overlap");
  });
}

test("boxes lie below what they read, apart, in the frame of their split", () => {
  for (const trace of [sample(), large()]) {
    const plan = planOf(trace);
    checkLayout(plan, makeScene(plan, new Set()));
    checkLayout(plan, makeScene(plan, new Set(groupsOf(plan, layersOf(plan)))));
  }
});

test("devices have lanes side by side", () => {
  const plan = planOf(sample());
  const scene = makeScene(plan, new Set());
  const layout = layOut(plan, scene);
  assert.deepEqual(layout.lanes, ["cpu", "vulkan:0"]);
  const right = Math.max(
    ...scene.boxes.flatMap((box, index) =>
      box.device === "cpu" ? [(layout.x[index] ?? 0) + boxWidth] : [],
    ),
  );
  const left = Math.min(
    ...scene.boxes.flatMap((box, index) =>
      box.device === "vulkan:0" ? [layout.x[index] ?? 0] : [],
    ),
  );
  assert.ok(right < left);
});

test("a plan of thousands of nodes is laid out within a frame or few", () => {
  const plan = planOf(large());
  const began = performance.now();
  layOut(plan, makeScene(plan, new Set()));
  assert.ok(performance.now() - began < 5000);
});

test("nothing is drawn of an empty plan, and nothing breaks", () => {
  const plan: Plan = { plan: 1, lazy: false, nodes: [], splits: [], arenas: [] };
  const layout = layOut(plan, makeScene(plan, new Set()));
  assert.equal(boxAt(layout, 0, 0), null);
  assert.deepEqual(visibleRanks(layout, 0, 100), [0, 0]);
});

test("what a window shows, and what is next to a box", () => {
  const plan = planOf(sample());
  const scene = makeScene(plan, new Set());
  const layout = layOut(plan, scene);
  const [first, end] = visibleRanks(layout, 700, 1100);
  layout.ranks.forEach((row, rank) => {
    const top = layout.y[row[0] ?? 0] ?? 0;
    assert.equal(rank >= first && rank < end, top + boxHeight >= 700 && top <= 1100);
  });
  const wide =
    layout.ranks.find((row) => row.length === 3 && (scene.boxes[row[0] ?? 0]?.split ?? -1) >= 0) ??
    assert.fail("no wide rank");
  const [left = 0, middle = 0, right = 0] = wide;
  assert.equal(neighbour(layout, left, "right"), middle);
  assert.equal(neighbour(layout, right, "right"), right);
  assert.equal(neighbour(layout, left, "left"), left);
  assert.equal(neighbour(layout, neighbour(layout, middle, "down"), "up"), middle);
  assert.equal(neighbour(layout, 0, "up"), 0);
});

test("zooming keeps what is under the pointer there, within limits", () => {
  const camera = { x: 10, y: 20, scale: 1 };
  const closer = zoomed(camera, 2, 100, 50);
  assert.equal(closer.x + 100 / closer.scale, camera.x + 100);
  assert.equal(closer.y + 50 / closer.scale, camera.y + 50);
  assert.equal(zoomed(camera, 1e9, 0, 0).scale, scaleLimits.most);
  assert.equal(zoomed(camera, 1e-9, 0, 0).scale, scaleLimits.least);
  assert.deepEqual(panned({ x: 0, y: 0, scale: 2 }, 10, -20), { x: -5, y: 10, scale: 2 });
});

test("fitting shows small pictures whole, and the top of large ones", () => {
  const window = { width: 800, height: 600 };
  const whole = fitted({ width: 400, height: 300 }, window);
  assert.equal(whole.scale, 1);
  assert.equal(whole.x, -200);
  const tall = fitted({ width: 400, height: 90000 }, window);
  assert.ok(tall.scale >= 0.5 && tall.y < 0 && tall.y > -100);
});

test("revealing moves no more than needed", () => {
  const window = { width: 800, height: 600 };
  const size = { width: 100, height: 50 };
  const camera = { x: 0, y: 0, scale: 1 };
  assert.deepEqual(revealing(camera, 300, 300, size, window), camera);
  assert.deepEqual(revealing(camera, 300, 1000, size, window), {
    x: 0,
    y: 1000 + 50 + 24 - 600,
    scale: 1,
  });
  assert.equal(revealing(camera, -500, 0, size, window).x, -524);
});

test("the sums of a run, and what has run at a time", () => {
  const run = firstRun(sample());
  const figures = figuresOf(run);
  const sum = totals(figures.values());
  assert.ok(Math.abs(sum.share - 1) < 1e-9);
  assert.ok(
    Math.abs(sum.time - run.records.reduce((all, record) => all + timeOf(record), 0)) < 1e-6,
  );
  assert.equal(phasesAt(run, run.begin - 1).size, 0);
  assert.equal(currentNode(run, run.begin - 1), null);
  const record = run.records[20] ?? assert.fail("no record");
  const middle = record.begin + timeOf(record) / 2;
  const phases = phasesAt(run, middle);
  assert.equal(phases.get(record.node), "running");
  assert.equal(currentNode(run, middle), record.node);
  for (const earlier of run.records.slice(9, 20)) assert.equal(phases.get(earlier.node), "done");
  assert.equal(phasesAt(run, Infinity).size, new Set(run.records.map(({ node }) => node)).size);
  assert.ok(endOf(run) >= record.begin);
});

test("steps count the nodes of all splits", () => {
  const run = firstRun(sample());
  const steps = stepsOf(run);
  const order = run.plan.splits.flatMap((split) => split.nodes);
  order.forEach((node, step) => assert.equal(steps.get(node), step));
  for (const arena of run.plan.arenas) {
    for (const item of arena.items)
      assert.equal(item.output < 0 ? item.first : steps.get(item.node), item.first);
  }
});

test("what lies at a place of an arena", () => {
  const { plan } = firstRun(sample());
  const steps = plan.splits.reduce((sum, split) => sum + split.nodes.length, 0);
  for (const arena of plan.arenas) {
    for (const item of arena.items) {
      const x = (item.first + 0.5) / steps; // where it is the newest
      const y = (item.offset + item.bytes / 2) / arena.bytes;
      assert.equal(itemAt(arena, steps, x, y), item, itemName(plan, item));
    }
  }
});

test("the view: folding, selecting, finding", () => {
  const trace = large();
  const model = new GraphModel();
  model.setTrace(trace, firstRun(trace));
  assert.ok(model.scene.boxes.length < 100, "large plans begin folded");
  assert.equal(model.search("blk.7.part5 ATTEND").length, 1);
  const [node = -1] = [...(model.matches ?? [])];
  model.select(node);
  const group = model.selectedBox ?? -1;
  assert.match(model.describe(group), /^Layer 7, 36 nodes, split 0 on cpu, .*folded$/);
  assert.ok(model.toggle(node));
  assert.match(model.describe(model.selectedBox ?? -1), /^attend, blk\.7\.part5, split 0 on cpu/);
  assert.ok(model.toggle(node));
  assert.equal(model.selectedBox, group);
  model.foldAll(false);
  assert.equal(model.scene.boxes.length, 2162);
  assert.equal(model.search("no such thing").length, 0);
  assert.equal(model.matchingBoxes?.size, 0);
  model.search(" ");
  assert.equal(model.matchingBoxes, null);
});

test("the view: plans for other numbers of tokens keep what is selected and folded, others do not", () => {
  const trace = sample();
  const [one, two] = trace.runs;
  if (!one || !two) assert.fail("two runs are wanted");
  assert.notEqual(one.plan, two.plan);
  const model = new GraphModel();
  model.setTrace(trace, one);
  model.foldAll(true);
  model.select(60);
  assert.ok(!model.setRun(two));
  assert.equal(model.selected, 60);
  assert.ok(model.scene.boxes.some((box) => box.folded));
  assert.equal(model.scene.boxes[0]?.subtitle, "i32 [1]");
  assert.ok(model.setRun(firstRun(large())));
  assert.equal(model.selected, null);
});

test("the view: a folded layer runs as long as one of its nodes does not", () => {
  const trace = large();
  const run = firstRun(trace);
  const model = new GraphModel();
  model.setTrace(trace, run);
  model.setTime((run.records[50]?.begin ?? 0) + 1);
  const phases = model.scene.boxes.map((_, box) => model.boxState(box, 0).phase);
  assert.deepEqual(phases.slice(0, 5), ["done", "done", "done", "running", "waiting"]);
  model.setTime(null);
  assert.ok(model.scene.boxes.every((_, box) => model.boxState(box, 0).phase === "done"));
});

test("the view: what ran just now glows, and then no more", () => {
  const trace = sample();
  const model = new GraphModel();
  model.setTrace(trace, firstRun(trace));
  const node = 18;
  model.light(node, 1000);
  const box = model.scene.boxOf.get(node) ?? -1;
  assert.equal(model.boxState(box, 1000).glow, 1);
  assert.ok(model.boxState(box, 1800).glow < 0.5);
  assert.ok(model.isLit(1800));
  assert.ok(!model.isLit(10000));
});

test("a histogram in words", () => {
  const value = {
    output: 0,
    rows: 1,
    count: 10,
    nan: 0,
    inf: 0,
    min: -1,
    max: 1,
    mean: 0,
    meanMagnitude: 0.5,
    histogram: [1, 7, 1, 1],
    sample: [],
  };
  assert.equal(histogramText(value), "Histogram from -1 to 1: most values from -0.5 to 0");
  assert.equal(histogramText({ ...value, histogram: [], min: null }), "No histogram");
});
