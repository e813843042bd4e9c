// heddle serve itself, on a free port.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { environment } from "./browser.ts";

export class Program {
  private constructor(
    private readonly child: ChildProcess,
    readonly address: string,
  ) {}

  /** Waits for the line with the address. What goes to standard error is shown if none comes. */
  static async start(...options: string[]): Promise<Program> {
    const child = spawn(environment("HEDDLE_PROGRAM"), ["serve", "--port", "0", ...options], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let errors = "";
    child.stderr.on("data", (text: Buffer) => (errors += text.toString()));
    for await (const line of createInterface({ input: child.stdout })) {
      const address = /http:\/\/[\d.]+:\d+/.exec(line)?.[0];
      if (address) return new Program(child, address);
    }
    throw new Error(`heddle serve said no address: ${errors}`);
  }

  /** SIGTERM; resolves to the exit code. */
  async stop(): Promise<number | null> {
    if (this.child.exitCode !== null) return this.child.exitCode;
    const ended = once(this.child, "exit");
    this.child.kill("SIGTERM");
    const [code] = (await ended) as [number | null];
    return code;
  }
}
