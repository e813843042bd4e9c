// A run over time: what has run, what runs, and how much of the whole each node took.
import { timeOf, type NodeRecord, type Run } from "./trace.ts";

export type Phase = "waiting" | "running" | "done";

export interface NodeFigures {
  time: number; // microseconds, of the node's records together
  bytes: number;
  operations: number;
  share: number; // of the time of all nodes
  record: NodeRecord; // the last
}

/** Sums for each node that the run has records of. */
export function figuresOf(run: Run): Map<number, NodeFigures> {
  const figures = new Map<number, NodeFigures>();
  let total = 0;
  for (const record of run.records) {
    const time = timeOf(record);
    total += time;
    const before = figures.get(record.node);
    figures.set(record.node, {
      time: time + (before?.time ?? 0),
      bytes: record.bytes + (before?.bytes ?? 0),
      operations: record.operations + (before?.operations ?? 0),
      share: 0,
      record,
    });
  }
  for (const figure of figures.values()) figure.share = total > 0 ? figure.time / total : 0;
  return figures;
}

export function totals(figures: Iterable<NodeFigures>): {
  time: number;
  bytes: number;
  operations: number;
  share: number;
} {
  const sum = { time: 0, bytes: 0, operations: 0, share: 0 };
  for (const { time, bytes, operations, share } of figures) {
    sum.time += time;
    sum.bytes += bytes;
    sum.operations += operations;
    sum.share += share;
  }
  return sum;
}

/** The end of what is known of the run, in microseconds since the trace began. */
export function endOf(run: Run): number {
  return run.records.reduce(
    (end, record) => Math.max(end, record.begin + timeOf(record)),
    run.end ?? run.begin,
  );
}

/** For each node that has begun at `time`: whether it runs, or is done. The others wait. */
export function phasesAt(run: Run, time: number): Map<number, Phase> {
  const phases = new Map<number, Phase>();
  for (const record of run.records) {
    if (record.begin > time) continue;
    phases.set(record.node, record.begin + timeOf(record) > time ? "running" : "done");
  }
  return phases;
}

/** The node that began last at `time`; null if none has. */
export function currentNode(run: Run, time: number): number | null {
  let latest: NodeRecord | null = null;
  for (const record of run.records) {
    if (record.begin <= time && (!latest || record.begin >= latest.begin)) latest = record;
  }
  return latest?.node ?? null;
}

/** The step of each node: its place among all nodes of all splits. */
export function stepsOf(run: Run): Map<number, number> {
  const steps = new Map<number, number>();
  for (const split of run.plan.splits) for (const node of split.nodes) steps.set(node, steps.size);
  return steps;
}
