import assert from "node:assert/strict";
import { test } from "node:test";
import { exported, imported } from "../../src/chat/archive.ts";
import {
  before,
  newConversation,
  splitReasoning,
  titleOf,
  withLast,
  withMessage,
  type Conversation,
} from "../../src/chat/conversation.ts";
import { Rate } from "../../src/chat/rate.ts";
import {
  numberSettings,
  noSettings,
  parseNumber,
  requestFor,
  settingsOf,
} from "../../src/chat/settings.ts";

function talk(...contents: string[]): Conversation {
  const conversation = newConversation("", 1, "id");
  conversation.messages = contents.map((content, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content,
  }));
  return conversation;
}

test("conversations are changed into new ones", () => {
  const one = talk("a", "b", "c");
  assert.deepEqual(
    before(one, 1).messages.map(({ content }) => content),
    ["a"],
  );
  assert.deepEqual(withMessage(one, { role: "assistant", content: "d" }, 9).messages.length, 4);
  assert.equal(withLast(one, { role: "user", content: "C" }, 9).messages[2]?.content, "C");
  assert.equal(one.messages.length, 3);
  assert.notEqual(newConversation("", 0).id, newConversation("", 0).id);
});

test("the first words are the title, unless it has one", () => {
  assert.equal(titleOf(talk()), "New conversation");
  assert.equal(titleOf(talk("  two\n words ")), "two words");
  assert.equal(titleOf({ ...talk("x"), title: "named" }), "named");
  const long = titleOf(talk("😀".repeat(100)));
  assert.equal(Array.from(long).length, 60);
  assert.ok(long.endsWith("😀…"));
});

test("thoughts are split from the answer", () => {
  assert.deepEqual(splitReasoning("plain <think>"), {
    reasoning: "",
    answer: "plain <think>",
    open: false,
  });
  assert.deepEqual(splitReasoning("<think>\nhm"), { reasoning: "hm", answer: "", open: true });
  assert.deepEqual(splitReasoning(" <think>hm</think>\n\nyes"), {
    reasoning: "hm",
    answer: "yes",
    open: false,
  });
});

test("what is exported can be imported", () => {
  const one = talk("a", "b");
  one.messages[1] = {
    role: "assistant",
    content: "b",
    finish: "stop",
    figures: { promptTokens: 3, cachedTokens: 2, completionTokens: 4, tokensPerSecond: null },
  };
  assert.deepEqual(imported(exported([one, talk()])), [one, talk()]);
});

test("files that are something else are refused with the reason", () => {
  const whole = (conversation: unknown) =>
    JSON.stringify({ format: "heddle-conversations", version: 1, conversations: [conversation] });
  assert.throws(() => imported("{"), /not JSON/);
  for (const other of ["null", "[]", "{}", '{"format":"heddle-conversations"}'])
    assert.throws(() => imported(other), /no heddle conversations/);
  assert.throws(
    () => imported('{"format":"heddle-conversations","version":2,"conversations":[]}'),
    /version 2/,
  );
  assert.throws(() => imported(whole(7)), /Conversation 1 is not an object/);
  assert.throws(() => imported(whole({ ...talk(), id: "../x" })), /usable id/);
  assert.throws(() => imported(whole({ ...talk(), updated: null })), /no date/);
  assert.throws(() => imported(whole({ ...talk(), messages: "x" })), /no messages/);
  assert.throws(
    () => imported(whole({ ...talk(), messages: [{ role: "root", content: "" }] })),
    /Message 1 of conversation 1 has the role "root"/,
  );
  assert.throws(
    () => imported(whole({ ...talk(), messages: [{ role: "user", content: 7 }] })),
    /no content/,
  );
});

test("only what is known of a message is taken in", () => {
  const [read] = imported(exported([{ ...talk("a"), extra: "x" } as Conversation]));
  assert.deepEqual(Object.keys(read ?? {}).sort(), [
    "id",
    "messages",
    "system",
    "title",
    "updated",
  ]);
});

test("settings from text", () => {
  const setting = (name: string) =>
    numberSettings.find((one) => one.name === name) ?? assert.fail(name);
  assert.deepEqual(parseNumber(setting("temperature"), " 0.7 "), { value: 0.7 });
  assert.deepEqual(parseNumber(setting("temperature"), ""), { value: null });
  for (const text of ["warm", "-0.1", "2.01", "NaN", "Infinity", "1e99"])
    assert.ok("wrong" in parseNumber(setting("temperature"), text), text);
  assert.deepEqual(parseNumber(setting("seed"), "0"), { value: 0 });
  assert.ok("wrong" in parseNumber(setting("top_k"), "1.5"));
});

test("settings from storage: what does not fit is dropped", () => {
  for (const nothing of [null, 3, "x", [], { numbers: 7, stop: "x", system: 5 }])
    assert.deepEqual(settingsOf(nothing), noSettings);
  const read = settingsOf({
    numbers: { temperature: 0.5, top_p: 7, top_k: "40", unknown: 1 },
    stop: ["a", 3, ""],
    system: "s",
  });
  assert.deepEqual(read, { numbers: { temperature: 0.5, top_k: 40 }, stop: ["a"], system: "s" });
});

test("a request has the system prompt, the messages and the settings", () => {
  const conversation = { ...talk("a", "b", "c"), system: "be kind" };
  const settings = { numbers: { temperature: 0, seed: 7 }, stop: ["\n"], system: "" };
  assert.deepEqual(requestFor(conversation, settings, { id: "m", chats: true }), {
    model: "m",
    messages: [
      { role: "system", content: "be kind" },
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
      { role: "user", content: "c" },
    ],
    temperature: 0,
    seed: 7,
    stop: ["\n"],
  });
});

test("without a model, a system prompt and settings, a request has none", () => {
  assert.deepEqual(requestFor({ ...talk("a"), system: " " }, noSettings, null), {
    messages: [{ role: "user", content: "a" }],
  });
});

test("replies that said nothing are left out, so that roles still alternate", () => {
  const { messages } = requestFor(talk("a", "", "b", "c"), noSettings, null);
  assert.deepEqual(messages, [
    { role: "user", content: "a\n\nb" },
    { role: "assistant", content: "c" },
  ]);
});

test("the rate counts what came after the first piece", () => {
  const rate = new Rate();
  assert.equal(rate.perSecond(null), null);
  rate.piece(1000);
  assert.equal(rate.perSecond(1), null);
  rate.piece(1500);
  rate.piece(2000);
  assert.equal(rate.perSecond(null), 2);
  assert.equal(rate.perSecond(11), 10);
});
