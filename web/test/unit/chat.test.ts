import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChatDelta, ChatRequest, CompletionRequest } from "../../src/api/client.ts";
import { ServerError } from "../../src/api/errors.ts";
import { Chat, type Change } from "../../src/chat/chat.ts";
import { noSettings } from "../../src/chat/settings.ts";
import { ConversationStore, type Items } from "../../src/chat/store.ts";

class Memory implements Items {
  readonly map = new Map<string, string>();
  full = false;
  get length(): number {
    return this.map.size;
  }
  key(index: number): string | null {
    return [...this.map.keys()][index] ?? null;
  }
  getItem(key: string): string | null {
    return this.map.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    if (this.full) throw new DOMException("full", "QuotaExceededError");
    this.map.set(key, value);
  }
  removeItem(key: string): void {
    this.map.delete(key);
  }
}

const delta = (content: string, finish: string | null = null): ChatDelta => ({
  content,
  reasoning: "",
  finish,
  usage: null,
});

/** A server whose replies the test feeds, piece by piece. */
class Puppet {
  readonly requests: (ChatRequest | CompletionRequest)[] = [];
  private waiting: (() => void)[] = [];
  private queue: (ChatDelta | Error | "end")[] = [];

  async feed(...pieces: (ChatDelta | Error | "end")[]): Promise<void> {
    this.queue.push(...pieces);
    this.waiting.splice(0).forEach((wake) => wake());
    await new Promise((resolve) => setTimeout(resolve, 5));
  }

  async *reply(
    request: ChatRequest | CompletionRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ChatDelta> {
    this.requests.push(request);
    for (;;) {
      signal.throwIfAborted();
      const next = this.queue.shift();
      if (next === "end") return;
      if (next instanceof Error) throw next;
      if (next) yield next;
      else
        await new Promise<void>((resolve) => {
          this.waiting.push(resolve);
          signal.addEventListener("abort", () => resolve());
        });
    }
  }
}

function setUp(items: Items | null = new Memory()) {
  const puppet = new Puppet();
  const troubles: string[] = [];
  const changes: Change[] = [];
  const store = new ConversationStore(items, (why) => troubles.push(why));
  const chat = new Chat(
    puppet,
    store,
    () => noSettings,
    (change) => changes.push(change),
  );
  return { puppet, troubles, changes, store, chat };
}

const contents = (chat: Chat) => chat.current.messages.map(({ content }) => content);
const rest = () => new Promise((resolve) => setTimeout(resolve, 5));

test("a reply grows, ends and is kept", async () => {
  const items = new Memory();
  const { puppet, chat, changes } = setUp(items);
  chat.send("hello");
  assert.ok(chat.isRunning());
  await puppet.feed(delta("Hi"), delta(" there"));
  assert.deepEqual(contents(chat), ["hello", "Hi there"]);
  await puppet.feed(delta("", "stop"), "end");
  assert.ok(!chat.isRunning());
  assert.equal(changes[changes.length - 1], "ended");
  assert.equal(chat.current.messages[1]?.finish, "stop");
  const again = setUp(items);
  assert.deepEqual(contents(again.chat), ["hello", "Hi there"]);
});

test("nothing is sent while a reply runs, or without text", async () => {
  const { puppet, chat } = setUp();
  chat.send("  \n");
  assert.equal(puppet.requests.length, 0);
  chat.send("a");
  chat.send("b");
  chat.regenerate();
  chat.resend(0, "c");
  await rest();
  assert.equal(puppet.requests.length, 1);
});

test("stopping keeps what came", async () => {
  const { puppet, chat } = setUp();
  chat.send("a");
  await puppet.feed(delta("part"));
  chat.stop();
  await rest();
  assert.ok(!chat.isRunning());
  assert.equal(chat.current.messages[1]?.finish, "aborted");
  assert.equal(chat.current.messages[1]?.content, "part");
});

test("an error is kept with its cause, and the next message leaves it out", async () => {
  const { puppet, chat } = setUp();
  chat.send("a");
  await puppet.feed(new ServerError("The server refused (429): full.", 429));
  assert.equal(chat.current.messages[1]?.error, "The server refused (429): full.");
  chat.send("b");
  await rest();
  assert.deepEqual(puppet.requests[1]?.["messages"], [{ role: "user", content: "a\n\nb" }]);
});

test("asking again replaces the last reply", async () => {
  const { puppet, chat } = setUp();
  chat.regenerate();
  assert.equal(puppet.requests.length, 0);
  chat.send("a");
  await puppet.feed(delta("one", "stop"), "end");
  chat.regenerate();
  await puppet.feed(delta("two", "stop"), "end");
  assert.deepEqual(contents(chat), ["a", "two"]);
  assert.deepEqual(puppet.requests[1]?.["messages"], [{ role: "user", content: "a" }]);
});

test("an edited message replaces what came after it", async () => {
  const { puppet, chat } = setUp();
  chat.send("a");
  await puppet.feed(delta("one", "stop"), "end");
  chat.send("b");
  await puppet.feed(delta("two", "stop"), "end");
  chat.resend(1, "not mine");
  assert.equal(puppet.requests.length, 2);
  chat.resend(0, "A");
  await puppet.feed(delta("three", "stop"), "end");
  assert.deepEqual(contents(chat), ["A", "three"]);
});

test("a reply goes on while another conversation is shown", async () => {
  const { puppet, chat, store } = setUp();
  chat.send("a");
  const first = chat.current.id;
  await puppet.feed(delta("one"));
  chat.create();
  assert.ok(!chat.isRunning());
  assert.ok(chat.isRunning(first));
  await puppet.feed(delta(" more", "stop"), "end");
  assert.equal(store.get(first)?.messages[1]?.content, "one more");
  assert.deepEqual(contents(chat), []);
});

test("a conversation that is deleted stays deleted, whatever its reply still says", async () => {
  const { puppet, chat, store } = setUp();
  chat.send("a");
  await puppet.feed(delta("one"));
  chat.remove(chat.current.id);
  await puppet.feed(delta("two", "stop"), "end");
  assert.deepEqual(store.all(), []);
  assert.deepEqual(contents(chat), []);
});

test("a model without a chat template is asked to continue what was said", async () => {
  const { puppet, chat } = setUp();
  chat.model = { id: "m", chats: false };
  chat.send("Once");
  await puppet.feed(delta(" upon a time.", "stop"), "end");
  chat.send("Then");
  await rest();
  assert.deepEqual(puppet.requests, [
    { prompt: "Once", max_tokens: 256, model: "m" },
    { prompt: "Once upon a time.\nThen", max_tokens: 256, model: "m" },
  ]);
});

test("what has come is kept when the page is left in the middle of a reply", async () => {
  const items = new Memory();
  const { puppet, chat } = setUp(items);
  chat.send("a");
  await puppet.feed(delta("so far"));
  chat.keepGrown();
  const again = setUp(items).chat;
  assert.deepEqual(contents(again), ["a", "so far"]);
  assert.equal(again.current.messages[1]?.finish, undefined);
});

test("a title and a system prompt are kept; an empty conversation is not", async () => {
  const items = new Memory();
  const { puppet, chat } = setUp(items);
  chat.setSystem("be brief");
  assert.equal(items.length, 0);
  chat.send("a");
  await puppet.feed("end");
  assert.deepEqual(puppet.requests[0]?.["messages"], [
    { role: "system", content: "be brief" },
    { role: "user", content: "a" },
  ]);
  chat.rename(chat.current.id, " named ");
  chat.setSystem("be long");
  const again = setUp(items).chat.current;
  assert.equal(again.title, "named");
  assert.equal(again.system, "be long");
});

test("full and missing storage are told, and the chat goes on", async () => {
  const items = new Memory();
  items.full = true;
  const { puppet, chat, troubles } = setUp(items);
  chat.send("a");
  await puppet.feed(delta("one", "stop"), "end");
  assert.deepEqual(contents(chat), ["a", "one"]);
  assert.match(troubles[0] ?? "", /storage is full/);
  const none = setUp(null);
  assert.match(none.troubles[0] ?? "", /keeps nothing/);
});

test("what cannot be read in the storage is left out, and left there", () => {
  const items = new Memory();
  items.map.set("heddle.conversation.bad", "{");
  items.map.set("other", "x");
  const { chat, troubles, store } = setUp(items);
  assert.deepEqual(store.all(), []);
  assert.equal(chat.current.messages.length, 0);
  assert.equal(troubles.length, 1);
  assert.ok(items.map.has("heddle.conversation.bad"));
});

test("what another tab does is seen", async () => {
  const items = new Memory();
  const one = setUp(items);
  const two = setUp(items);
  one.chat.send("a");
  await one.puppet.feed(delta("b", "stop"), "end");
  const { id } = one.chat.current;
  two.chat.changedElsewhere(`heddle.conversation.${id}`);
  assert.equal(two.store.all().length, 1);
  two.chat.select(id);
  one.chat.resend(0, "A");
  await one.puppet.feed(delta("B", "stop"), "end");
  two.chat.changedElsewhere(`heddle.conversation.${id}`);
  assert.deepEqual(contents(two.chat), ["A", "B"]);
  one.chat.removeAll();
  two.chat.changedElsewhere(null);
  assert.equal(two.store.all().length, 0);
  const before = two.changes.length;
  two.chat.changedElsewhere("someone.elses");
  assert.equal(two.changes.length, before);
});
