// Arenas as pictures: steps from left to right, addresses from top to bottom, a block for each value
// while it is alive.
import { h } from "../base/dom.ts";
import { bytes, count } from "../base/format.ts";
import { colours } from "./colours.ts";
import type { GraphModel } from "./graph_model.ts";
import { PagedTable } from "./paged_table.ts";
import { stepsOf } from "./timeline.ts";
import type { Arena, ArenaItem, Plan } from "./trace.ts";

const height = 220; // pixels

/**
 * The item at a place in the picture, given from 0 to 1; null if there is none. Where a value takes
 * over what a node read last, the new one counts.
 */
export function itemAt(arena: Arena, steps: number, x: number, y: number): ArenaItem | null {
  const step = Math.floor(x * steps);
  const address = y * arena.bytes;
  const hit = ({ first, last, offset, bytes: size }: ArenaItem) =>
    step >= first && step <= last && address >= offset && address < offset + size;
  return arena.items
    .filter(hit)
    .reduce<ArenaItem | null>(
      (newest, item) => (newest && newest.first >= item.first ? newest : item),
      null,
    );
}

export function itemName(plan: Plan, item: ArenaItem): string {
  const { name, outputs } = plan.nodes[item.node] ?? { name: `node ${item.node}`, outputs: [] };
  if (item.output < 0) return `${name}, workspace`;
  return outputs.length > 1 ? `${name}, output ${item.output}` : name;
}

/** Over how many steps something stays the same. */
function stepsText(item: ArenaItem): string {
  return item.first === item.last ? `step ${item.first}` : `steps ${item.first} to ${item.last}`;
}

interface Shown {
  arena: Arena;
  canvas: HTMLCanvasElement;
  place: HTMLElement;
  table: PagedTable<ArenaItem>;
}

export class ArenaView {
  private shown: Shown[] = [];
  private plan: Plan | null = null;
  private steps = new Map<number, number>();

  constructor(
    private readonly element: HTMLElement,
    private readonly model: GraphModel,
    private readonly choose: (node: number) => void,
  ) {
    new ResizeObserver(() => this.redraw()).observe(element);
  }

  show(): void {
    const plan = this.model.run?.plan ?? null;
    if (plan !== this.plan) this.build(plan);
    this.redraw();
    for (const { arena, table } of this.shown) table.show(arena.items);
  }

  private build(plan: Plan | null): void {
    this.plan = plan;
    this.steps = this.model.run ? stepsOf(this.model.run) : new Map();
    this.shown = (plan?.arenas ?? [])
      .filter(({ items }) => items.length > 0)
      .map((arena) => this.makeOne(arena));
    const pictures = this.shown.map(({ arena, canvas, place, table }) =>
      h(
        "section",
        { class: "arena" },
        h("h2", {}, `Arena of ${arena.device}`),
        h("p", { class: "hint" }, summary(arena)),
        canvas,
        place,
        h("details", {}, h("summary", {}, "As a table"), table.element),
      ),
    );
    this.element.replaceChildren(...pictures);
    if (pictures.length === 0)
      this.element.append(h("p", { class: "hint" }, "This run has no arenas."));
  }

  private makeOne(arena: Arena): Shown {
    const label = `Memory of ${arena.device} over the steps of the plan; the table below says the same`;
    const canvas = h("canvas", { class: "arena-picture", role: "img", "aria-label": label });
    const place = h("p", { class: "hint place" }, "Point at a block to see what it is.");
    const at = (event: MouseEvent) =>
      itemAt(
        arena,
        this.steps.size,
        event.offsetX / canvas.clientWidth,
        event.offsetY / canvas.clientHeight,
      );
    canvas.addEventListener("pointermove", (event) => {
      const item = at(event);
      if (item && this.plan)
        place.textContent = `${itemName(this.plan, item)}: ${bytes(item.bytes)} at ${item.offset}, ${stepsText(item)}`;
    });
    canvas.addEventListener("click", (event) => {
      const item = at(event);
      if (item) this.choose(item.node);
    });
    return { arena, canvas, place, table: this.makeTable(arena) };
  }

  private makeTable(arena: Arena): PagedTable<ArenaItem> {
    return new PagedTable<ArenaItem>({
      caption: `What lies in the arena of ${arena.device}`,
      choose: (item) => this.choose(item.node),
      isChosen: (item) => item.node === this.model.selected,
      columns: [
        { name: "Value", text: (item) => (this.plan ? itemName(this.plan, item) : "") },
        {
          name: "Offset",
          numeric: true,
          text: (item) => String(item.offset),
          key: (item) => item.offset,
        },
        {
          name: "Bytes",
          numeric: true,
          text: (item) => String(item.bytes),
          key: (item) => item.bytes,
        },
        {
          name: "First step",
          numeric: true,
          text: (item) => String(item.first),
          key: (item) => item.first,
        },
        {
          name: "Last step",
          numeric: true,
          text: (item) => String(item.last),
          key: (item) => item.last,
        },
      ],
    });
  }

  redraw(): void {
    for (const shown of this.shown) this.drawOne(shown);
  }

  private drawOne({ arena, canvas }: Shown): void {
    const width = canvas.clientWidth;
    const context = canvas.getContext("2d");
    if (width === 0 || !context) return;
    const palette = colours();
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    context.scale(devicePixelRatio, devicePixelRatio);
    const stepWidth = width / Math.max(1, this.steps.size);
    const scale = height / Math.max(1, arena.bytes);
    const block = ({
      first,
      last,
      offset,
      bytes: size,
    }: ArenaItem): [number, number, number, number] => [
      first * stepWidth,
      offset * scale,
      Math.max(1, (last - first + 1) * stepWidth - (stepWidth > 3 ? 1 : 0)),
      Math.max(1, size * scale - (size * scale > 3 ? 1 : 0)),
    ];
    // The newest on top: a value may take over what its node read.
    for (const item of [...arena.items].sort((a, b) => a.first - b.first)) {
      const isSelected = item.node === this.model.selected;
      context.fillStyle = palette.ground;
      context.fillRect(...block(item));
      context.fillStyle = isSelected
        ? palette.focus
        : item.output < 0
          ? palette.faint
          : palette.accent;
      context.globalAlpha = isSelected ? 1 : 0.45;
      context.fillRect(...block(item));
      context.globalAlpha = 1;
      context.strokeStyle = palette.accent;
      if (stepWidth > 3) context.strokeRect(...block(item));
    }
    this.drawNow(context, stepWidth, palette.text);
  }

  /** A line where the run is. */
  private drawNow(context: CanvasRenderingContext2D, stepWidth: number, colour: string): void {
    const node = this.model.current();
    const step = node === null ? undefined : this.steps.get(node);
    if (step === undefined) return;
    context.fillStyle = colour;
    context.fillRect((step + 0.5) * stepWidth, 0, 2, height);
  }
}

function summary(arena: Arena): string {
  const over = arena.lowerBound > 0 ? arena.bytes / arena.lowerBound - 1 : 0;
  const excess =
    over > 0.0005 ? `${(over * 100).toFixed(1)} % over the lower bound` : "exactly the lower bound";
  return `${bytes(arena.bytes)}, ${excess}; ${count(arena.items.length, "value")} over time (grey: workspaces)`;
}
