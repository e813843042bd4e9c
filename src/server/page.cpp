// The page, from the program's own read-only data.
#include <algorithm>
#include <functional>

#include "server/app.h"
#include "server/web_files.h"

namespace heddle::server {

namespace {

/// Nothing from elsewhere, no inline scripts, and no other site around it.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

const WebFile* find_file(std::string_view path) {
  if (path == "/") path = "/index.html";
  for (const WebFile& file : web_files()) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

std::string tag_of(const WebFile& file) {
  return fmt::format("\"{:016x}\"", std::hash<std::string_view>{}(file.bytes));
}

}  // namespace

bool is_page_file(const std::string& path) {
  return path == "/" || find_file(path) != nullptr;
}

void page(App&, Call call) {
  const WebFile* file = find_file(call.request.path);
  if (!file) {
    call.reply->send({.content_type = "text/plain; charset=utf-8",
                      .body = std::string(why_no_web_files()) + "\n"});
    return;
  }
  const std::string tag = tag_of(*file);
  HttpResponse response{
      .content_type = std::string(file->content_type),
      .headers = {
          {"ETag", tag},
          {"Cache-Control", file->immutable ? "public, max-age=31536000, immutable" : "no-cache"},
          {"Content-Security-Policy", kPolicy},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"}}};
  const std::string_view known = call.request.header("If-None-Match");
  if (known == "*" || known.find(tag) != std::string_view::npos)
    response.status = 304;
  else
    response.body = file->bytes;
  call.reply->send(std::move(response));
}

}  // namespace heddle::server
