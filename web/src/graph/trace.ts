// Plans and runs as docs/trace.md describes them, read and checked.
import { fields, FormatError, index, list, maybeNumber, number, text } from "./check.ts";

export interface Plan {
  plan: number;
  lazy: boolean; // made up for a run without a plan: no names, edges and arenas
  nodes: PlanNode[];
  splits: Split[];
  arenas: Arena[];
}

const kinds = ["op", "copy", "input", "parameter", "state", "constant"] as const;
export type NodeKind = (typeof kinds)[number];

export interface PlanNode {
  kind: NodeKind;
  op: string;
  family: string;
  name: string;
  text: string;
  id: number;
  inputs: [node: number, output: number][];
  outputs: { dtype: string; shape: number[] }[];
  split: number; // -1 for leaves
  device: string;
  bytes: number;
  operations: number;
}

export interface Split {
  device: string;
  feeds: boolean;
  nodes: number[];
}

export interface ArenaItem {
  node: number;
  output: number; // -1: the node's workspace
  offset: number;
  bytes: number;
  first: number; // steps, both counted
  last: number;
}

export interface Arena {
  device: string;
  bytes: number;
  lowerBound: number;
  items: ArenaItem[];
}

/** The statistics of an output. */
export interface Value {
  output: number;
  rows: number | null;
  count: number;
  nan: number;
  inf: number;
  min: number | null;
  max: number | null;
  mean: number | null;
  meanMagnitude: number | null;
  histogram: number[];
  sample: (number | null)[][];
}

/** What a node did in a run. Times are microseconds since the trace began. */
export interface NodeRecord {
  node: number;
  begin: number;
  encode: number;
  wait: number;
  bytes: number;
  operations: number;
  values: Value[];
}

export interface Run {
  run: number;
  plan: Plan;
  begin: number;
  end: number | null; // null: still under way
  error: string | null;
  records: NodeRecord[];
}

export interface Trace {
  program: string;
  droppedRuns: number;
  plans: Map<number, Plan>;
  runs: Run[];
}

export function timeOf(record: NodeRecord): number {
  return record.encode + record.wait;
}

const version = 1;

/** Throws FormatError saying what is wrong with the file. */
export function parseTrace(content: string): Trace {
  let file: unknown;
  try {
    file = JSON.parse(content);
  } catch {
    throw new FormatError("This file is not JSON. A trace is what heddle's --trace FILE writes.");
  }
  const whole = typeof file === "object" && file !== null ? (file as Record<string, unknown>) : {};
  if (whole["heddle"] === undefined) {
    const isTrace = Array.isArray(file) || whole["traceEvents"] !== undefined;
    throw new FormatError(
      isTrace
        ? "This is a trace of another program (it has no “heddle” member): Perfetto's viewer may open it."
        : "This is not a trace. A trace is what heddle's --trace FILE writes.",
    );
  }
  return traceOf(whole["heddle"]);
}

function traceOf(value: unknown): Trace {
  const heddle = fields(value, "heddle");
  if (heddle["version"] !== version) {
    throw new FormatError(
      `The trace is of version ${JSON.stringify(heddle["version"])}; this page reads version ${version}.`,
    );
  }
  const plans = new Map(list(heddle["plans"], "plans", planOf).map((plan) => [plan.plan, plan]));
  return {
    program: typeof heddle["program"] === "string" ? heddle["program"] : "",
    droppedRuns: maybeNumber(heddle["dropped_runs"], "dropped_runs") ?? 0,
    plans,
    runs: list(heddle["runs"], "runs", (run, where) => runOf(run, where, plans)),
  };
}

export function planOf(value: unknown, where: string): Plan {
  const plan = fields(value, where);
  const splits = Array.isArray(plan["splits"]) ? plan["splits"].length : 0;
  const nodes: PlanNode[] = [];
  list(plan["nodes"], `${where}.nodes`, (node, place) =>
    nodes.push(nodeOf(node, place, nodes.length, splits)),
  );
  return {
    plan: number(plan["plan"], `${where}.plan`),
    lazy: false,
    nodes,
    splits: list(plan["splits"], `${where}.splits`, (split, place) =>
      splitOf(split, place, nodes.length),
    ),
    arenas: list(plan["arenas"], `${where}.arenas`, (arena, place) =>
      arenaOf(arena, place, nodes.length),
    ),
  };
}

function outputOf(value: unknown, where: string): PlanNode["outputs"][number] {
  const output = fields(value, where);
  return {
    dtype: text(output["dtype"], `${where}.dtype`),
    shape: list(output["shape"], `${where}.shape`, number),
  };
}

/** `at`: its own index; what it reads must stand before it. */
function nodeOf(value: unknown, where: string, at: number, splits: number): PlanNode {
  const node = fields(value, where);
  const kind = text(node["kind"], `${where}.kind`);
  const known = kinds.find((name) => name === kind);
  if (!known) throw new FormatError(`${where}.kind is “${kind}”, which this page does not know.`);
  return {
    kind: known,
    op: text(node["op"], `${where}.op`),
    family: text(node["family"], `${where}.family`),
    name: text(node["name"], `${where}.name`),
    text: text(node["text"], `${where}.text`),
    id: maybeNumber(node["id"], `${where}.id`) ?? -1,
    inputs: list(node["inputs"], `${where}.inputs`, (input, place) => {
      const [from, output] = list(input, place, number);
      return [index(from, `${place}[0]`, at), output ?? 0];
    }),
    outputs: list(node["outputs"], `${where}.outputs`, outputOf),
    split: index(node["split"], `${where}.split`, splits, -1),
    device: text(node["device"], `${where}.device`),
    bytes: number(node["bytes"], `${where}.bytes`),
    operations: number(node["operations"], `${where}.operations`),
  };
}

function splitOf(value: unknown, where: string, nodes: number): Split {
  const split = fields(value, where);
  return {
    device: text(split["device"], `${where}.device`),
    feeds: split["feeds"] === true,
    nodes: list(split["nodes"], `${where}.nodes`, (node, place) => index(node, place, nodes)),
  };
}

function arenaOf(value: unknown, where: string, nodes: number): Arena {
  const arena = fields(value, where);
  return {
    device: text(arena["device"], `${where}.device`),
    bytes: number(arena["bytes"], `${where}.bytes`),
    lowerBound: number(arena["lower_bound"], `${where}.lower_bound`),
    items: list(arena["items"], `${where}.items`, (entry, place) => {
      const item = fields(entry, place);
      return {
        node: index(item["node"], `${place}.node`, nodes),
        output: number(item["output"], `${place}.output`),
        offset: number(item["offset"], `${place}.offset`),
        bytes: number(item["bytes"], `${place}.bytes`),
        first: number(item["first"], `${place}.first`),
        last: number(item["last"], `${place}.last`),
      };
    }),
  };
}

function runOf(value: unknown, where: string, plans: ReadonlyMap<number, Plan>): Run {
  const run = fields(value, where);
  const plan =
    run["plan"] === null
      ? lazyPlan(run["records"], where)
      : plans.get(number(run["plan"], `${where}.plan`));
  if (!plan)
    throw new FormatError(`${where}.plan is ${String(run["plan"])}, and there is no such plan.`);
  return {
    run: number(run["run"], `${where}.run`),
    plan,
    begin: number(run["begin"], `${where}.begin`),
    end: maybeNumber(run["end"], `${where}.end`),
    error: typeof run["error"] === "string" ? run["error"] : null,
    records: list(run["records"], `${where}.records`, (record, place) =>
      recordOf(record, place, plan),
    ),
  };
}

export function recordOf(value: unknown, where: string, plan: Plan): NodeRecord {
  const record = fields(value, where);
  return {
    node: index(record["node"], `${where}.node`, plan.nodes.length),
    begin: number(record["begin"], `${where}.begin`),
    encode: maybeNumber(record["encode"], `${where}.encode`) ?? 0,
    wait: maybeNumber(record["wait"], `${where}.wait`) ?? 0,
    bytes: maybeNumber(record["bytes"], `${where}.bytes`) ?? 0,
    operations: maybeNumber(record["operations"], `${where}.operations`) ?? 0,
    values: list(record["values"] ?? [], `${where}.values`, valueOf),
  };
}

function valueOf(value: unknown, where: string): Value {
  const stats = fields(value, where);
  const optional = (name: string) => maybeNumber(stats[name], `${where}.${name}`);
  return {
    output: number(stats["output"], `${where}.output`),
    rows: optional("rows"),
    count: number(stats["count"], `${where}.count`),
    nan: optional("nan") ?? 0,
    inf: optional("inf") ?? 0,
    min: optional("min"),
    max: optional("max"),
    mean: optional("mean"),
    meanMagnitude: optional("mean_magnitude"),
    histogram: list(stats["histogram"] ?? [], `${where}.histogram`, number),
    sample: list(stats["sample"] ?? [], `${where}.sample`, (row, place) =>
      list(row, place, maybeNumber),
    ),
  };
}

/** For a run without a plan: its records in their order, cut where the device changes. */
export function lazyPlan(records: unknown, where: string): Plan {
  const plan: Plan = { plan: -1, lazy: true, nodes: [], splits: [], arenas: [] };
  list(records, `${where}.records`, (record, place) => addLazyNode(plan, record, place));
  return plan;
}

/** Lets the plan have the node that a record of a run without a plan tells of. */
export function addLazyNode(plan: Plan, value: unknown, where: string): void {
  const record = fields(value, where);
  const at = index(record["node"], `${where}.node`, plan.nodes.length + 1);
  if (at < plan.nodes.length) return;
  const device = text(record["device"], `${where}.device`);
  let split = plan.splits[plan.splits.length - 1];
  if (split?.device !== device) {
    split = { device, feeds: false, nodes: [] };
    plan.splits.push(split);
  }
  split.nodes.push(at);
  const op = text(record["op"], `${where}.op`);
  plan.nodes.push({
    kind: "op",
    op,
    family: text(record["family"], `${where}.family`),
    name: `${op} #${at}`,
    text: text(record["text"], `${where}.text`),
    id: at,
    inputs: [],
    outputs: list(record["outputs"] ?? [], `${where}.outputs`, outputOf),
    split: plan.splits.length - 1,
    device,
    bytes: maybeNumber(record["bytes"], `${where}.bytes`) ?? 0,
    operations: maybeNumber(record["operations"], `${where}.operations`) ?? 0,
  });
}
