// Runs clients.test.mjs against a program: `node run.mjs PATH`. Exits with 77, and a line that says
// why, where npm's packages cannot be had.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const stamp = join(here, "node_modules", ".heddle-stamp");

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(77);
}

/** node_modules holds what package-lock.json names. */
function installPackages() {
  const wanted = createHash("sha256").update(readFileSync(join(here, "package-lock.json"))).digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
  const limits = ["--fetch-retries", "1", "--fetch-timeout", "15000"];
  const npm = spawnSync("npm", ["ci", ...options, ...limits], { cwd: here, encoding: "utf8", timeout: 300_000 });
  if (npm.error) skip(`npm cannot be run: ${npm.error.message}`);
  if (npm.status !== 0) skip(`npm ci failed: ${npm.stderr.trim().split("\n")[0]}`);
  writeFileSync(stamp, wanted);
}

installPackages();
const tests = spawnSync(process.execPath, ["--test", "--test-reporter=spec", join(here, "clients.test.mjs")], {
  env: { ...process.env, SERVE_PROGRAM: process.argv[2] },
  stdio: "inherit",
  timeout: 500_000,
});
process.exit(tests.status ?? 1);
