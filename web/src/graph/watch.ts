// Watches the server's runs: reads GET /trace/live, and tells the view at most once a frame.
import type { Client } from "../api/client.ts";
import { isAbort } from "../api/errors.ts";
import { LiveTrace } from "./live.ts";
import type { Run, Trace } from "./trace.ts";

export interface WatchActions {
  /** At most once a frame: the run under way, those of its nodes that ran since, and the last run that has ended. */
  changed(run: Run, nodes: readonly number[], ended: Run | null): void;
  /** `why`: null if it was stopped here. */
  ended(why: string | null): void;
}

export class Watch {
  private live = new LiveTrace();
  private abort: AbortController | null = null;
  private run: Run | null = null;
  private nodes: number[] = [];
  private ended: Run | null = null;
  private frame = 0;

  constructor(
    private readonly client: Client,
    private readonly actions: WatchActions,
  ) {}

  get isOn(): boolean {
    return this.abort !== null;
  }

  get trace(): Trace {
    return this.live.trace;
  }

  start(): void {
    this.stop();
    this.live = new LiveTrace();
    this.run = null;
    this.ended = null;
    this.nodes = [];
    this.abort = new AbortController();
    void this.read(this.abort);
  }

  stop(): void {
    if (!this.abort) return;
    this.abort.abort();
    this.finish(null);
  }

  private finish(why: string | null): void {
    this.abort = null;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.actions.ended(why);
  }

  private async read(abort: AbortController): Promise<void> {
    let why = "The server ended the stream of what it runs.";
    try {
      for await (const { data } of this.client.stream("trace/live", { signal: abort.signal }))
        this.accept(data);
    } catch (error) {
      if (isAbort(error)) return;
      why = error instanceof Error ? error.message : String(error);
    }
    if (this.abort === abort) this.finish(why);
  }

  private accept(line: string): void {
    const change = this.live.accept(line);
    if (change.kind === "plan" || change.kind === "nothing") return;
    if (change.run !== this.run) {
      this.run = change.run;
      this.nodes = [];
    }
    if (change.kind === "record") this.nodes.push(change.node);
    if (change.kind === "end") this.ended = change.run;
    this.frame ||= requestAnimationFrame(() => this.tell());
  }

  private tell(): void {
    this.frame = 0;
    const { nodes, ended } = this;
    this.nodes = [];
    this.ended = null;
    if (this.run) this.actions.changed(this.run, nodes, ended);
  }
}
