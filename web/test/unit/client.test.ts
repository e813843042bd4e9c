import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Client, deltaOf } from "../../src/api/client.ts";
import { describe, messageIn, ServerError, unreachable } from "../../src/api/errors.ts";

const realFetch = globalThis.fetch;
afterEach(() => (globalThis.fetch = realFetch));

function answering(make: (url: string, init: RequestInit) => Response): void {
  globalThis.fetch = (url, init) => Promise.resolve(make(String(url), init ?? {}));
}

function stream(...events: string[]): Response {
  return new Response(events.map((event) => `data: ${event}\n\n`).join(""), {
    headers: { "Content-Type": "text/event-stream; charset=utf-8" },
  });
}

async function reply(client: Client): Promise<string> {
  let text = "";
  for await (const delta of client.reply({ messages: [] }, new AbortController().signal))
    text += delta.content;
  return text;
}

test("what an error body says is found, in whatever form", () => {
  assert.equal(messageIn({ error: { message: "a" } }), "a");
  assert.equal(messageIn({ error: "b" }), "b");
  assert.equal(messageIn({ message: "c" }), "c");
  for (const nothing of [
    null,
    3,
    "text",
    {},
    { error: {} },
    { error: { message: "" } },
    { message: 7 },
  ])
    assert.equal(messageIn(nothing), null);
});

test("a refusal gives the status, the server's words and advice", () => {
  assert.match(
    describe(429, '{"error":{"message":"the queue is full"}}', "3").message,
    /429.*the queue is full\..*in 3 s/,
  );
  assert.match(describe(429, "", null).message, /gave no reason.*in a while/);
  assert.match(
    describe(401, '{"error":{"message":"wrong key!"}}', null).message,
    /wrong key! Enter the API key/,
  );
  assert.match(describe(500, "plain words", null).message, /plain words/);
  assert.doesNotMatch(describe(502, "<html><b>Bad Gateway</b>", null).message, /</);
  assert.equal(describe(400, "{}", null).status, 400);
});

test("errors of the network are told as such, ours stay as they are", () => {
  assert.match(
    unreachable(new TypeError("Failed to fetch")).message,
    /does not answer \(Failed to fetch\).*heddle serve/,
  );
  const ours = new ServerError("x", 500);
  assert.equal(unreachable(ours), ours);
});

test("an event of a reply", () => {
  const delta = deltaOf(
    '{"choices":[{"delta":{"content":"hi","reasoning_content":"hm"},"finish_reason":"stop"}]}',
  );
  assert.deepEqual(delta, { content: "hi", reasoning: "hm", finish: "stop", usage: null });
  const usage = deltaOf(
    '{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4}}}',
  );
  assert.deepEqual(usage.usage, { promptTokens: 5, completionTokens: 7, cachedTokens: 4 });
  assert.equal(deltaOf('{"choices":[{"delta":{"content":null}}]}').content, "");
  assert.equal(deltaOf('{"choices":[{"text":" upon","finish_reason":null}]}').content, " upon");
  assert.equal(deltaOf("null").content, "");
  assert.throws(() => deltaOf("{"), /not JSON/);
  assert.throws(
    () => deltaOf('{"error":{"message":"the device was lost"}}'),
    /stopped the reply: the device was lost/,
  );
});

test("a reply is asked for as a stream with usage, and with the key", async () => {
  let asked: RequestInit = {};
  answering((_, init) => {
    asked = init;
    return stream(
      '{"choices":[{"delta":{"content":"a"}}]}',
      '{"choices":[{"delta":{"content":"b"}}]}',
      "[DONE]",
      '{"error":{"message":"after the end"}}',
    );
  });
  assert.equal(await reply(new Client(() => "secret")), "ab");
  assert.equal(new Headers(asked.headers).get("Authorization"), "Bearer secret");
  assert.deepEqual(JSON.parse(String(asked.body)), {
    messages: [],
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("a text is continued by another route", async () => {
  let asked = "";
  answering((url) => {
    asked = url;
    return stream("[DONE]");
  });
  for await (const _ of new Client(() => "").reply(
    { prompt: "Once" },
    new AbortController().signal,
  ))
    assert.fail("nothing was said");
  assert.equal(asked, "v1/completions");
});

test("a stream that ends early, or is none, is an error", async () => {
  answering(() => stream('{"choices":[{"delta":{"content":"a"}}]}'));
  await assert.rejects(reply(new Client(() => "")), /broke off/);
  answering(() => new Response("{}", { headers: { "Content-Type": "application/json" } }));
  await assert.rejects(reply(new Client(() => "")), /application\/json instead of a stream/);
  answering(() => new Response('{"error":{"message":"no such model"}}', { status: 404 }));
  await assert.rejects(
    reply(new Client(() => "")),
    (error: unknown) =>
      error instanceof ServerError && error.status === 404 && /no such model/.test(error.message),
  );
  globalThis.fetch = () => Promise.reject(new TypeError("refused"));
  await assert.rejects(reply(new Client(() => "")), /does not answer \(refused\)/);
});

test("the names of models", async () => {
  answering(() =>
    Response.json({
      data: [{ id: "one" }, { id: 2 }, null, { id: "three", meta: { chat_template: false } }],
    }),
  );
  assert.deepEqual(await new Client(() => "").models(), [
    { id: "one", chats: true },
    { id: "three", chats: false },
  ]);
  answering(() => new Response("<html>"));
  await assert.rejects(new Client(() => "").models(), /makes no sense/);
});
