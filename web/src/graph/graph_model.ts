// The state of the view: which run is shown, what is folded, selected and found, and at what time.
import { bytes, count, microseconds } from "../base/format.ts";
import type { BoxState } from "./drawing.ts";
import { layersOf } from "./layers.ts";
import { layOut, type Layout } from "./layout.ts";
import { groupKey, groupsOf, makeScene, sameShape, type Scene } from "./scene.ts";
import {
  currentNode,
  endOf,
  figuresOf,
  phasesAt,
  totals,
  type NodeFigures,
  type Phase,
} from "./timeline.ts";
import { type Plan, type Run, type Trace } from "./trace.ts";

/** Plans of more nodes than this begin with their layers folded. */
const foldFrom = 150;

/** Milliseconds until a node that ran just now looks like any other. */
const glowTime = 1500;

export class GraphModel {
  trace: Trace | null = null;
  run: Run | null = null;
  scene: Scene = { boxes: [], edges: [], boxOf: new Map() };
  layout: Layout | null = null;
  selected: number | null = null; // a node
  time: number | null = null; // microseconds since the trace began; null: after the end
  matches: Set<number> | null = null; // nodes
  figures = new Map<number, NodeFigures>();
  private plan: Plan | null = null;
  private layers: (number | null)[] = [];
  private folded = new Set<string>();
  private phases = new Map<number, Phase>();
  private longest = 0; // microseconds, of a box
  private boxTimes: (number | null)[] = [];
  private readonly lit = new Map<number, number>(); // when a node ran, by performance.now()

  setTrace(trace: Trace, run: Run | null): void {
    this.trace = trace;
    this.plan = null;
    this.lit.clear();
    this.setRun(run);
  }

  /** Returns whether it looks different: else what is folded and selected stays so. */
  setRun(run: Run | null): boolean {
    const plan = run?.plan ?? null;
    const isAlike = plan !== null && this.looksLike(plan);
    this.run = run;
    this.time = null;
    if (!isAlike) {
      this.setPlan(plan);
    } else if (plan !== this.plan) {
      this.plan = plan;
      this.rebuild();
    }
    this.refreshFigures();
    return !isAlike;
  }

  /** Whether the plan that is shown is drawn like this one. */
  looksLike(plan: Plan): boolean {
    return this.plan !== null && (plan === this.plan || sameShape(plan, this.plan));
  }

  private setPlan(plan: Plan | null): void {
    this.plan = plan;
    this.selected = null;
    this.matches = null;
    this.layers = plan ? layersOf(plan) : [];
    const working = plan?.splits.reduce((sum, split) => sum + split.nodes.length, 0) ?? 0;
    this.folded = new Set(plan && working > foldFrom ? groupsOf(plan, this.layers) : []);
    this.rebuild();
  }

  /** A run without a plan has got more nodes. */
  growPlan(): void {
    if (this.plan && this.layers.length !== this.plan.nodes.length) {
      this.layers = layersOf(this.plan);
      this.rebuild();
    }
    this.refreshFigures();
  }

  private rebuild(): void {
    if (!this.plan) {
      this.scene = { boxes: [], edges: [], boxOf: new Map() };
      this.layout = null;
      return;
    }
    this.scene = makeScene(this.plan, this.folded, this.layers);
    this.layout = layOut(this.plan, this.scene);
    this.sumBoxes();
  }

  /** After records have come, or another run. */
  refreshFigures(): void {
    this.figures = this.run ? figuresOf(this.run) : new Map();
    this.refreshPhases();
    this.sumBoxes();
  }

  private sumBoxes(): void {
    this.boxTimes = this.scene.boxes.map(({ nodes, split }) => {
      if (split < 0) return null; // inputs take no time
      const known = nodes.flatMap((node) => this.figures.get(node) ?? []);
      return known.length > 0 ? totals(known).time : null;
    });
    this.longest = this.boxTimes.reduce<number>((most, time) => Math.max(most, time ?? 0), 0);
  }

  setTime(time: number | null): void {
    this.time = time;
    this.refreshPhases();
  }

  private refreshPhases(): void {
    this.phases = this.run ? phasesAt(this.run, this.time ?? Infinity) : new Map();
  }

  get end(): number {
    return this.run ? endOf(this.run) : 0;
  }

  /** A node ran just now; it glows, unless `now` is null. */
  light(node: number, now: number | null): void {
    this.phases.set(node, "done");
    if (now !== null) this.lit.set(node, now);
  }

  /** Whether something glows still. */
  isLit(now: number): boolean {
    for (const [node, when] of this.lit) if (now - when > glowTime) this.lit.delete(node);
    return this.lit.size > 0;
  }

  boxState(index: number, now: number): BoxState {
    const nodes = this.scene.boxes[index]?.nodes ?? [];
    const time = this.boxTimes[index] ?? null;
    let glow = 0;
    if (this.lit.size > 0) {
      for (const node of nodes)
        glow = Math.max(glow, 1 - (now - (this.lit.get(node) ?? -Infinity)) / glowTime);
    }
    return {
      phase: this.phaseOf(nodes),
      time,
      heat: time !== null && this.longest > 0 ? time / this.longest : 0,
      glow,
      trouble: nodes.some((node) => this.hasTrouble(node)),
    };
  }

  private phaseOf(nodes: readonly number[]): Phase | "unknown" {
    if (!this.run) return "unknown";
    let begun = 0;
    for (const node of nodes) {
      const phase = this.phases.get(node);
      if (phase === "running") return "running";
      if (phase === "done") ++begun;
    }
    if (begun === 0) return "waiting";
    return begun === nodes.length || this.time === null ? "done" : "running";
  }

  hasTrouble(node: number): boolean {
    return (
      this.figures.get(node)?.record.values.some((value) => value.nan > 0 || value.inf > 0) ?? false
    );
  }

  /** The box that shows the selected node. */
  get selectedBox(): number | null {
    return this.selected === null ? null : (this.scene.boxOf.get(this.selected) ?? null);
  }

  select(node: number | null): void {
    this.selected = node;
  }

  selectBox(box: number | null): void {
    this.selected = box === null ? null : (this.scene.boxes[box]?.nodes[0] ?? null);
  }

  /** The node that the run is at; null before it and after it. */
  current(): number | null {
    return this.run && this.time !== null ? currentNode(this.run, this.time) : null;
  }

  /** Folds or unfolds the layer of a node; returns whether it has one. */
  toggle(node: number): boolean {
    const layer = this.layers[node] ?? null;
    if (!this.plan || layer === null) return false;
    const key = groupKey(this.plan.nodes[node]?.split ?? -1, layer);
    if (!groupsOf(this.plan, this.layers).includes(key)) return false;
    if (!this.folded.delete(key)) this.folded.add(key);
    this.rebuild();
    return true;
  }

  foldAll(fold: boolean): void {
    this.folded = new Set(fold && this.plan ? groupsOf(this.plan, this.layers) : []);
    this.rebuild();
  }

  get hasGroups(): boolean {
    return this.plan !== null && groupsOf(this.plan, this.layers).length > 0;
  }

  /** Finds nodes by op, name, family, device or kind; all words must be there. */
  search(query: string): number[] {
    const words = query
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    if (words.length === 0 || !this.plan) {
      this.matches = null;
      return [];
    }
    const found = this.plan.nodes.flatMap((node, index) => {
      if (!this.scene.boxOf.has(index)) return [];
      const text =
        `${node.op} ${node.name} ${node.family} ${node.device} ${node.kind} %${node.id}`.toLowerCase();
      return words.every((word) => text.includes(word)) ? [index] : [];
    });
    this.matches = new Set(found);
    return found;
  }

  get matchingBoxes(): Set<number> | null {
    if (!this.matches) return null;
    return new Set([...this.matches].flatMap((node) => this.scene.boxOf.get(node) ?? []));
  }

  headings(): Map<number, string> {
    const headings = new Map<number, string>([[-1, "Inputs"]]);
    this.plan?.splits.forEach((split, index) => {
      const known = split.nodes.flatMap((node) => this.figures.get(node) ?? []);
      const time = known.length > 0 ? ` · ${microseconds(totals(known).time)}` : "";
      const name = split.feeds ? "Feeds" : `Split ${index}`;
      headings.set(
        index,
        `${name} · ${split.device} · ${count(split.nodes.length, "node")}${time}`,
      );
    });
    return headings;
  }

  /** A box in a sentence, for those who do not see it. */
  describe(index: number): string {
    const box = this.scene.boxes[index];
    if (!box) return "";
    const known = box.nodes.flatMap((node) => this.figures.get(node) ?? []);
    const sum = totals(known);
    const figures =
      known.length > 0 && sum.time > 0 ? `, ${microseconds(sum.time)}, ${bytes(sum.bytes)}` : "";
    const where = box.split < 0 ? "input" : `split ${box.split} on ${box.device}`;
    const trouble = box.nodes.some((node) => this.hasTrouble(node))
      ? ", values that are not finite"
      : "";
    return `${box.title}, ${box.subtitle}, ${where}${figures}${box.folded ? ", folded" : ""}${trouble}`;
  }
}
