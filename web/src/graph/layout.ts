// Where boxes lie: ranks from top to bottom, so that edges lead down; a lane for each device; a
// frame around each split. Units are pixels at zoom 1.
import type { Edge, Scene } from "./scene.ts";
import type { Plan } from "./trace.ts";

export const boxWidth = 178;
export const boxHeight = 46;
const columnGap = 26;
const rankGap = 30;
export const rankHeight = boxHeight + rankGap;
const lanePadding = 44; // between a lane's boxes and its edge: room for edges that pass by
const inputsInRow = 3;
const splitGap = 56; // above the first rank of a split, for its heading

export interface Frame {
  split: number; // index in the plan's splits; -1: the inputs
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  x: Float64Array; // of each box's left upper corner
  y: Float64Array;
  ranks: number[][]; // boxes of each rank, from left to right
  rankOf: Int32Array;
  frames: Frame[];
  lanes: string[]; // devices, from left to right
  width: number;
  height: number;
}

/**
 * The rank of each box: below all that it reads, and below every box of earlier splits. Without
 * edges (`chain`), one below the other.
 */
export function ranksOf(scene: Scene, chain: boolean): Int32Array {
  const ranks = new Int32Array(scene.boxes.length);
  const incoming = forwardEdges(scene);
  let base = 0;
  let highest = -1;
  let split: number | null = null;
  scene.boxes.forEach((box, index) => {
    if (split !== null && (box.split !== split || chain)) base = highest + 1;
    split = box.split;
    let rank = split < 0 ? Math.floor(index / inputsInRow) : base;
    for (const from of incoming[index] ?? []) rank = Math.max(rank, (ranks[from] ?? 0) + 1);
    ranks[index] = rank;
    highest = Math.max(highest, rank);
  });
  return ranks;
}

/** For each box those it reads, of those that stand before it. */
function forwardEdges({ boxes, edges }: Scene): number[][] {
  const incoming: number[][] = boxes.map(() => []);
  for (const { from, to } of edges) if (from < to) incoming[to]?.push(from);
  return incoming;
}

function grouped(ranks: Int32Array): number[][] {
  const rows: number[][] = [];
  ranks.forEach((rank, box) => (rows[rank] ??= []).push(box));
  return Array.from(rows, (row) => row ?? []);
}

/** Sweeps that put boxes near the middle of those they are joined to. */
const sweeps = 4;

function sortRows(rows: number[][], edges: readonly Edge[], boxes: number): Float64Array {
  const place = new Float64Array(boxes);
  const up: number[][] = Array.from({ length: boxes }, () => []);
  const down: number[][] = Array.from({ length: boxes }, () => []);
  for (const { from, to } of edges) {
    up[to]?.push(from);
    down[from]?.push(to);
  }
  const settle = (row: number[]) =>
    row.forEach((box, at) => (place[box] = at - (row.length - 1) / 2));
  rows.forEach(settle);
  for (let sweep = 0; sweep < sweeps; ++sweep) {
    const neighbours = sweep % 2 === 0 ? up : down;
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
      if (row.length < 2) continue;
      const middle = new Map(
        row.map((box) => [box, mean(neighbours[box] ?? [], place) ?? place[box] ?? 0]),
      );
      row.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0) || a - b);
      settle(row);
    }
  }
  return place;
}

function mean(boxes: readonly number[], place: Float64Array): number | null {
  if (boxes.length === 0) return null;
  return boxes.reduce((sum, box) => sum + (place[box] ?? 0), 0) / boxes.length;
}

export function layOut(plan: Plan, scene: Scene): Layout {
  const { boxes, edges } = scene;
  const rankOf = ranksOf(scene, plan.lazy);
  const ranks = grouped(rankOf);
  const place = sortRows(ranks, edges, boxes.length);
  const lanes = [...new Set(plan.splits.map((split) => split.device))];
  const laneOf = (box: number) => Math.max(0, lanes.indexOf(boxes[box]?.device ?? ""));
  const lefts = laneLefts(ranks, lanes.length, laneOf);
  const x = new Float64Array(boxes.length);
  const y = new Float64Array(boxes.length);
  let top = 0;
  let split: number | null = null;
  for (const row of ranks) {
    const first = boxes[row[0] ?? 0];
    if (first && first.split !== split) top += splitGap;
    split = first?.split ?? split;
    // A rank is in one lane, as it is in one split.
    const lane = laneOf(row[0] ?? 0);
    const middle = ((lefts[lane] ?? 0) + (lefts[lane + 1] ?? 0)) / 2;
    for (const box of row) {
      x[box] = middle + (place[box] ?? 0) * (boxWidth + columnGap) - boxWidth / 2;
      y[box] = top;
    }
    top += rankHeight;
  }
  return {
    x,
    y,
    ranks,
    rankOf,
    frames: framesOf(scene, x, y),
    lanes,
    width: lefts[lanes.length] ?? 0,
    height: top,
  };
}

/** Left edges of the lanes, and the right edge of the last. */
function laneLefts(ranks: number[][], lanes: number, laneOf: (box: number) => number): number[] {
  const widest = new Array<number>(lanes).fill(1);
  for (const row of ranks) {
    const lane = laneOf(row[0] ?? 0);
    widest[lane] = Math.max(widest[lane] ?? 1, row.length);
  }
  const lefts = [0];
  for (const columns of widest) {
    const width = columns * boxWidth + (columns - 1) * columnGap + 2 * lanePadding;
    lefts.push((lefts[lefts.length - 1] ?? 0) + width);
  }
  return lefts;
}

const frameMargin = 16;

function framesOf(scene: Scene, x: Float64Array, y: Float64Array): Frame[] {
  const frames = new Map<number, Frame>();
  scene.boxes.forEach((box, index) => {
    const left = (x[index] ?? 0) - frameMargin;
    const top = (y[index] ?? 0) - frameMargin / 2;
    const right = (x[index] ?? 0) + boxWidth + frameMargin;
    const bottom = (y[index] ?? 0) + boxHeight + frameMargin / 2;
    const frame = frames.get(box.split);
    if (!frame) {
      frames.set(box.split, {
        split: box.split,
        x: left,
        y: top,
        width: right - left,
        height: bottom - top,
      });
      return;
    }
    const farRight = Math.max(frame.x + frame.width, right);
    const farBottom = Math.max(frame.y + frame.height, bottom);
    frame.x = Math.min(frame.x, left);
    frame.y = Math.min(frame.y, top);
    frame.width = farRight - frame.x;
    frame.height = farBottom - frame.y;
  });
  return [...frames.values()];
}

/** The box at a point; null if there is none. Rows are found by their height. */
export function boxAt(layout: Layout, x: number, y: number): number | null {
  let low = 0;
  let high = layout.ranks.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const row = layout.ranks[middle] ?? [];
    const top = layout.y[row[0] ?? 0] ?? 0;
    if (y < top) high = middle - 1;
    else if (y > top + boxHeight) low = middle + 1;
    else
      return (
        row.find((box) => x >= (layout.x[box] ?? 0) && x <= (layout.x[box] ?? 0) + boxWidth) ?? null
      );
  }
  return null;
}

/** The ranks that a stretch from `top` to `bottom` may show: first, and one beyond the last. */
export function visibleRanks(layout: Layout, top: number, bottom: number): [number, number] {
  const topOf = (rank: number) => layout.y[layout.ranks[rank]?.[0] ?? 0] ?? 0;
  const search = (found: (rank: number) => boolean) => {
    let low = 0;
    let high = layout.ranks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (found(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return [search((rank) => topOf(rank) + boxHeight >= top), search((rank) => topOf(rank) > bottom)];
}

export type Direction = "up" | "down" | "left" | "right";

/** The box next to one: in its rank, or the nearest of the rank above or below. */
export function neighbour(layout: Layout, box: number, direction: Direction): number {
  const rank = layout.rankOf[box] ?? 0;
  const row = layout.ranks[rank] ?? [];
  if (direction === "left" || direction === "right") {
    return row[row.indexOf(box) + (direction === "left" ? -1 : 1)] ?? box;
  }
  const step = direction === "up" ? -1 : 1;
  const others = layout.ranks[rank + step] ?? [];
  const distance = (other: number) => Math.abs((layout.x[other] ?? 0) - (layout.x[box] ?? 0));
  return (
    others.reduce<number | null>(
      (best, other) => (best === null || distance(other) < distance(best) ? other : best),
      null,
    ) ?? box
  );
}
