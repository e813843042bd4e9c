#pragma once

#include <span>
#include <string_view>

namespace heddle {

/// A file of the page that web/ makes, as embedded in the program.
struct WebFile {
  std::string_view
      path;  // as a browser asks for it: "/index.html" (which is also "/"), "/page-HASH.js"
  std::string_view content_type;
  std::string_view bytes;
  bool immutable;  // its name changes whenever its bytes do, so that it may be cached for ever
};

/// Every file of the page; empty if the program was built without it.
std::span<const WebFile> web_files();

/// Why there are none, as a sentence for whoever asks for the page; empty if there are some.
std::string_view why_no_web_files();

}  // namespace heddle
