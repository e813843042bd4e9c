// Server-sent events from a byte stream, by the rules of the HTML standard (9.2.6).

export interface ServerEvent {
  event: string; // "message" unless the stream names another
  data: string;
}

/** More than any event of ours needs: a stream that is something else ends here, not in memory. */
const longestLine = 256 * 1024 * 1024;

/** Feeds on text in pieces of any size. */
export class EventParser {
  private rest = "";
  private event = "";
  private data: string[] = [];
  private started = false;

  /** The events that are complete once `text` has arrived. */
  push(text: string): ServerEvent[] {
    let pending = this.rest + text;
    if (!this.started && pending.length > 0) {
      this.started = true;
      if (pending.startsWith("\ufeff")) pending = pending.slice(1);
    }
    const events: ServerEvent[] = [];
    let from = 0;
    const end = /\r\n|\n|\r/g;
    for (let match = end.exec(pending); match; match = end.exec(pending)) {
      // A carriage return that ends the piece may be half of a pair.
      if (match[0] === "\r" && end.lastIndex === pending.length) break;
      const done = this.line(pending.slice(from, match.index));
      if (done) events.push(done);
      from = end.lastIndex;
    }
    this.rest = pending.slice(from);
    if (this.rest.length > longestLine) throw new Error("the server sent a line without an end");
    return events;
  }

  private line(line: string): ServerEvent | null {
    if (line === "") return this.dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    else if (field === "event") this.event = value;
    return null;
  }

  private dispatch(): ServerEvent | null {
    const { event, data } = this;
    this.event = "";
    this.data = [];
    return data.length === 0 ? null : { event: event || "message", data: data.join("\n") };
  }
}

/** The events of a response's body, until it ends. Leaving the loop early cancels the stream. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
