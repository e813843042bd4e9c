// A trace of a plan with many layers, as a large model has, and one run of it.

interface Made {
  nodes: Record<string, unknown>[];
  order: number[];
}

const opsOfLayer = [
  "add_rms_norm",
  "linear",
  "rope",
  "rope_write_rows",
  "rope_write_rows",
  "attend",
  "linear",
  "add_rms_norm",
  "linear",
  "gated_multiply",
  "linear",
  "add",
  "scale",
  "clamp",
  "cast",
  "copy_rows",
  "mul",
  "sub",
  "square",
  "mean",
  "rsqrt",
  "gather_rows",
  "concat",
  "split",
  "tanh",
  "sigmoid",
  "relu",
  "gelu",
  "max",
  "min",
  "exp",
  "log",
  "softmax",
  "transpose",
  "pad",
  "slice",
];

function addNode(
  made: Made,
  op: string,
  name: string,
  inputs: number[],
  device: string,
  split: number,
): number {
  made.nodes.push({
    kind: split < 0 ? "input" : "op",
    op,
    family: op,
    name,
    text: `${op}()`,
    id: made.nodes.length,
    inputs: inputs.map((input) => [input, 0]),
    outputs: [{ dtype: "f32", shape: [8, 4096] }],
    split,
    device,
    bytes: 131072,
    operations: 65536,
    writes_state: false,
  });
  const index = made.nodes.length - 1;
  if (split >= 0) made.order.push(index);
  return index;
}

function record(node: number, position: number): Record<string, unknown> {
  const histogram = Array.from({ length: 32 }, (_, bin) =>
    Math.round(1000 * Math.exp(-((bin - 16) ** 2) / 40)),
  );
  const sample = [Array.from({ length: 32 }, (_, column) => Math.sin(node + column))];
  const value = {
    output: 0,
    rows: 8,
    count: 32768,
    nan: 0,
    inf: 0,
    min: -4,
    max: 4,
    mean: 0.01,
    mean_magnitude: 0.8,
    histogram,
    sample,
  };
  return {
    node,
    begin: 100 + position * 12,
    encode: 2,
    wait: 5 + (node % 7),
    bytes: 131072,
    operations: 65536,
    values: [value],
  };
}

/** Layers of 36 nodes, half of them on another device. */
export function largeTrace(layers: number): Record<string, unknown> {
  const made: Made = { nodes: [], order: [] };
  const tokens = addNode(made, "input", "tokens", [], "", -1);
  let last = addNode(made, "gather_rows", "token_embd.weight/gather_rows", [tokens], "cpu", 0);
  for (let layer = 0; layer < layers; ++layer) {
    const split = layer < layers / 2 ? 0 : 1;
    const device = split === 0 ? "cpu" : "vulkan:0";
    const first = last;
    opsOfLayer.forEach((op, place) => {
      const inputs =
        place === 3 || place === 4 ? [last, first] : place % 9 === 7 ? [first, last] : [last];
      last = addNode(made, op, `blk.${layer}.part${place}/${op}`, inputs, device, split);
    });
  }
  const splits = ["cpu", "vulkan:0"].map((device, split) => ({
    device,
    feeds: false,
    nodes: made.order.filter((node) => made.nodes[node]?.["split"] === split),
  }));
  const arenas = splits.map(({ device, nodes }) => ({
    device,
    bytes: 131072 * 8,
    lower_bound: 131072 * 7,
    items: nodes.map((node) => ({
      node,
      output: 0,
      offset: (node % 8) * 131072,
      bytes: 131072,
      first: made.order.indexOf(node),
      last: made.order.indexOf(node) + (node % 8),
    })),
  }));
  const plan = { plan: 1, nodes: made.nodes, splits, arenas };
  const records = [tokens, ...made.order].map(record);
  const run = { run: 1, plan: 1, begin: 100, end: 100 + records.length * 12, error: null, records };
  return {
    displayTimeUnit: "ms",
    traceEvents: [],
    heddle: { version: 1, program: "test", dropped_runs: 0, plans: [plan], runs: [run] },
  };
}
