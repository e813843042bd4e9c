// The page as heddle serve serves it, with the model that is built in.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { violations } from "../support/axe.ts";
import { environment, launch, watch } from "../support/browser.ts";
import { Program } from "../support/program.ts";

let browser: Browser;
let program: Program;
before(async () => {
  browser = await launch();
  program = await Program.start("--api-key", "secret");
});
after(async () => {
  await browser.close();
  assert.equal(await program.stop(), 0);
});

/** With the key entered, as a person would. */
async function visit(at: string): Promise<{ page: Page; troubles: string[] }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  const troubles = watch(page, program.address);
  await page.goto(`${program.address}/${at}`);
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("API key").fill("secret");
  await page.getByLabel("Temperature").fill("0");
  await page.getByLabel("Tokens at most").fill("40");
  await page.keyboard.press("Enter");
  await page.locator("#model", { hasText: "fable" }).waitFor();
  return { page, troubles };
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
}

async function reply(page: Page, index: number): Promise<string> {
  return (await page.locator("article.assistant .body > .markdown").nth(index).textContent()) ?? "";
}

test("the program serves the page with headers that keep it safe", async () => {
  const response = await fetch(`${program.address}/`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get("Content-Type") ?? "", /^text\/html/);
  assert.match(response.headers.get("Content-Security-Policy") ?? "", /default-src 'none'/);
  const html = await response.text();
  const script = /page-[0-9a-f]+\.js/.exec(html)?.[0] ?? assert.fail("no script");
  const immutable = await fetch(`${program.address}/${script}`);
  assert.match(immutable.headers.get("Cache-Control") ?? "", /immutable/);
  assert.match(immutable.headers.get("Content-Type") ?? "", /^text\/javascript/);
  assert.equal((await fetch(`${program.address}/page-none.js`)).status, 404);
});

test("a chat with the model: streamed, the same again at temperature 0, and refused with the cause", async () => {
  const { page, troubles } = await visit("");
  await say(page, "Tell me of a fox.");
  const first = await reply(page, 0);
  assert.ok(first.length > 20, first);
  await page
    // Without a rate where the whole reply came at once, as it may from so small a model.
    .locator(".figures", { hasText: /tokens · ([\d.]+ tokens\/s · )?prompt of \d+ tokens/ })
    .waitFor();
  await page.getByRole("button", { name: "Ask again" }).click();
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  assert.equal(await reply(page, 0), first);
  await say(page, "word ".repeat(6000));
  await page.locator(".note.error", { hasText: "The server refused (400)" }).waitFor();
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(troubles, []);
  await page.context().close();
});

test("the wrong key is told", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(program.address);
  await page.locator("#notice", { hasText: "The server refused (401)" }).waitFor();
  await context.close();
});

test("what the model runs is watched while it chats", async () => {
  const { page, troubles } = await visit("#graph");
  const watching = page.waitForResponse(/\/trace\/live$/);
  await page.getByRole("button", { name: "Watch" }).click();
  assert.equal((await watching).status(), 200);
  const chat = await page.context().newPage();
  await chat.goto(`${program.address}/`);
  await chat.getByRole("button", { name: "Settings" }).click();
  await chat.getByLabel("API key").fill("secret");
  await chat.keyboard.press("Enter");
  await chat.locator("#model", { hasText: "fable" }).waitFor();
  await say(chat, "Tell me of a bear.");
  assert.ok((await reply(chat, 0)).length > 20);
  await page.bringToFront();
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByRole("heading", { name: /^Plan \d+$/ }).waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.waitForFunction(
    () => (document.querySelectorAll("#run-choice option").length ?? 0) > 5,
  );
  await page.getByLabel("Find nodes").fill("output_norm");
  await page.keyboard.press("Enter");
  await details.getByRole("heading", { name: "rms_norm" }).waitFor();
  await details.getByRole("img", { name: /^Histogram from/ }).waitFor();
  await page.getByRole("tab", { name: "Memory" }).click();
  await page.getByRole("heading", { name: "Arena of cpu" }).waitFor();
  assert.deepEqual(troubles, []);
  await page.context().close();
});

const run = promisify(execFile);

/** What `heddle run --trace` writes. */
async function traced(...options: string[]): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-trace-"));
  try {
    const file = join(folder, "trace.json");
    const wanted = ["run", "-p", "Once upon a time", "-n", "4", "--trace", file];
    await run(environment("HEDDLE_PROGRAM"), [...wanted, ...options]);
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true });
  }
}

for (const [how, options, heading] of [
  ["through plans", [], /^Plan \d+$/],
  ["lazily", ["--lazy"], "Run without a plan"],
] as const) {
  test(`a trace of a run ${how} is shown`, async () => {
    const { page, troubles } = await visit("#graph");
    const buffer = await traced(...options);
    const file = { name: "trace.json", mimeType: "application/json", buffer };
    await page.getByLabel("Trace file").setInputFiles(file);
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByRole("heading", { name: heading }).waitFor();
    await page.getByRole("application").focus();
    await page.keyboard.press("End");
    await details.getByRole("heading", { name: "linear" }).waitFor();
    await details.getByRole("img", { name: /^Histogram from/ }).waitFor();
    assert.deepEqual(troubles, []);
    await page.context().close();
  });
}
