// Makes the page: `node build.mjs [--out DIR] [--cpp FILE]`. DIR (web/dist unless given) gets
// index.html and files whose names contain a hash of what is in them; FILE, the same as C++ source.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { cppSource } from "./embed.mjs";

const here = dirname(fileURLToPath(import.meta.url));

function hashed(path, bytes) {
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 10);
  const extension = extname(path);
  return `${path.slice(0, path.length - extension.length)}-${hash}${extension}`;
}

/** The script and the style, each one file, by the name that index.html has for it. */
async function bundle() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: { page: "src/main.ts", style: "src/styles/style.css" },
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2022", "chrome123", "firefox121", "safari17.5"],
    outdir: "out",
    write: false,
    legalComments: "inline",
    logLevel: "warning",
  });
  return result.outputFiles.map((file) => ({
    name: file.path.endsWith(".css") ? "style.css" : "page.js",
    bytes: Buffer.from(file.contents),
  }));
}

async function makeFiles() {
  let html = await readFile(join(here, "index.html"), "utf8");
  const files = [];
  const icon = { name: "icon.svg", bytes: await readFile(join(here, "icon.svg")) };
  for (const { name, bytes } of [...(await bundle()), icon]) {
    const path = hashed(name, bytes);
    if (!html.includes(`"${name}"`)) throw new Error(`index.html does not mention "${name}"`);
    html = html.replaceAll(`"${name}"`, `"${path}"`);
    files.push({ path, bytes });
  }
  return [{ path: "index.html", bytes: Buffer.from(html) }, ...files];
}

const { values: options } = parseArgs({
  options: { out: { type: "string", default: join(here, "dist") }, cpp: { type: "string" } },
});
const files = await makeFiles();
await rm(options.out, { recursive: true, force: true });
await mkdir(options.out, { recursive: true });
for (const { path, bytes } of files) await writeFile(join(options.out, path), bytes);
if (options.cpp) {
  await writeFile(
    options.cpp,
    cppSource(
      options.out,
      files.map((file) => file.path),
    ),
  );
}
