import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { violations } from "../support/axe.ts";
import { eventually } from "../support/eventually.ts";
import { launch, open, type Site } from "../support/browser.ts";

let browser: Browser;
before(async () => (browser = await launch()));
after(() => browser.close());

type Options = Parameters<typeof open>[1];

/** A test with a page of its own, which must cause no trouble. */
function chatTest(name: string, run: (site: Site) => Promise<void>, options: Options = {}): void {
  test(name, async () => {
    const site = await open(browser, options);
    try {
      await run(site);
      assert.deepEqual(site.troubles, []);
    } finally {
      await site.close();
    }
  });
}

const field = (page: Page) => page.getByLabel("Message", { exact: true });
const messages = (page: Page) => page.locator("article");
/** Text in a message; what is only announced does not count. */
const shown = (page: Page, text: string | RegExp) => page.locator("#log").getByText(text);

/** Sends by keyboard and waits until the reply has ended. */
async function say(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
}

async function focused(page: Page): Promise<string> {
  return page.evaluate(
    () =>
      document.activeElement?.id ||
      document.activeElement?.getAttribute("aria-label") ||
      document.activeElement?.tagName ||
      "",
  );
}

chatTest(
  "a message is sent and the reply streams in, by keyboard only",
  async ({ page, server }) => {
    assert.equal(await focused(page), "message");
    await page.keyboard.type("Hello");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("there");
    await page.keyboard.press("Enter");
    await shown(page, "You said: Hello there").waitFor();
    assert.deepEqual(server.asked[0]?.body["messages"], [
      { role: "user", content: "Hello\nthere" },
    ]);
    assert.equal(server.asked[0]?.body["model"], "fable-1m");
    assert.equal(server.asked[0]?.body["stream"], true);
    await shown(page, /\d+ tokens · [\d.]+ tokens\/s · prompt of 12 tokens/).waitFor();
    assert.equal(await focused(page), "message");
    assert.equal(await field(page).inputValue(), "");
    assert.match(await page.title(), /Hello there/);
  },
);

chatTest(
  "a screen reader hears when a reply begins and ends, and nothing between",
  async ({ page, server }) => {
    server.replies.set("long", "word ".repeat(400));
    await page.evaluate(() => {
      const heard: string[] = [];
      Object.assign(window, { heard });
      const place = document.getElementById("status") as HTMLElement;
      new MutationObserver(() => heard.push(place.textContent ?? "")).observe(place, {
        childList: true,
        characterData: true,
        subtree: true,
      });
    });
    await say(page, "long");
    await page.waitForFunction(() =>
      document.getElementById("status")?.textContent?.includes("complete"),
    );
    assert.deepEqual(await page.evaluate(() => (window as unknown as { heard: string[] }).heard), [
      "Waiting for the reply",
      "Reply complete, 400 words.",
    ]);
    assert.equal(await page.locator("article").nth(1).getAttribute("aria-busy"), "false");
    assert.equal(
      await page.locator("#log [aria-live], #log [role=log], #log [role=status]").count(),
      0,
    );
    await say(page, "short");
    await page.waitForFunction(
      () => document.getElementById("status")?.textContent === "Reply: You said: short",
    );
  },
);

chatTest(
  "the stop button and Escape stop a reply, and what came stays",
  async ({ page, server }) => {
    await field(page).fill("slow one");
    await page.keyboard.press("Enter");
    await shown(page, "word5").waitFor();
    await page.getByRole("button", { name: "Stop the reply" }).click();
    await shown(page, "Stopped.").waitFor();
    assert.equal(await focused(page), "message");
    await eventually("the server sees it", async () => server.hungUp.length === 1);
    await field(page).fill("slow two");
    await page.keyboard.press("Enter");
    await shown(page, "word3").nth(1).waitFor();
    await page.keyboard.press("Escape");
    await shown(page, "Stopped.").nth(1).waitFor();
    await eventually("the server sees it", async () => server.hungUp.length === 2);
    assert.deepEqual(server.hungUp, ["slow one", "slow two"]);
    assert.match((await messages(page).nth(1).textContent()) ?? "", /word0 word1/);
  },
);

chatTest(
  "a reply can be asked for again, and a message edited and sent again",
  async ({ page, server }) => {
    await say(page, "first");
    await say(page, "second");
    assert.equal(await page.getByRole("button", { name: "Ask again" }).count(), 1);
    server.replies.set("second", "another answer");
    await page.getByRole("button", { name: "Ask again" }).focus();
    await page.keyboard.press("Enter");
    await shown(page, "another answer").waitFor();
    assert.equal(await messages(page).count(), 4);
    assert.equal(await focused(page), "message");
    await page.getByRole("button", { name: "Edit and send again" }).first().click();
    const editor = page.getByRole("textbox", { name: "Your message" });
    assert.equal(await editor.inputValue(), "first");
    await page.keyboard.press("Escape");
    assert.equal(await focused(page), "Edit and send again");
    await page.keyboard.press("Enter");
    await editor.fill("changed");
    await page.keyboard.press("Enter");
    await shown(page, "You said: changed").waitFor();
    assert.equal(await messages(page).count(), 2);
    const last = server.asked[server.asked.length - 1];
    assert.deepEqual(last?.body["messages"], [{ role: "user", content: "changed" }]);
  },
);

const hostile = [
  "<img src=x onerror='window.pwned=1'><script>window.pwned=2</script>",
  "[link](javascript:window.pwned=3) [other](data:text/html,<script>window.pwned=4</script>) <javascript:window.pwned=5>",
  '![picture](https://example.org/secret.png) ![](x" onerror="window.pwned=6)',
  "[ref]: javascript:window.pwned=7",
  "[see][ref] [good](https://example.org/) <svg onload=window.pwned=8>",
  '```js"><img src=x onerror=window.pwned=9>',
  "</code></pre><script>window.pwned=10</script>",
  "```",
  "| <b>a</b> | `<i>` |",
  "|---|---|",
  "| <iframe srcdoc='<script>parent.pwned=11</script>'> | b |",
]
  .join("\n\n")
  .replace(/\| \n\n\|/g, "|\n|")
  .replace(/\|\n\n\|/g, "|\n|");

chatTest("nothing that a model or a person writes becomes HTML", async ({ page, server }) => {
  server.replies.set(hostile, hostile);
  await field(page).fill(hostile);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  await page.getByRole("link", { name: "good" }).waitFor();
  const inside = await page.evaluate(() => {
    const tags = [...document.querySelectorAll("#log *")].map((element) =>
      element.tagName.toLowerCase(),
    );
    const links = [...document.querySelectorAll<HTMLAnchorElement>("#log a")].map(
      (link) => `${link.href} ${link.rel} ${link.target}`,
    );
    const handlers = [...document.querySelectorAll("*")].filter((element) =>
      [...element.attributes].some(({ name }) => name.startsWith("on")),
    );
    return {
      tags: [...new Set(tags)],
      links,
      handlers: handlers.length,
      pwned: (window as { pwned?: number }).pwned ?? null,
    };
  });
  for (const tag of ["img", "script", "iframe", "b", "i", "object", "embed"])
    assert.ok(!inside.tags.includes(tag), tag);
  assert.equal(inside.pwned, null);
  assert.equal(inside.handlers, 0);
  assert.ok(inside.tags.includes("table"));
  assert.deepEqual(inside.links, [
    "https://example.org/secret.png noopener noreferrer _blank",
    "https://example.org/ noopener noreferrer _blank",
  ]);
  assert.match(
    (await messages(page).nth(1).textContent()) ?? "",
    /<img src=x onerror='window.pwned=1'>/,
  );
});

chatTest(
  "the page's security policy stops scripts that would be inserted",
  async ({ page, troubles }) => {
    const refused = await page.evaluate(() => {
      const script = document.createElement("script");
      try {
        script.text = "window.pwned = 1";
        document.body.append(script);
      } catch {
        return true; // trusted types
      }
      return (window as { pwned?: number }).pwned === undefined;
    });
    assert.ok(refused);
    troubles.length = 0; // the console tells of the attempt
  },
);

chatTest("code is copied as it stands", async ({ page, server }) => {
  server.replies.set("code", "```c\nint a < b;\n\n  return &a;\n```\n\nand `inline`");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await say(page, "code");
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await shown(page, "Copied").waitFor();
  assert.equal(
    await page.evaluate(() => navigator.clipboard.readText()),
    "int a < b;\n\n  return &a;\n",
  );
  await page.getByRole("button", { name: "Copy reply" }).click();
  await page.waitForFunction(() => document.getElementById("status")?.textContent === "Copied");
  assert.equal(
    await page.evaluate(() => navigator.clipboard.readText()),
    server.replies.get("code"),
  );
});

chatTest(
  "a growing reply keeps what it has shown, and a selection in it",
  async ({ page, server }) => {
    server.replies.set("long", `first paragraph\n\n${"more and more words\n\n".repeat(60)}`);
    await field(page).fill("long");
    await page.keyboard.press("Enter");
    await shown(page, "more and more words").first().waitFor();
    await page.evaluate(() => {
      const paragraph = document.querySelector("article.assistant .markdown p") as HTMLElement;
      getSelection()?.selectAllChildren(paragraph);
      Object.assign(window, { kept: paragraph });
    });
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    assert.equal(await page.evaluate(() => getSelection()?.toString()), "first paragraph");
    assert.ok(
      await page.evaluate(() => (window as unknown as { kept: HTMLElement }).kept.isConnected),
    );
  },
);

chatTest("thoughts are folded away from the answer", async ({ page, server }) => {
  server.replies.set("think", "<think>\nfirst this\n</think>\n\nThe answer.");
  await say(page, "think");
  const thoughts = page.locator("details.thoughts");
  await shown(page, "The answer.").waitFor();
  assert.equal(await thoughts.getAttribute("open"), null);
  await thoughts.locator("summary").click();
  await shown(page, "first this").waitFor();
});

const alarms = (page: Page) => page.locator("#alert");

chatTest("what the server refuses is shown with its cause, and said", async ({ page }) => {
  await say(page, "busy");
  await page
    .locator(".note.error", {
      hasText:
        "The server refused (429): the queue is full. Too much is asked of the server now: try again in 3 s.",
    })
    .waitFor();
  assert.match((await alarms(page).textContent()) ?? "", /queue is full/);
  await page.getByRole("button", { name: "New conversation" }).click();
  await say(page, "too long");
  await page
    .locator(".note.error", {
      hasText: "The server refused (400): the prompt has 5000 tokens, the context 2048.",
    })
    .waitFor();
});

chatTest("a reply that breaks off keeps what came and says why", async ({ page, server }) => {
  await say(page, "broken");
  await page.locator(".note.error", { hasText: /does not answer|broke off/ }).waitFor();
  assert.match((await messages(page).nth(1).textContent()) ?? "", /You said: brok/);
  await say(page, "fault");
  await page
    .locator(".note.error", { hasText: "The server stopped the reply: the device was lost" })
    .waitFor();
  server.replies.set("fault", "x");
  await say(page, "fine again");
  await shown(page, "You said: fine again").waitFor();
});

test("a server that is gone is told as that", async () => {
  const site = await open(browser);
  await site.page.getByText("fable-1m").waitFor();
  await site.server.close();
  await say(site.page, "hello?");
  await site.page.locator(".note.error", { hasText: "Is heddle serve still running?" }).waitFor();
  await site.page.context().close();
});

chatTest(
  "an API key is asked for, sent, and forgotten with the tab unless it should be kept",
  async ({ page, server }) => {
    await page.locator("#notice", { hasText: "Enter the API key in the settings." }).waitFor();
    await page.getByRole("button", { name: "Settings" }).click();
    assert.equal(await focused(page), "api-key");
    await page.keyboard.type("secret");
    await page.keyboard.press("Enter");
    await page.locator("#model", { hasText: "fable-1m" }).waitFor();
    await page.locator("#notice").waitFor({ state: "hidden" });
    await say(page, "hello");
    assert.equal(server.asked[0]?.authorization, "Bearer secret");
    assert.deepEqual(
      await page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes("api"))),
      [],
    );
    await page.reload();
    await page.locator("#model", { hasText: "fable-1m" }).waitFor();
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("Keep it in this browser").check();
    await page.getByRole("button", { name: "Save" }).click();
    assert.equal(await page.evaluate(() => localStorage.getItem("heddle.api-key")), "secret");
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("API key").fill("");
    await page.getByRole("button", { name: "Save" }).click();
    assert.equal(await page.evaluate(() => localStorage.getItem("heddle.api-key")), null);
  },
  { prepare: (server) => (server.apiKey = "secret") },
);

chatTest("settings are checked, kept and sent; the system prompt too", async ({ page, server }) => {
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("Temperature").fill("hot");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Temperature: “hot” is not a number.").waitFor();
  assert.equal(await focused(page), "setting-temperature");
  await page.getByLabel("Temperature").fill("0");
  await page.getByLabel("Seed").fill("7");
  await page.getByLabel("Stop texts").fill("END\n\nSTOP");
  await page.getByLabel("System prompt of new conversations").fill("Be brief.");
  await page.getByRole("button", { name: "Save" }).click();
  assert.equal(await focused(page), "open-settings");
  await page.reload();
  await page.getByRole("button", { name: "New conversation" }).click();
  await say(page, "hello");
  const body = server.asked[0]?.body ?? {};
  assert.deepEqual(
    [body["temperature"], body["seed"], body["stop"], body["top_p"]],
    [0, 7, ["END", "STOP"], undefined],
  );
  assert.deepEqual(body["messages"], [
    { role: "system", content: "Be brief." },
    { role: "user", content: "hello" },
  ]);
});

chatTest(
  "conversations outlive the page, and can be renamed, exported, deleted and imported",
  async ({ page }) => {
    await say(page, "keep me");
    await page.getByRole("button", { name: "New conversation" }).click();
    await say(page, "and me");
    await page.reload();
    const list = page.locator("#conversations li");
    assert.equal(await list.count(), 2);
    await page.getByRole("button", { name: "keep me", exact: true }).click();
    await shown(page, "You said: keep me").waitFor();
    await page.getByRole("button", { name: "Rename “keep me”" }).click();
    await page.getByLabel("Title").fill("Kept <b>");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Kept <b>", exact: true }).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export" }).click(),
    ]);
    const text = await readFile(await download.path(), "utf8");
    assert.equal((JSON.parse(text) as { conversations: unknown[] }).conversations.length, 2);
    page.on("dialog", (dialog) => void dialog.accept());
    await page.getByRole("button", { name: "Delete “Kept <b>”" }).click();
    await page.waitForFunction(() => document.querySelectorAll("#conversations li").length === 1);
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "and me");
    await page.getByRole("button", { name: "Delete all" }).click();
    await page.waitForFunction(() => document.querySelectorAll("#conversations li").length === 0);
    await page
      .getByLabel("File to import")
      .setInputFiles({ name: "c.json", mimeType: "application/json", buffer: Buffer.from(text) });
    await page.waitForFunction(() => document.querySelectorAll("#conversations li").length === 2);
    await page
      .getByLabel("File to import")
      .setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from("{}") });
    await page.locator("#notice", { hasText: "no heddle conversations" }).waitFor();
  },
);

chatTest("two tabs see each other's conversations", async ({ page }) => {
  const other = await page.context().newPage();
  await other.goto(page.url());
  await say(page, "from one tab");
  await other.getByRole("button", { name: "from one tab", exact: true }).waitFor();
});

chatTest(
  "the skip link leads to the content, before anything else",
  async ({ page }) => {
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), "skip");
    await page.keyboard.press("Enter");
    assert.equal(await focused(page), "main");
  },
  { at: "#graph" },
);

chatTest(
  "the colour scheme follows the system until it is switched, and stays switched",
  async ({ page }) => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(await ground(), "rgb(255, 255, 255)");
    await page.emulateMedia({ colorScheme: "dark" });
    assert.equal(await ground(), "rgb(18, 23, 28)");
    await page.getByRole("button", { name: "Colour scheme: as the system's" }).click();
    assert.equal(await ground(), "rgb(255, 255, 255)");
    await page.reload();
    assert.equal(await ground(), "rgb(255, 255, 255)");
    await page.getByRole("button", { name: "Colour scheme: light" }).click();
    await page.emulateMedia({ colorScheme: "light" });
    assert.equal(await ground(), "rgb(18, 23, 28)");
  },
);

chatTest(
  "nothing moves by itself for those who asked for that",
  async ({ page }) => {
    await field(page).fill("slow");
    await page.keyboard.press("Enter");
    await shown(page, "word5").waitFor();
    assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  },
  { reducedMotion: "reduce" },
);

chatTest(
  "in a narrow window nothing is cut off, and the list is a drawer",
  async ({ page, server }) => {
    server.replies.set(
      "wide",
      `${"x".repeat(300)}\n\n\`\`\`\n${"y".repeat(300)}\n\`\`\`\n\n|${"a|".repeat(30)}\n|${"-|".repeat(30)}\n|${"b|".repeat(30)}`,
    );
    await say(page, "wide");
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok((await overflow()) <= 0);
    const inside = await page.evaluate(() => {
      const log = document.getElementById("log-scroll") as HTMLElement;
      return log.scrollWidth - log.clientWidth;
    });
    assert.ok(inside <= 0, `the messages are ${inside} pixels too wide`);
    assert.ok(!(await page.getByRole("button", { name: "New conversation" }).isVisible()));
    await page.getByRole("button", { name: "Conversations" }).focus();
    await page.keyboard.press("Enter");
    assert.equal(await focused(page), "close-sidebar");
    await page.keyboard.press("Escape");
    assert.equal(await focused(page), "open-sidebar");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "New conversation" }).click();
    await shown(page, "Ask something.").waitFor();
    await page.getByRole("button", { name: "Import" }).waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Settings" }).click();
    assert.ok((await overflow()) <= 0);
  },
  { viewport: { width: 360, height: 640 } },
);

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [360, 1280]) {
    chatTest(
      `axe finds nothing: ${colorScheme}, ${width} pixels`,
      async ({ page, server }) => {
        server.replies.set(
          "all",
          "# Head\n\n- a\n- b\n\n[link](https://example.org) `code` **b**\n\n```py\nx\n```\n\n|a|b|\n|-|-|\n|1|2|\n\n> quote",
        );
        assert.deepEqual(await violations(page), []);
        await say(page, "all");
        await say(page, "busy");
        assert.deepEqual(await violations(page), []);
        await page.getByRole("button", { name: "Edit and send again" }).first().click();
        assert.deepEqual(await violations(page), []);
        await page.getByRole("button", { name: "Settings" }).click();
        assert.deepEqual(await violations(page), []);
      },
      { colorScheme, viewport: { width, height: 740 } },
    );
  }
}

chatTest("a very long reply stays fluent", async ({ page, server }) => {
  server.replies.set("book", "A paragraph with **some** words in it, and `code`.\n\n".repeat(200));
  await page.evaluate(() => {
    const frames: number[] = [];
    Object.assign(window, { frames });
    const next = (now: number) => (frames.push(now), requestAnimationFrame(next));
    requestAnimationFrame(next);
  });
  await say(page, "book");
  assert.equal(await page.locator("article.assistant .markdown > p").count(), 200);
  const frames = await page.evaluate(() => (window as unknown as { frames: number[] }).frames);
  const gaps = frames
    .slice(1)
    .map((now, at) => now - (frames[at] ?? now))
    .sort((a, b) => a - b);
  const median = gaps[gaps.length >> 1] ?? 0;
  assert.ok(median < 500, `half of all frames took more than ${median} ms`);
});
