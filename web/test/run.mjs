// Runs tests: `node test/run.mjs unit|browser|program|screenshots`; program, with the path of heddle,
// has the page served by it. They are bundled first, so that any node from 18 on runs them. Exits
// with 77 where something that they need is missing. HEDDLE_TEST_FILES chooses by a part of the name.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const skipped = 77; // ctest's SKIP_RETURN_CODE
const web = dirname(dirname(fileURLToPath(import.meta.url)));
const kind = process.argv[2] ?? "";
// Browsers have it; node before 20 hides it.
const globalCrypto =
  'import { webcrypto as nodeCrypto } from "node:crypto"; globalThis.crypto ??= nodeCrypto;';
const kinds = ["unit", "browser", "program", "screenshots"];

function chromium() {
  const found = [
    process.env.HEDDLE_CHROMIUM,
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
  ];
  return found.find((path) => path && existsSync(path));
}

async function bundled(folder, out) {
  const from = join(web, "test", folder);
  const only = process.env.HEDDLE_TEST_FILES ? new RegExp(process.env.HEDDLE_TEST_FILES) : /./;
  const names = (await readdir(from)).filter(
    (name) => only.test(name) && /\.(test|shots)\.ts$/.test(name),
  );
  await build({
    absWorkingDir: web,
    entryPoints: names.map((name) => join(from, name)),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    packages: "external",
    sourcemap: "inline",
    banner: { js: globalCrypto },
    outdir: out,
    outExtension: { ".js": ".mjs" },
    logLevel: "warning",
  });
  return names.map((name) => join(out, name.replace(/\.ts$/, ".mjs"))).sort();
}

async function main() {
  if (!kinds.includes(kind)) throw new Error(`say which tests: ${kinds.join(", ")}`);
  const environment = {
    ...process.env,
    HEDDLE_WEB_DIR: web,
    HEDDLE_PROGRAM: process.argv[3] ?? "",
  };
  if (kind !== "unit") {
    const browser = chromium();
    if (!browser) {
      console.log(
        "skipped: Chromium is not installed (Debian's package is chromium; HEDDLE_CHROMIUM may name another)",
      );
      return skipped;
    }
    environment.HEDDLE_CHROMIUM = browser;
  }
  // Inside web/, so that the tests find its packages.
  const out = await mkdtemp(join(web, "node_modules", ".heddle-tests-"));
  try {
    if (kind === "browser" || kind === "screenshots") {
      environment.HEDDLE_WEB_DIST = join(out, "dist");
      const made = spawnSync(
        process.execPath,
        [join(web, "build.mjs"), "--out", environment.HEDDLE_WEB_DIST],
        { stdio: "inherit" },
      );
      if (made.status !== 0) return 1;
    }
    const files = await bundled(kind, out);
    const flags = kind === "screenshots" ? [] : ["--test"];
    const run = spawnSync(process.execPath, ["--enable-source-maps", ...flags, ...files], {
      stdio: "inherit",
      env: environment,
    });
    return run.status ?? 1;
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}

process.exit(await main());
