// All about the selected node, or about a folded layer.
import { h } from "../base/dom.ts";
import { bytes, count, microseconds, percent, quantity, short } from "../base/format.ts";
import type { GraphModel } from "./graph_model.ts";
import { totals, type NodeFigures } from "./timeline.ts";
import type { Plan, PlanNode } from "./trace.ts";
import { valueView } from "./values_view.ts";

export interface DetailsActions {
  select(node: number): void;
  toggle(): void;
}

type Row = [name: string, ...content: (Node | string)[]];

function rows(all: (Row | null)[]): HTMLElement {
  const made = all.flatMap((row) => {
    if (!row) return [];
    const [name, ...content] = row;
    return [h("dt", {}, name), h("dd", {}, ...content)];
  });
  return h("dl", { class: "facts" }, ...made);
}

function specText({ dtype, shape }: PlanNode["outputs"][number]): string {
  return `${dtype} [${shape.join(", ")}]`;
}

/** Bytes a microsecond are megabytes a second; a thousand of them a gigabyte. */
function speed(amount: number, time: number): string {
  return time > 0 && amount > 0 ? ` (${short(amount / time / 1000)} GB/s)` : "";
}

function figureRows({
  time,
  bytes: moved,
  operations,
  share,
}: Omit<NodeFigures, "record">): (Row | null)[] {
  return [
    ["Time", `${microseconds(time)}, ${percent(share)} of the run`],
    ["Bytes", `${bytes(moved)}${speed(moved, time)}`],
    operations > 0
      ? [
          "Operations",
          `${quantity(operations)}${time > 0 ? ` (${short(operations / time / 1000)} G/s)` : ""}`,
        ]
      : null,
  ];
}

export class DetailsView {
  constructor(
    private readonly element: HTMLElement,
    private readonly model: GraphModel,
    private readonly actions: DetailsActions,
  ) {}

  show(): void {
    const { model } = this;
    const plan = model.run?.plan;
    const box = model.selectedBox;
    const group = box === null ? undefined : model.scene.boxes[box];
    if (!plan)
      this.element.replaceChildren(
        h("p", { class: "hint" }, "Nothing has run yet: ask something in the chat."),
      );
    else if (model.selected === null) this.element.replaceChildren(this.summary(plan));
    else if (group?.folded)
      this.element.replaceChildren(...this.layer(plan, group.title, group.nodes));
    else this.element.replaceChildren(...this.node(plan, model.selected));
  }

  private summary(plan: Plan): HTMLElement {
    const { run, figures } = this.model;
    const sum = totals(figures.values());
    const facts = rows([
      ["Nodes", String(plan.splits.reduce((all, split) => all + split.nodes.length, 0))],
      ["Splits", String(plan.splits.length)],
      ["Devices", [...new Set(plan.splits.map((split) => split.device))].join(", ")],
      ["Took", microseconds(this.model.end - (run?.begin ?? 0))],
      ["In nodes", microseconds(sum.time)],
      ["Bytes", `${bytes(sum.bytes)}${speed(sum.bytes, sum.time)}`],
      ["Operations", quantity(sum.operations)],
    ]);
    return h(
      "div",
      {},
      h("h2", {}, plan.lazy ? "Run without a plan" : `Plan ${plan.plan}`),
      run?.error ? h("p", { class: "error" }, run.error) : null,
      facts,
      h("p", { class: "hint" }, "Choose a node to see what it read and made."),
    );
  }

  private link(plan: Plan, node: number): Node {
    const { name, kind } = plan.nodes[node] ?? { name: `node ${node}`, kind: "op" };
    if (!this.model.scene.boxOf.has(node)) return h("span", {}, `${name} (${kind})`);
    return h(
      "button",
      { type: "button", class: "link", click: () => this.actions.select(node) },
      name,
    );
  }

  private links(plan: Plan, nodes: readonly number[]): Node {
    return h("ul", { class: "links" }, ...nodes.map((node) => h("li", {}, this.link(plan, node))));
  }

  private layer(plan: Plan, title: string, nodes: readonly number[]): Node[] {
    const known = nodes.flatMap((node) => this.model.figures.get(node) ?? []);
    return [
      h("h2", {}, title),
      rows([
        ["Nodes", String(nodes.length)],
        ...(known.length > 0 ? figureRows(totals(known)) : []),
      ]),
      h("button", { type: "button", click: () => this.actions.toggle() }, "Unfold"),
      this.links(plan, nodes),
    ];
  }

  private readers(plan: Plan, node: number): number[] {
    return plan.nodes.flatMap((other, index) =>
      other.inputs.some(([source]) => source === node) ? [index] : [],
    );
  }

  private node(plan: Plan, index: number): Node[] {
    const node = plan.nodes[index];
    if (!node) return [];
    const figures = this.model.figures.get(index);
    const readers = this.readers(plan, index);
    const facts = rows([
      ["Name", node.name],
      node.kind === "op" ? ["Op", h("code", {}, node.text)] : ["Kind", node.kind],
      node.id >= 0 && !plan.lazy ? ["Number", `%${node.id}`] : null,
      node.split >= 0 ? ["Split", `${node.split} on ${node.device}`] : null,
      ["Makes", node.outputs.map(specText).join(", ") || "nothing"],
      ...(figures && node.split >= 0 ? figureRows(figures) : []),
      figures && node.split >= 0
        ? [
            "Encoding",
            `${microseconds(figures.record.encode)}, then waited for ${microseconds(figures.record.wait)}`,
          ]
        : null,
      node.inputs.length > 0
        ? ["Reads", this.links(plan, [...new Set(node.inputs.map(([source]) => source))])]
        : null,
      readers.length > 0
        ? [`Read by ${count(readers.length, "node")}`, this.links(plan, readers.slice(0, 50))]
        : null,
    ]);
    const values = figures?.record.values ?? [];
    const title = (output: number) => (node.outputs.length > 1 ? `Output ${output}` : "Values");
    return [
      h("h2", {}, node.kind === "input" ? node.name : node.op),
      facts,
      ...values.map((value) => valueView(value, title(value.output))),
    ];
  }
}
