// The page as C++ source: the table that src/server/web_files.h declares, over the files of a folder.
import { extname, resolve } from "node:path";

const contentTypes = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const begin = (index) => `heddle_web_file_${index}_begin`;
const end = (index) => `heddle_web_file_${index}_end`;

function contentType(name) {
  const type = contentTypes[extname(name)];
  if (!type) throw new Error(`${name}: no content type is known for such a file`);
  return type;
}

function label(name) {
  return `    .global ${name}\n${name}:\n`;
}

function section(folder, name, index) {
  return `${label(begin(index))}    .incbin "${resolve(folder, name)}"\n${label(end(index))}`;
}

function row(name, index) {
  const immutable = name !== "index.html"; // the others have a hash in their names
  return `    WebFile{"/${name}", "${contentType(name)}", bytes(${begin(index)}, ${end(index)}), ${immutable}},`;
}

/** `names`: of the files in `folder`. */
export function cppSource(folder, names) {
  return `// Made by web/build.mjs.
#include "server/web_files.h"

#include <array>

asm(R"(
    .section .rodata
${names.map((name, index) => section(folder, name, index)).join("")}    .byte 0
    .previous
)");

extern "C" {
${names.map((_, index) => `extern const char ${begin(index)}[], ${end(index)}[];`).join("\n")}
}

namespace heddle {
namespace {

std::string_view bytes(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::span<const WebFile> web_files() {
  static const std::array files{
${names.map(row).join("\n")}
  };
  return files;
}

std::string_view why_no_web_files() { return {}; }

}  // namespace heddle
`;
}
