// What is drawn of a plan: a box for each node, or for each layer that is folded, and the edges
// between boxes. Weights, states and constants are no boxes: nothing happens there.
import { layersOf } from "./layers.ts";
import type { Plan } from "./trace.ts";

export interface Box {
  key: string; // stays the same while others are folded and unfolded
  nodes: number[]; // one, or a folded layer's
  title: string;
  subtitle: string;
  device: string;
  split: number; // -1: inputs
  layer: number | null;
  folded: boolean;
}

export interface Edge {
  from: number; // boxes
  to: number;
}

export interface Scene {
  boxes: Box[]; // in the plan's order, so that edges lead from earlier to later ones
  edges: Edge[];
  boxOf: Map<number, number>; // by node
}

/** Whether two plans are drawn alike, node by node: those for other numbers of tokens are. */
export function sameShape(one: Plan, other: Plan): boolean {
  return (
    one.nodes.length === other.nodes.length &&
    one.nodes.every(({ name, split }, index) => {
      const twin = other.nodes[index];
      return twin?.name === name && twin.split === split;
    })
  );
}

/** Folded layers are named by this: a layer that is cut by splits has a box in each. */
export function groupKey(split: number, layer: number): string {
  return `${split}/${layer}`;
}

/** The keys of all groups that have more than one node. */
export function groupsOf(plan: Plan, layers: readonly (number | null)[]): string[] {
  const sizes = new Map<string, number>();
  plan.nodes.forEach((node, index) => {
    const layer = layers[index] ?? null;
    if (layer === null || node.split < 0) return;
    const key = groupKey(node.split, layer);
    sizes.set(key, (sizes.get(key) ?? 0) + 1);
  });
  return [...sizes].filter(([, size]) => size > 1).map(([key]) => key);
}

function shapeText(plan: Plan, node: number): string {
  const output = plan.nodes[node]?.outputs[0];
  return output ? `${output.dtype} [${output.shape.join(", ")}]` : "";
}

/** The name without the op, which the title says already. */
function placeText(name: string, op: string): string {
  const suffix = name.lastIndexOf("/");
  return suffix >= 0 && name.slice(suffix + 1).startsWith(op) ? name.slice(0, suffix) : name;
}

function nodeBox(plan: Plan, index: number, layer: number | null): Box | null {
  const node = plan.nodes[index];
  if (!node) return null;
  const isInput = node.kind === "input";
  return {
    key: `n${index}`,
    nodes: [index],
    title: isInput ? node.name : node.op,
    subtitle: isInput || plan.lazy ? shapeText(plan, index) : placeText(node.name, node.op),
    device: node.device,
    split: node.split,
    layer,
    folded: false,
  };
}

function isBoxed(plan: Plan, node: number): boolean {
  const kind = plan.nodes[node]?.kind;
  return kind === "op" || kind === "copy" || kind === "input";
}

/** Inputs first, then all nodes as they run. */
function drawingOrder(plan: Plan): number[] {
  const inputs = plan.nodes.flatMap((node, index) => (node.kind === "input" ? [index] : []));
  return [...inputs, ...plan.splits.flatMap((split) => split.nodes)];
}

export function makeScene(plan: Plan, folded: ReadonlySet<string>, layers = layersOf(plan)): Scene {
  const boxes: Box[] = [];
  const boxOf = new Map<number, number>();
  const groups = new Map<string, number>();
  for (const node of drawingOrder(plan)) {
    const layer = layers[node] ?? null;
    const split = plan.nodes[node]?.split ?? -1;
    const key = layer === null || split < 0 ? "" : groupKey(split, layer);
    const group = folded.has(key) ? groups.get(key) : undefined;
    const made = group === undefined ? nodeBox(plan, node, layer) : null;
    if (group !== undefined) {
      boxes[group]?.nodes.push(node);
      boxOf.set(node, group);
    } else if (made) {
      if (folded.has(key)) {
        groups.set(key, boxes.length);
        Object.assign(made, { key: `g${key}`, title: `Layer ${layer}`, folded: true });
      }
      boxOf.set(node, boxes.length);
      boxes.push(made);
    }
  }
  for (const box of boxes) if (box.folded) box.subtitle = `${box.nodes.length} nodes`;
  return { boxes, edges: edgesOf(plan, boxes, boxOf), boxOf };
}

function edgesOf(plan: Plan, boxes: readonly Box[], boxOf: ReadonlyMap<number, number>): Edge[] {
  const edges: Edge[] = [];
  boxes.forEach((box, to) => {
    const sources = new Set<number>();
    for (const node of box.nodes) {
      for (const [source] of plan.nodes[node]?.inputs ?? []) {
        const from = isBoxed(plan, source) ? boxOf.get(source) : undefined;
        if (from !== undefined && from !== to) sources.add(from);
      }
    }
    for (const from of sources) edges.push({ from, to });
  });
  return edges;
}
