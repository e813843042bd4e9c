import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser, events, type ServerEvent } from "../../src/api/sse.ts";

function parse(text: string, size = text.length || 1): ServerEvent[] {
  const parser = new EventParser();
  const all: ServerEvent[] = [];
  for (let at = 0; at < text.length; at += size)
    all.push(...parser.push(text.slice(at, at + size)));
  return all;
}

const message = (data: string, event = "message") => ({ event, data });

test("events end with an empty line, whatever the line ends are", () => {
  assert.deepEqual(parse("data: a\n\ndata: b\r\n\r\ndata: c\r\r"), [message("a"), message("b")]);
  assert.deepEqual(parse("data: c\r\r\n"), [message("c")]);
  assert.deepEqual(parse("data: unfinished\n"), []);
});

test("fields, comments and what is unknown", () => {
  assert.deepEqual(parse(": hello\nid: 7\nretry: 5\nnonsense\ndata:x\ndata:  y\nevent: ping\n\n"), [
    message("x\n y", "ping"),
  ]);
  assert.deepEqual(parse("event: ping\n\ndata: later\n\n"), [message("later")]);
  assert.deepEqual(parse("data\n\n"), [message("")]);
});

test("a byte order mark at the start is not part of the first field", () => {
  assert.deepEqual(parse("\ufeffdata: a\n\n"), [message("a")]);
});

test("however the stream is cut, the same events come out", () => {
  const text =
    'data: {"a":1}\r\n\r\n: x\ndata: two\ndata: lines\n\nevent: e\rdata: 3\r\rdata: [DONE]\n\n';
  const whole = parse(text);
  assert.equal(whole.length, 4);
  for (let size = 1; size < text.length; ++size)
    assert.deepEqual(parse(text, size), whole, `in pieces of ${size}`);
});

function body(
  chunks: Uint8Array[],
  cancelled: () => void = () => undefined,
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull(controller) {
      const next = chunks.shift();
      if (next) controller.enqueue(next);
      else controller.close();
    },
    cancel: cancelled,
  });
}

test("letters that are cut in two bytes stay whole", async () => {
  const bytes = new TextEncoder().encode("data: naïve — 喂\n\n");
  const pieces = Array.from(bytes, (byte) => Uint8Array.of(byte));
  const all: ServerEvent[] = [];
  for await (const event of events(body(pieces))) all.push(event);
  assert.deepEqual(all, [message("naïve — 喂")]);
});

test("leaving the loop cancels the stream", async () => {
  let isCancelled = false;
  const chunk = new TextEncoder().encode("data: 1\n\n");
  const stream = body(
    Array.from({ length: 100 }, () => chunk),
    () => (isCancelled = true),
  );
  for await (const event of events(stream)) {
    assert.equal(event.data, "1");
    break;
  }
  assert.ok(isCancelled);
});
