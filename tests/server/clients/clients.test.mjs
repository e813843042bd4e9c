// The official OpenAI client, and an agent framework's, against `heddle serve`. The model knows
// fables and nothing else: grammars see to it that there is something to look at.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

const key = "sesame";
const chatTemplate = `{%- if tools %}<|im_start|>system
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
<tool_call>{"name": ..., "arguments": ...}</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

const Animal = z.object({ kind: z.enum(["fox", "owl"]), legs: z.number().int().min(0).max(9) });
const ask = { messages: [{ role: "user", content: "Tell me of a fox." }], temperature: 0, max_tokens: 40 };
const model = "fable";
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Says the weather in a place.",
    parameters: {
      type: "object",
      properties: { place: { type: "string", enum: ["Oslo", "Bergen"] } },
      required: ["place"],
      additionalProperties: false,
    },
  },
};

let directory, server, base, client, provider;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "heddle-clients-"));
  const path = join(directory, "template.jinja");
  writeFileSync(path, chatTemplate);
  const options = ["--port", "0", "--api-key", key, "--alias", model, "--chat-template", path, "-t", "1"];
  server = spawn(process.env.SERVE_PROGRAM, ["serve", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  base = await new Promise((resolve, reject) => {
    let said = "";
    server.stdout.on("data", (data) => {
      said += data;
      const line = /^listening on (\S+)\n/.exec(said);
      if (line) resolve(`${line[1]}/v1`);
    });
    server.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  client = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 });
  provider = createOpenAICompatible({ name: "heddle", baseURL: base, apiKey: key, supportsStructuredOutputs: true, includeUsage: true });
});

after(async () => {
  server.removeAllListeners("exit");
  const ended = new Promise((resolve) => server.on("exit", (code) => resolve(code)));
  server.kill("SIGTERM");
  assert.equal(await ended, 0);
  rmSync(directory, { recursive: true });
});

test("openai: a chat, whole and streamed", async () => {
  const whole = await client.chat.completions.create({ model, ...ask });
  const text = whole.choices[0].message.content;
  assert.ok(text.length > 20);
  assert.equal(whole.choices[0].finish_reason, "length");
  assert.equal(whole.usage.completion_tokens, 40);

  const stream = await client.chat.completions.create({
    model, ...ask, stream: true, stream_options: { include_usage: true },
  });
  let streamed = "", usage = null;
  for await (const chunk of stream) {
    streamed += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(streamed, text);
  assert.equal(usage.completion_tokens, 40);
  assert.ok(usage.prompt_tokens_details.cached_tokens > 0);

  const helper = client.chat.completions.stream({ model, ...ask });
  assert.equal((await helper.finalChatCompletion()).choices[0].message.content, text);
});

test("openai: settings", async () => {
  const reply = await client.chat.completions.create({
    model, ...ask, temperature: 1.2, n: 3, seed: 1, stop: ["."], logprobs: true, top_logprobs: 2,
    logit_bias: { 5: -100 }, presence_penalty: 0.5, frequency_penalty: 0.5, user: "someone", store: false,
    metadata: { a: "b" },
  });
  assert.equal(reply.choices.length, 3);
  for (const choice of reply.choices) {
    assert.ok(!choice.message.content.includes("."));
    assert.equal(choice.logprobs.content[0].top_logprobs.length, 2);
  }
});

test("openai: completions", async () => {
  const prompt = ["Once upon a time", "The owl"];
  const reply = await client.completions.create({ model, prompt, max_tokens: 8, temperature: 0, logprobs: 1 });
  assert.equal(reply.choices.length, 2);
  assert.equal(reply.choices[0].logprobs.tokens.length, 8);
  let text = "";
  const stream = await client.completions.create({ model, prompt: prompt[0], max_tokens: 8, temperature: 0, stream: true });
  for await (const chunk of stream) text += chunk.choices[0].text;
  assert.equal(text, reply.choices[0].text);
});

test("openai: JSON by a schema", async () => {
  const reply = await client.chat.completions.parse({
    model, ...ask, max_tokens: 200, response_format: zodResponseFormat(Animal, "animal"),
  });
  Animal.parse(reply.choices[0].message.parsed);
  const free = await client.chat.completions.create({
    model, ...ask, max_tokens: 400, temperature: 0.7, seed: 3, response_format: { type: "json_object" },
  });
  if (free.choices[0].finish_reason === "stop") JSON.parse(free.choices[0].message.content);
});

test("openai: tools, whole, streamed and run", async () => {
  const body = { model, ...ask, max_tokens: 200, tools: [weather] };
  const tool_choice = { type: "function", function: { name: "get_weather" } };
  const reply = await client.chat.completions.create({ ...body, tool_choice });
  const message = reply.choices[0].message;
  assert.equal(reply.choices[0].finish_reason, "tool_calls");
  assert.ok(["Oslo", "Bergen"].includes(JSON.parse(message.tool_calls[0].function.arguments).place));

  const stream = client.chat.completions.stream({ ...body, tool_choice: "required" });
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0].message.tool_calls[0].function.name, "get_weather");

  const answer = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "3 degrees" };
  const next = await client.chat.completions.create({
    ...body, max_tokens: 10, messages: [...ask.messages, message, answer],
  });
  assert.equal(next.choices[0].message.role, "assistant");
});

test("openai: embeddings and models", async () => {
  const input = ["A fox.", "An owl."];
  const packed = await client.embeddings.create({ model, input }); // base64, the client's own choice
  const plain = await client.embeddings.create({ model, input, encoding_format: "float" });
  assert.equal(packed.data.length, 2);
  packed.data.forEach(({ embedding }, i) => {
    assert.deepEqual([...embedding].map(Math.fround), plain.data[i].embedding.map(Math.fround));
    assert.ok(Math.abs(embedding.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-5);
  });
  const list = [];
  for await (const one of client.models.list()) list.push(one.id);
  assert.deepEqual(list, [model]);
  assert.equal((await client.models.retrieve(model)).id, model);
});

test("openai: errors are of the right kind", async () => {
  const chat = (body) => client.chat.completions.create({ model, ...ask, ...body });
  await assert.rejects(chat({ temperature: 3 }), (error) =>
    error instanceof OpenAI.BadRequestError && error.param === "temperature");
  await assert.rejects(chat({ messages: [{ role: "user", content: "fox ".repeat(5000) }] }), (error) =>
    error instanceof OpenAI.BadRequestError && error.code === "context_length_exceeded");
  await assert.rejects(client.models.retrieve("other"), OpenAI.NotFoundError);
  await assert.rejects(client.embeddings.create({ model, input: "x", dimensions: 3 }), OpenAI.BadRequestError);
  const stranger = new OpenAI({ baseURL: base, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
});

test("openai: a stream that its reader leaves", async () => {
  const stream = await client.chat.completions.create({ model, ...ask, max_tokens: 300, stream: true });
  for await (const _ of stream) break;
  const controller = new AbortController();
  const reply = client.chat.completions.create({ model, ...ask, max_tokens: 300 }, { signal: controller.signal });
  setTimeout(() => controller.abort(), 30);
  await reply.catch((error) => assert.ok(error instanceof OpenAI.APIUserAbortError));
  assert.equal((await client.chat.completions.create({ model, ...ask, max_tokens: 1 })).usage.completion_tokens, 1);
});

test("ai: text, whole and streamed", async () => {
  const settings = { model: provider(model), prompt: "Tell me of a fox.", temperature: 0, maxOutputTokens: 20, maxRetries: 0 };
  const { text, usage, finishReason } = await generateText(settings);
  assert.equal(finishReason, "length");
  assert.equal(usage.outputTokens, 20);
  const stream = streamText(settings);
  let streamed = "";
  for await (const piece of stream.textStream) streamed += piece;
  assert.equal(streamed, text);
  assert.equal((await stream.usage).outputTokens, 20);
});

test("ai: an object by a schema", async () => {
  const { object } = await generateObject({
    model: provider(model), prompt: "Tell me of a fox.", schema: Animal, temperature: 0, maxRetries: 0,
  });
  Animal.parse(object);
});

test("ai: an agent calls a tool and goes on", async () => {
  const asked = [];
  const tools = {
    get_weather: tool({
      description: "Says the weather in a place.",
      inputSchema: z.object({ place: z.enum(["Oslo", "Bergen"]) }),
      execute: async ({ place }) => {
        asked.push(place);
        return `3 degrees in ${place}`;
      },
    }),
  };
  const { steps } = await generateText({
    model: provider(model), prompt: "The weather?", tools, temperature: 0, maxOutputTokens: 100, maxRetries: 0,
    stopWhen: stepCountIs(2),
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "none" }),
  });
  assert.equal(steps.length, 2);
  assert.equal(steps[0].toolResults[0].output, `3 degrees in ${asked[0]}`);
  assert.ok(steps[1].text.length > 0);

  const stream = streamText({ model: provider(model), prompt: "The weather?", tools, toolChoice: "required", temperature: 0, maxRetries: 0 });
  const calls = await stream.toolCalls;
  assert.equal(calls[0].toolName, "get_weather");
});

test("ai: embeddings, and errors with their words", async () => {
  const { embeddings } = await embedMany({ model: provider.textEmbeddingModel(model), values: ["A fox.", "An owl."], maxRetries: 0 });
  assert.equal(embeddings.length, 2);
  await assert.rejects(
    generateText({ model: provider(model), prompt: "fox ".repeat(5000), maxRetries: 0 }),
    (error) => error.statusCode === 400 && /maximum context length/.test(error.message));
});
