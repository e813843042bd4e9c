// Throwing with a formatted message: `fail(ErrorCode::io, "{}: no such tensor", name)`.
#pragma once

#include <fmt/format.h>

#include "heddle/error.h"

namespace heddle {

template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws `code` unless `condition` holds.
template <class... Args>
void require(bool condition, ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    fail(code, format, std::forward<Args>(args)...);
}

}  // namespace heddle
