// Puts the view of plans and runs on the page: where they come from, and the panels that show them.
import type { Client } from "../api/client.ts";
import { announce } from "../base/announce.ts";
import { byId, h, iconButton } from "../base/dom.ts";
import { count, microseconds } from "../base/format.ts";
import { ArenaView } from "./arena_view.ts";
import { DetailsView } from "./details_view.ts";
import { GraphCanvas } from "./graph_canvas.ts";
import { GraphModel } from "./graph_model.ts";
import { nodesTable, tableRows } from "./nodes_table.ts";
import { Player } from "./player.ts";
import { Tabs } from "./tabs.ts";
import { endOf } from "./timeline.ts";
import { parseTrace, type Run, type Trace } from "./trace.ts";
import { Watch } from "./watch.ts";

const largestFile = 400 * 1024 * 1024; // a browser's strings end not far beyond

const refreshEvery = 500; // milliseconds, while watching
const planStays = 400; // milliseconds

const keysText =
  "Arrow keys move from node to node, with Shift they move the picture; plus and minus zoom, 0 shows all, Enter folds and unfolds a layer.";

export class GraphPage {
  private readonly model = new GraphModel();
  private readonly section = byId("graph-view", HTMLElement);
  private readonly canvas = h("canvas", {
    class: "graph-picture",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "graph",
    "aria-label": "Plan",
    "aria-describedby": "graph-keys",
  });
  private readonly picture: GraphCanvas;
  private readonly details: DetailsView;
  private readonly arenas: ArenaView;
  private readonly table = nodesTable(this.model, (node) => this.select(node));
  private readonly player: Player;
  private readonly tabs: Tabs;
  private readonly watch: Watch;
  private readonly runs = h("select", { id: "run-choice", change: () => this.chooseRun() });
  private readonly search = h("input", {
    type: "search",
    id: "node-search",
    placeholder: "Find nodes",
    "aria-label": "Find nodes",
    autocomplete: "off",
  });
  private readonly found = h("span", { class: "hint found", role: "status" });
  private readonly watchButton = h(
    "button",
    {
      type: "button",
      title: "Watch what the server runs",
      click: () => this.toggleWatch(),
    },
    "Watch",
  );
  private readonly trouble = h("p", { class: "notice", role: "alert", hidden: true });
  private readonly views = h("div", { class: "views", hidden: true });
  private readonly start = h("div", { class: "start" });
  private readonly content = h("div", { class: "graph-content", hidden: true });
  private readonly still = matchMedia("(prefers-reduced-motion: reduce)");
  private shownSince = 0; // when a plan like the one shown ran last, by performance.now()
  private refreshTimer = 0;
  private isShown = false;
  private needsFit = true;

  constructor(client: Client) {
    const detailsPanel = h("aside", { class: "details", "aria-label": "Details", tabindex: 0 });
    const arenaPanel = h("div", { class: "panel arenas" });
    const tablePanel = h("div", { class: "panel" }, this.table.element);
    const picturePanel = h(
      "div",
      { class: "panel picture-panel" },
      this.canvas,
      this.zoomButtons(),
      h("p", { id: "graph-keys", class: "visually-hidden" }, keysText),
    );
    this.picture = new GraphCanvas(this.canvas, this.model, {
      selected: (byKeys) => this.selected(byKeys),
      toggle: () => this.toggle(),
    });
    this.details = new DetailsView(detailsPanel, this.model, {
      select: (node) => this.select(node),
      toggle: () => this.toggle(),
    });
    this.arenas = new ArenaView(arenaPanel, this.model, (node) => this.select(node));
    this.player = new Player(this.model, () => this.moved());
    const panels = [
      { name: "Graph", panel: picturePanel },
      { name: "Table", panel: tablePanel },
      { name: "Memory", panel: arenaPanel },
    ];
    this.tabs = new Tabs("How the plan is shown", panels, () => this.tabChanged());
    this.watch = new Watch(client, {
      changed: (run, nodes, ended) => this.watched(run, nodes, ended),
      ended: (why) => this.watchEnded(why),
    });
    this.content.append(
      h("div", { class: "panels" }, ...panels.map(({ panel }) => panel)),
      detailsPanel,
    );
    this.section.append(
      this.toolbar(),
      this.trouble,
      this.start,
      this.content,
      this.player.element,
    );
    this.player.reset(this.watch.isOn);
    this.fillStart();
    this.listen();
  }

  private toolbar(): HTMLElement {
    const file = h("input", {
      type: "file",
      id: "trace-file",
      accept: ".json,application/json",
      "aria-label": "Trace file",
      hidden: true,
    });
    file.addEventListener("change", () => {
      const chosen = file.files?.[0];
      file.value = "";
      if (chosen) void this.openFile(chosen);
    });
    this.views.append(this.tabs.element, this.search, this.found);
    const open = h("button", { type: "button", click: () => file.click() }, "Open trace");
    const choice = h(
      "span",
      { class: "run-choice", hidden: true },
      h("label", { for: "run-choice", class: "visually-hidden" }, "Run"),
      this.runs,
    );
    return h("div", { class: "toolbar" }, file, open, this.watchButton, choice, this.views);
  }

  private zoomButtons(): HTMLElement {
    return h(
      "div",
      { class: "zoom", role: "group", "aria-label": "Zoom and folding" },
      iconButton("plus", "Closer", { click: () => this.picture.zoom(true) }),
      iconButton("minus", "Farther", { click: () => this.picture.zoom(false) }),
      iconButton("fit", "Show all", { click: () => this.picture.fit() }),
      h(
        "button",
        { type: "button", class: "text-button fold", click: () => this.foldAll(true) },
        "Fold layers",
      ),
      h(
        "button",
        { type: "button", class: "text-button fold", click: () => this.foldAll(false) },
        "Unfold",
      ),
    );
  }

  private fillStart(): void {
    this.start.append(
      h("h2", {}, "See it run"),
      h(
        "p",
        {},
        "Watch what the server runs: each node of the plan lights up as it runs, with its time, its bytes and the statistics of what it made.",
      ),
      h(
        "p",
        {},
        "Or open a trace, which ",
        h("code", {}, "heddle run --trace FILE"),
        " writes: choose the file above, or drop it here.",
      ),
    );
  }

  private listen(): void {
    this.search.addEventListener("input", () => this.searched());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextMatch(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        this.search.value = "";
        this.searched();
      }
    });
    this.section.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.section.classList.add("drop");
    });
    this.section.addEventListener("dragleave", () => this.section.classList.remove("drop"));
    this.section.addEventListener("drop", (event) => {
      event.preventDefault();
      this.section.classList.remove("drop");
      const file = event.dataTransfer?.files[0];
      if (file) void this.openFile(file);
    });
  }

  /** The view is, or is no longer, what the page shows. */
  shown(is: boolean): void {
    this.isShown = is;
    if (!is) this.player.stop();
    else this.refit();
  }

  coloursChanged(): void {
    this.picture.coloursChanged();
    this.arenas.redraw();
  }

  private say(trouble: string): void {
    this.trouble.textContent = trouble;
    this.trouble.hidden = trouble === "";
  }

  private async openFile(file: File): Promise<void> {
    this.watch.stop();
    try {
      if (file.size > largestFile)
        throw new Error(`${file.name} has more than 400 MiB: record fewer steps (--trace-steps).`);
      const trace = parseTrace(await file.text());
      if (trace.runs.length === 0) throw new Error(`${file.name} has no runs.`);
      this.setTrace(trace, trace.runs[trace.runs.length - 1] ?? null);
      announce(`Opened ${file.name}: ${count(trace.runs.length, "run")}`);
    } catch (error) {
      this.say(error instanceof Error ? `${file.name}: ${error.message}` : String(error));
    }
  }

  private setTrace(trace: Trace, run: Run | null): void {
    this.say("");
    this.model.setTrace(trace, run);
    this.showContent(true);
    this.listRuns();
    this.runChanged(true);
  }

  private showContent(shown: boolean): void {
    this.start.hidden = shown;
    this.content.hidden = !shown;
    this.views.hidden = !shown;
  }

  private listRuns(): void {
    const runs = this.model.trace?.runs ?? [];
    this.runs.replaceChildren(
      ...runs.map((run) => {
        const plan = run.plan.lazy ? "no plan" : `plan ${run.plan.plan}`;
        const took = microseconds(endOf(run) - run.begin);
        return h(
          "option",
          { value: run.run, selected: run === this.model.run },
          `Run ${run.run} · ${plan} · ${took}${run.error ? " · failed" : ""}`,
        );
      }),
    );
    this.runs.parentElement?.toggleAttribute("hidden", runs.length === 0);
  }

  private chooseRun(): void {
    const run = this.model.trace?.runs.find((one) => String(one.run) === this.runs.value);
    if (!run) return;
    this.watch.stop();
    const looksDifferent = this.model.setRun(run);
    this.listRuns();
    this.runChanged(looksDifferent);
  }

  private runChanged(newPlan: boolean): void {
    if (newPlan) {
      this.needsFit = true;
      this.refit();
      const plan = this.model.run?.plan;
      const name = plan?.lazy ? "run without a plan" : `plan ${plan?.plan ?? ""}`;
      this.canvas.setAttribute(
        "aria-label",
        `Graph of ${name}, ${count(this.model.scene.boxes.length, "box", "boxes")}`,
      );
      this.section
        .querySelectorAll(".fold")
        .forEach((button) => button.toggleAttribute("hidden", !this.model.hasGroups));
      if (this.search.value) this.searched();
    }
    this.player.reset(this.watch.isOn);
    this.refresh();
  }

  /** The picture is fitted once it has a size. */
  private refit(): void {
    if (this.isShown && this.tabs.current === 0 && this.model.layout && this.needsFit) {
      this.needsFit = false;
      requestAnimationFrame(() => this.picture.fit());
    }
    this.picture.redraw();
  }

  private tabChanged(): void {
    this.refit();
    this.refresh();
    if (this.tabs.current === 1) this.table.reveal();
  }

  private refresh(): void {
    this.picture.redraw();
    this.details.show();
    if (this.tabs.current === 1) this.table.show(tableRows(this.model));
    if (this.tabs.current === 2) this.arenas.show();
  }

  /** The picture follows the run. */
  private moved(): void {
    const node = this.model.current();
    this.picture.reveal(node === null ? null : (this.model.scene.boxOf.get(node) ?? null));
    if (this.tabs.current === 2) this.arenas.redraw();
  }

  private select(node: number): void {
    this.model.select(node);
    this.picture.show(this.model.selectedBox);
    this.selected(false);
    announce(`Selected ${this.model.describe(this.model.selectedBox ?? -1)}`);
  }

  private selected(byKeys: boolean): void {
    this.refresh();
    if (byKeys) announce(this.model.describe(this.model.selectedBox ?? -1));
  }

  private toggle(): void {
    if (this.model.selected === null || !this.model.toggle(this.model.selected)) return;
    this.picture.reveal(this.model.selectedBox);
    this.refresh();
    announce(this.model.describe(this.model.selectedBox ?? -1));
  }

  private foldAll(fold: boolean): void {
    this.model.foldAll(fold);
    if (this.model.selected === null) this.picture.fit();
    else this.picture.reveal(this.model.selectedBox);
    this.refresh();
    announce(fold ? "Layers folded" : "Layers unfolded");
  }

  private searched(): void {
    const found = this.model.search(this.search.value);
    this.found.textContent = this.model.matches ? count(found.length, "node") : "";
    this.refresh();
  }

  private nextMatch(step: number): void {
    const found = [...(this.model.matches ?? [])];
    if (found.length === 0) return;
    const at = this.model.selected === null ? -1 : found.indexOf(this.model.selected);
    const next = found[(at + step + found.length) % found.length];
    if (next !== undefined) this.select(next);
  }

  private toggleWatch(): void {
    if (this.watch.isOn) {
      this.watch.stop();
      return;
    }
    this.say("");
    this.watch.start();
    this.watchButton.classList.add("on");
    this.watchButton.textContent = "Stop";
    this.showContent(true);
    this.model.setTrace(this.watch.trace, null);
    this.listRuns();
    this.runChanged(true);
    announce("Watching the server. Nodes light up as they run.");
  }

  private watched(run: Run, nodes: readonly number[], ended: Run | null): void {
    const { model } = this;
    const now = performance.now();
    // Until a run has ended, the one under way is shown as far as it is; then the last that has.
    const next = ended ?? (model.run?.end === null || !model.run ? run : null);
    if (next && this.mayShow(next, now)) {
      if (next === model.run && next.plan.lazy) model.growPlan();
      else if (model.setRun(next)) this.runChanged(true);
    }
    if (model.looksLike(run.plan)) {
      this.shownSince = now;
      for (const node of nodes) model.light(node, this.still.matches ? null : now);
    }
    this.picture.redraw();
    this.refreshTimer ||= window.setTimeout(() => this.refreshLive(), refreshEvery);
  }

  /** Plans that take turns do not: the one that is shown stays until it has not run for a while. */
  private mayShow(run: Run, now: number): boolean {
    return !this.model.run || this.model.looksLike(run.plan) || now - this.shownSince > planStays;
  }

  /** What a reader has the focus in is left alone. */
  private refreshLive(): void {
    this.refreshTimer = 0;
    this.model.refreshFigures();
    if (document.activeElement !== this.runs) this.listRuns();
    const isRead = document.activeElement?.parentElement?.closest(".details, .paged-table");
    if (isRead) this.picture.redraw();
    else this.refresh();
  }

  private watchEnded(why: string | null): void {
    clearTimeout(this.refreshTimer);
    this.refreshTimer = 0;
    this.watchButton.classList.remove("on");
    this.watchButton.textContent = "Watch";
    if (why) this.say(why);
    else announce("No longer watching");
    if (!this.model.run) {
      this.showContent(false);
    } else {
      this.listRuns();
      this.model.refreshFigures();
      this.player.reset(this.watch.isOn);
      this.refresh();
    }
  }
}
