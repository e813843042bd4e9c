import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { violations } from "../support/axe.ts";
import { eventually } from "../support/eventually.ts";
import { environment, launch, open, type Site } from "../support/browser.ts";
import { largeTrace } from "../support/large_trace.ts";

let browser: Browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const sampleFile = join(environment("HEDDLE_WEB_DIR"), "test", "sample-trace.json");
type Options = Parameters<typeof open>[1];

function graphTest(name: string, run: (site: Site) => Promise<void>, options: Options = {}): void {
  test(name, async () => {
    const site = await open(browser, { at: "#graph", ...options });
    try {
      await run(site);
      assert.deepEqual(site.troubles, []);
    } finally {
      await site.close();
    }
  });
}

const canvas = (page: Page) => page.getByRole("application");
const details = (page: Page) => page.getByRole("complementary", { name: "Details" });
const runs = (page: Page) => page.getByRole("combobox", { name: "Run" });

async function openFile(page: Page, content: string | Buffer, name = "trace.json"): Promise<void> {
  await page
    .getByLabel("Trace file")
    .setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(content) });
}

async function openSample(page: Page): Promise<void> {
  await page.getByLabel("Trace file").setInputFiles(sampleFile);
  await details(page).getByRole("heading", { name: "Plan 2" }).waitFor();
}

async function heard(page: Page, wanted: RegExp): Promise<void> {
  await page.waitForFunction(
    (source) => new RegExp(source).test(document.getElementById("status")?.textContent ?? ""),
    wanted.source,
  );
}

/** The colours of the canvas's pixels, how often each is there. */
function pixels(page: Page): Promise<Record<string, number>> {
  return canvas(page).evaluate((element) => {
    const picture = element as HTMLCanvasElement;
    const data =
      picture.getContext("2d")?.getImageData(0, 0, picture.width, picture.height).data ??
      new Uint8ClampedArray();
    const counts: Record<string, number> = {};
    for (let at = 0; at < data.length; at += 4) {
      const colour = `${data[at]},${data[at + 1]},${data[at + 2]}`;
      counts[colour] = (counts[colour] ?? 0) + 1;
    }
    return counts;
  });
}

async function pictureHas(
  page: Page,
  what: string,
  check: (picture: Record<string, number>) => boolean,
): Promise<void> {
  await eventually(what, async () => check(await pixels(page)));
}

const differsFrom = (other: Record<string, number>) => (picture: Record<string, number>) =>
  JSON.stringify(picture) !== JSON.stringify(other);

const accent = "31,90,138"; // of the light scheme: what runs
const soft = "220,235,247"; // what has run

graphTest("a trace is opened, and walked through by keyboard", async ({ page }) => {
  await openSample(page);
  await heard(page, /^Opened sample-trace\.json: 2 runs$/);
  await canvas(page).focus();
  await page.keyboard.press("Home");
  await heard(page, /^tokens, i32 \[1\], input/);
  await page.keyboard.press("End");
  await heard(page, /^linear, token_embd\.weight, split 2 on cpu, [\d.]+ µs/);
  await details(page).getByRole("heading", { name: "linear" }).waitFor();
  await details(page).getByText(/GB\/s/).first().waitFor();
  await details(page)
    .getByRole("img", { name: /^Histogram from -?[\d.]+ to/ })
    .waitFor();
  await details(page)
    .getByRole("img", { name: /^Picture of 1 rows of 32 values/ })
    .waitFor();
  await page.keyboard.press("ArrowUp");
  await heard(page, /^rms_norm, output_norm\.weight/);
  await pictureHas(page, "what has run is filled", (picture) => (picture[soft] ?? 0) > 2000);
});

graphTest("layers are folded and unfolded by keyboard and by buttons", async ({ page }) => {
  await openSample(page);
  const name = async () => (await canvas(page).getAttribute("aria-label")) ?? "";
  assert.match(await name(), /Graph of plan 2, 59 boxes/);
  await page.getByRole("button", { name: "Fold layers" }).click();
  await heard(page, /Layers folded/);
  await canvas(page).focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await heard(page, /^Layer 3, 13 nodes, split 2 on cpu, .*, folded$/);
  await page.keyboard.press("Enter");
  await heard(page, /^add_rms_norm, blk\.3\.attn_norm\.weight, split 2/);
  await page.keyboard.press(" ");
  await heard(page, /^Layer 3/);
  await details(page).getByRole("button", { name: "blk.3.ffn_down.weight/linear" }).waitFor();
  await details(page).getByRole("button", { name: "Unfold" }).click();
  await heard(page, /^add_rms_norm, blk\.3/);
  await details(page).getByRole("heading", { name: "add_rms_norm" }).waitFor();
});

graphTest("what a node read and who reads it can be followed", async ({ page }) => {
  await openSample(page);
  await page.getByLabel("Find nodes").fill("blk.1.ffn_down.weight/linear");
  await page.getByText("1 node", { exact: true }).waitFor();
  await page.keyboard.press("Enter");
  await details(page).getByRole("heading", { name: "linear" }).waitFor();
  await details(page).getByText("blk.1.ffn_down.weight (parameter)").waitFor();
  await details(page).getByRole("button", { name: "blk.1.ffn_gate.weight/gated_multiply" }).click();
  await details(page).getByRole("heading", { name: "gated_multiply" }).waitFor();
  await details(page).getByText("As numbers").first().click();
  assert.equal(await details(page).getByRole("cell").count(), 32);
  await page.getByLabel("Find nodes").fill("nothing like that");
  await page.getByText("0 nodes", { exact: true }).waitFor();
});

graphTest("the mouse selects, drags and zooms", async ({ page }) => {
  await openSample(page);
  const box = (await canvas(page).boundingBox()) ?? assert.fail("no canvas");
  const inside = details(page);
  let found = false;
  for (let x = 40; x < box.width && !found; x += 60) {
    for (let y = 20; y < box.height - 80 && !found; y += 25) {
      await page.mouse.click(box.x + x, box.y + y);
      found = (await inside.getByText("Makes").count()) > 0;
    }
  }
  assert.ok(found, "a click on a box selects it");
  const before = await pixels(page);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.wheel(0, -400);
  await pictureHas(page, "the wheel zooms", differsFrom(before));
  const zoomed = await pixels(page);
  await page.getByRole("button", { name: "Show all" }).click();
  await pictureHas(page, "all is shown", differsFrom(zoomed));
  const fitted = await pixels(page);
  await page.mouse.move(box.x + 300, box.y + 300);
  await page.mouse.down();
  await page.mouse.move(box.x + 100, box.y + 100, { steps: 5 });
  await page.mouse.up();
  await pictureHas(page, "dragging moves", differsFrom(fitted));
  assert.ok((await inside.getByText("Makes").count()) > 0, "dragging selects nothing");
});

graphTest("the table says the same, sorts and finds", async ({ page }) => {
  await openSample(page);
  await page.getByRole("tab", { name: "Graph" }).focus();
  await page.keyboard.press("ArrowRight");
  const table = page.getByRole("table", { name: "Nodes of the plan" });
  assert.equal(await table.getByRole("row").count(), 60);
  await table.getByRole("button", { name: "Time", exact: true }).click();
  assert.equal(await table.locator("th[aria-sort]").getAttribute("aria-sort"), "descending");
  const trace = JSON.parse(await readFile(sampleFile, "utf8")) as {
    heddle: {
      plans: { nodes: { name: string }[] }[];
      runs: { records: { node: number; encode: number; wait: number }[] }[];
    };
  };
  const slowest = trace.heddle.runs[1]?.records.reduce((most, record) =>
    record.encode + record.wait > most.encode + most.wait ? record : most,
  );
  const name = trace.heddle.plans[1]?.nodes[slowest?.node ?? 0]?.name ?? "";
  assert.equal(await table.getByRole("rowheader").first().textContent(), name);
  await table.getByRole("button", { name, exact: true }).click();
  await details(page).getByText("Makes").waitFor();
  assert.equal(await table.locator("tr[aria-current]").count(), 1);
  await page.getByLabel("Find nodes").fill("vulkan rope_write");
  assert.equal(await table.getByRole("row").count(), 5);
});

graphTest("memory over time is shown, as a picture and as a table", async ({ page }) => {
  await openSample(page);
  await page.getByRole("tab", { name: "Memory" }).click();
  await page.getByRole("heading", { name: "Arena of vulkan:0" }).waitFor();
  await page.getByText(/exactly the lower bound; 32 values over time/).waitFor();
  const picture = page.getByRole("img", { name: /^Memory of vulkan:0/ });
  const box = (await picture.boundingBox()) ?? assert.fail("no picture");
  let found = false;
  for (let x = 5; x < box.width && !found; x += 20) {
    await picture.click({ position: { x, y: 20 } });
    found = (await details(page).getByText("Makes").count()) > 0;
  }
  assert.ok(found, "a click on a block selects its node");
  await page.getByText("As a table").first().click();
  assert.equal(
    await page
      .getByRole("table", { name: "What lies in the arena of cpu" })
      .getByRole("row")
      .count(),
    33,
  );
});

graphTest("a run is played, and moved through", async ({ page }) => {
  await openSample(page);
  const slider = page.getByLabel("Time in the run");
  await slider.fill("0");
  await pictureHas(page, "nothing has run", (picture) => !picture[soft]);
  await slider.fill("500");
  await pictureHas(page, "half has run", (picture) => (picture[soft] ?? 0) > 500);
  assert.match((await slider.getAttribute("aria-valuetext")) ?? "", /ms of 14\.5 ms/);
  await slider.fill("1000");
  await page.getByRole("button", { name: "Play the run" }).click();
  await page.waitForFunction(
    () => Number((document.querySelector("input[type=range]") as HTMLInputElement).value) < 900,
  );
  await page.getByRole("button", { name: "Pause" }).click();
  const stopped = await slider.inputValue();
  await page.waitForTimeout(150);
  assert.equal(await slider.inputValue(), stopped);
});

graphTest("another run of the file can be chosen", async ({ page }) => {
  await openSample(page);
  await runs(page).selectOption("1");
  await details(page).getByRole("heading", { name: "Plan 1" }).waitFor();
});

const notice = (page: Page) => page.locator("#graph-view [role=alert]");

graphTest(
  "files that are no traces are refused with the reason, and the page goes on",
  async ({ page }) => {
    await openFile(page, "PK", "a.zip");
    await notice(page).filter({ hasText: "a.zip: This file is not JSON" }).waitFor();
    await openFile(page, '{"traceEvents":[]}', "other.json");
    await notice(page).filter({ hasText: "trace of another program" }).waitFor();
    await openFile(page, '{"heddle":{"version":1,"plans":[],"runs":[]}}', "empty.json");
    await notice(page).filter({ hasText: "empty.json has no runs" }).waitFor();
    await openFile(
      page,
      '{"heddle":{"version":1,"plans":[],"runs":[{"run":1,"plan":4}]}}',
      "odd.json",
    );
    await notice(page)
      .filter({ hasText: "runs[0].plan is 4, and there is no such plan" })
      .waitFor();
    await openSample(page);
    assert.ok(!(await notice(page).isVisible()));
  },
);

graphTest("a file can be dropped on the page", async ({ page }) => {
  const text = await readFile(sampleFile, "utf8");
  await page.evaluate((content) => {
    const data = new DataTransfer();
    data.items.add(new File([content], "dropped.json", { type: "application/json" }));
    const view = document.getElementById("graph-view") as HTMLElement;
    view.dispatchEvent(
      new DragEvent("dragover", { dataTransfer: data, cancelable: true, bubbles: true }),
    );
    view.dispatchEvent(
      new DragEvent("drop", { dataTransfer: data, cancelable: true, bubbles: true }),
    );
  }, text);
  await details(page).getByRole("heading", { name: "Plan 2" }).waitFor();
});

interface Sample {
  heddle: {
    plans: Record<string, unknown>[];
    runs: {
      run: number;
      plan: number;
      begin: number;
      end: number;
      records: Record<string, unknown>[];
    }[];
  };
}

graphTest("what the server runs is watched as it runs", async ({ page, server }) => {
  const { heddle } = JSON.parse(await readFile(sampleFile, "utf8")) as Sample;
  const [run] = heddle.runs;
  if (!run) assert.fail("no run");
  await page.getByRole("button", { name: "Watch" }).click();
  await heard(page, /Watching the server/);
  for (const plan of heddle.plans) server.say(JSON.stringify({ type: "plan", ...plan }));
  server.say(JSON.stringify({ type: "run", run: 1, plan: run.plan, begin: run.begin }));
  for (const record of run.records.slice(0, 30))
    server.say(JSON.stringify({ type: "record", run: 1, ...record }));
  await details(page).getByRole("heading", { name: "Plan 1" }).waitFor();
  let half: Record<string, number> = {};
  await eventually("what ran just now glows", async () => {
    server.say(JSON.stringify({ type: "record", run: 1, ...run.records[20] }));
    half = await pixels(page);
    return Object.keys(half).length > 20;
  });
  await page.waitForFunction(() => document.querySelectorAll("#run-choice option").length === 1);
  for (const record of run.records.slice(30))
    server.say(JSON.stringify({ type: "record", run: 1, ...record }));
  server.say(JSON.stringify({ type: "end", run: 1, end: run.end, error: null }));
  await details(page).getByText("Took").waitFor();
  await pictureHas(
    page,
    "what has run stays marked",
    (picture) => (picture[soft] ?? 0) > (half[soft] ?? 0) + 1000,
  );
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await heard(page, /No longer watching/);
  await eventually("the stream is closed", async () => server.liveLines.size === 0);
  await canvas(page).focus();
  await page.keyboard.press("End");
  await heard(page, /^linear, token_embd\.weight/);
});

graphTest(
  "for those who asked for less motion nothing fades",
  async ({ page, server }) => {
    const { heddle } = JSON.parse(await readFile(sampleFile, "utf8")) as Sample;
    const [run] = heddle.runs;
    if (!run) assert.fail("no run");
    await page.getByRole("button", { name: "Watch" }).click();
    for (const plan of heddle.plans) server.say(JSON.stringify({ type: "plan", ...plan }));
    server.say(JSON.stringify({ type: "run", run: 1, plan: run.plan, begin: run.begin }));
    for (const record of run.records)
      server.say(JSON.stringify({ type: "record", run: 1, ...record }));
    server.say(JSON.stringify({ type: "end", run: 1, end: run.end, error: null }));
    await page.locator("#run-choice option", { hasText: "10.8 ms" }).waitFor({ state: "attached" });
    const before = await pixels(page);
    assert.ok((before[soft] ?? 0) > 1000);
    await page.waitForTimeout(600);
    assert.deepEqual(await pixels(page), before);
  },
  { reducedMotion: "reduce" },
);

graphTest("a stream of runs that never ends does not fill the page", async ({ page, server }) => {
  const { heddle } = JSON.parse(await readFile(sampleFile, "utf8")) as Sample;
  await page.getByRole("button", { name: "Watch" }).click();
  for (const plan of heddle.plans) server.say(JSON.stringify({ type: "plan", ...plan }));
  for (let run = 0; run < 100; ++run) {
    server.say(JSON.stringify({ type: "run", run, plan: 1, begin: run * 100 }));
    for (const record of heddle.runs[0]?.records.slice(0, 10) ?? [])
      server.say(JSON.stringify({ type: "record", run, ...record }));
    server.say(
      JSON.stringify({
        type: "end",
        run,
        end: run * 100 + 90,
        error: run === 99 ? "the device was lost" : null,
      }),
    );
  }
  await page.waitForFunction(() =>
    document.querySelector("#run-choice option:checked")?.textContent?.startsWith("Run 99"),
  );
  assert.ok((await runs(page).locator("option").count()) <= 32);
  await details(page).getByText("the device was lost").waitFor();
});

graphTest("plans that take turns do not make the picture flicker", async ({ page, server }) => {
  const { heddle } = JSON.parse(await readFile(sampleFile, "utf8")) as Sample;
  const other = {
    ...heddle.plans[0],
    plan: 9,
    nodes: (heddle.plans[0]?.["nodes"] as Record<string, unknown>[]).map((node, at) => ({
      ...node,
      name: `other ${at}`,
    })),
  };
  await page.getByRole("button", { name: "Watch" }).click();
  await page.getByText("Nothing has run yet").waitFor();
  for (const plan of [...heddle.plans, other])
    server.say(JSON.stringify({ type: "plan", ...plan }));
  const changes = await page.evaluateHandle(() => {
    const labels: (string | null)[] = [];
    const picture = document.querySelector(".graph-picture") as HTMLElement;
    new MutationObserver(() => labels.push(picture.getAttribute("aria-label"))).observe(picture, {
      attributes: true,
      attributeFilter: ["aria-label"],
    });
    return labels;
  });
  for (let run = 0; run < 30; ++run) {
    server.say(JSON.stringify({ type: "run", run, plan: [1, 2, 9][run % 3], begin: run * 100 }));
    server.say(
      JSON.stringify({
        type: "record",
        run,
        node: 18,
        begin: run * 100,
        encode: 1,
        wait: 1,
        bytes: 1,
        operations: 1,
        values: [],
      }),
    );
    server.say(JSON.stringify({ type: "end", run, end: run * 100 + 90, error: null }));
    await page.waitForTimeout(20);
  }
  // Of thirty runs; more than one only if this machine stood still meanwhile.
  assert.ok((await changes.jsonValue()).length <= 3);
});

graphTest("a server that cannot be watched says why", async ({ page, server }) => {
  server.apiKey = "secret";
  await page.getByRole("button", { name: "Watch" }).click();
  await notice(page)
    .filter({ hasText: "the API key is missing or wrong. Enter the API key in the settings." })
    .waitFor();
  server.apiKey = "";
  await page.getByRole("button", { name: "Watch" }).click();
  await eventually("the server is watched", async () => server.liveLines.size === 1);
  server.say("garbage");
  await notice(page).filter({ hasText: "not JSON" }).waitFor();
});

graphTest("a plan of thousands of nodes stays responsive", async ({ page }) => {
  await openFile(page, JSON.stringify(largeTrace(60)));
  await details(page).getByRole("heading", { name: "Plan 1" }).waitFor();
  assert.match((await canvas(page).getAttribute("aria-label")) ?? "", /62 boxes/);
  await page.getByRole("button", { name: "Unfold" }).click();
  await canvas(page).focus();
  for (let step = 0; step < 20; ++step) await page.keyboard.press("-"); // all of it in sight
  const median = await page.evaluate(async () => {
    const element = document.querySelector(".graph-picture") as HTMLElement;
    const times: number[] = [];
    for (let step = 0; step < 30; ++step) {
      const began = performance.now();
      element.dispatchEvent(
        new WheelEvent("wheel", { deltaY: step % 2 ? 20 : -20, cancelable: true }),
      );
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      times.push(performance.now() - began);
    }
    return times.sort((a, b) => a - b)[15] ?? 0;
  });
  assert.ok(median < 500, `a frame took ${median} ms`);
  await page.getByRole("tab", { name: "Table" }).click();
  await page.getByText("1 to 100 of 2162").waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("101 to 200 of 2162", { exact: true }).first().waitFor();
  await page.getByRole("tab", { name: "Memory" }).click();
  await page.getByRole("heading", { name: "Arena of cpu" }).waitFor();
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [360, 1280]) {
    graphTest(
      `axe finds nothing: ${colorScheme}, ${width} pixels`,
      async ({ page }) => {
        assert.deepEqual(await violations(page), []);
        await openSample(page);
        await canvas(page).focus();
        await page.keyboard.press("End");
        await details(page).getByText("Makes").waitFor();
        for (const tab of ["Graph", "Table", "Memory"]) {
          await page.getByRole("tab", { name: tab }).click();
          assert.deepEqual(await violations(page), [], tab);
        }
        assert.ok(
          (await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0,
        );
      },
      { colorScheme, viewport: { width, height: 740 } },
    );
  }
}

graphTest("the picture takes on the colours of another scheme", async ({ page }) => {
  await openSample(page);
  await pictureHas(page, "light", (picture) => (picture[soft] ?? 0) > 1000);
  await page.emulateMedia({ colorScheme: "dark" });
  await pictureHas(
    page,
    "dark, and nothing light is left",
    (picture) => (picture["18,23,28"] ?? 0) > 1000 && !picture[soft] && !picture[accent],
  );
});
