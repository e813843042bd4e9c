// What the server runs, as it runs it: the lines of GET /trace/live, gathered like a trace.
import { fields, FormatError, maybeNumber, number } from "./check.ts";
import { addLazyNode, lazyPlan, planOf, recordOf, type Run, type Trace } from "./trace.ts";

/** Older runs are forgotten: the page may watch for hours. */
const runsKept = 32;

export type LiveChange =
  | { kind: "plan" }
  | { kind: "run"; run: Run }
  | { kind: "record"; run: Run; node: number }
  | { kind: "end"; run: Run }
  | { kind: "nothing" };

export class LiveTrace {
  readonly trace: Trace = { program: "live", droppedRuns: 0, plans: new Map(), runs: [] };
  private readonly open = new Map<number, Run>();

  /** Throws FormatError if the line makes no sense. Runs that began before we came are passed over. */
  accept(line: string): LiveChange {
    let parsed: unknown;
    try {
      parsed = JSON.parse(line);
    } catch {
      throw new FormatError("The server sent a line that is not JSON.");
    }
    const event = fields(parsed, "event");
    switch (event["type"]) {
      case "plan": {
        const plan = planOf(event, "plan");
        this.trace.plans.set(plan.plan, plan);
        return { kind: "plan" };
      }
      case "run":
        return this.begin(event);
      case "record":
        return this.record(event);
      case "end":
        return this.end(event);
      default:
        return { kind: "nothing" }; // of a later version
    }
  }

  private begin(event: Record<string, unknown>): LiveChange {
    const plan =
      event["plan"] === null
        ? lazyPlan([], "run")
        : this.trace.plans.get(number(event["plan"], "run.plan"));
    if (!plan)
      throw new FormatError(`run.plan is ${String(event["plan"])}, and that plan was never sent.`);
    const run: Run = {
      run: number(event["run"], "run.run"),
      plan,
      begin: number(event["begin"], "run.begin"),
      end: null,
      error: null,
      records: [],
    };
    this.open.set(run.run, run);
    this.trace.runs.push(run);
    if (this.trace.runs.length > runsKept) {
      const dropped = this.trace.runs.shift();
      if (dropped) this.open.delete(dropped.run);
      ++this.trace.droppedRuns;
    }
    return { kind: "run", run };
  }

  private record(event: Record<string, unknown>): LiveChange {
    const run = this.open.get(number(event["run"], "record.run"));
    if (!run) return { kind: "nothing" };
    if (run.plan.lazy) addLazyNode(run.plan, event, "record");
    const record = recordOf(event, "record", run.plan);
    run.records.push(record);
    return { kind: "record", run, node: record.node };
  }

  private end(event: Record<string, unknown>): LiveChange {
    const number_ = number(event["run"], "end.run");
    const run = this.open.get(number_);
    if (!run) return { kind: "nothing" };
    this.open.delete(number_);
    run.end = maybeNumber(event["end"], "end.end");
    run.error = typeof event["error"] === "string" ? event["error"] : null;
    return { kind: "end", run };
  }
}
