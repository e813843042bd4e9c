// Which layer of a model each node belongs to: by the names of what it reads, or else by the ops
// repeating.
import type { Plan } from "./trace.ts";

const layerInName = /(?:^|[./_])(?:blk|layers?|blocks?|h|k|v|kv|cache)[._](\d+)(?=[./_#]|$)/;

/** The number in a name such as "blk.3.attn_q.weight/linear"; null if there is none. */
export function layerOfName(name: string): number | null {
  const digits = layerInName.exec(name)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** At least so often, for a repetition to count as layers. */
const leastRepeats = 3;
const leastPeriod = 3;

/**
 * The longest stretch in which the signs repeat: from `first`, in steps of `period`, up to `end`.
 * Null if nothing repeats often enough.
 */
export function repetition(
  signs: readonly string[],
): { first: number; period: number; end: number } | null {
  let best: { first: number; period: number; end: number } | null = null;
  for (let period = leastPeriod; period * leastRepeats <= signs.length; ++period) {
    let first = 0;
    for (let at = 0; at + period <= signs.length; ++at) {
      if (at + period < signs.length && signs[at] === signs[at + period]) continue;
      const repeats = Math.floor((at - first + period) / period);
      const end = first + repeats * period;
      if (repeats >= leastRepeats && end - first > (best ? best.end - best.first : 0))
        best = { first, period, end };
      first = at + 1;
    }
  }
  return best;
}

/** That of what the node reads, unless a weight without a layer says that it belongs to none. */
function inherited(plan: Plan, node: number, layers: readonly (number | null)[]): number | null {
  const sources = plan.nodes[node]?.inputs ?? [];
  if (sources.some(([source]) => plan.nodes[source]?.kind === "parameter")) return null;
  const found = sources
    .map(([source]) => layers[source])
    .filter((layer) => typeof layer === "number");
  return found.length > 0 ? Math.max(...found) : null;
}

/** For each node its layer, or null. Leaves have none. */
export function layersOf(plan: Plan): (number | null)[] {
  const working = plan.splits.flatMap((split) => split.nodes);
  const layers: (number | null)[] = plan.nodes.map(() => null);
  const named = working.filter((node) => layerOfName(plan.nodes[node]?.name ?? "") !== null);
  if (named.length > 0) {
    for (const node of working)
      layers[node] = layerOfName(plan.nodes[node]?.name ?? "") ?? inherited(plan, node, layers);
    return layers;
  }
  const found = repetition(working.map((node) => plan.nodes[node]?.text ?? ""));
  if (!found) return layers;
  for (let at = found.first; at < found.end; ++at) {
    layers[working[at] ?? 0] = Math.floor((at - found.first) / found.period);
  }
  return layers;
}
