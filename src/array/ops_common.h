// What the functions on arrays share.
#pragma once

#include <string_view>
#include <utility>

#include "base/check.h"
#include "heddle/ops.h"
#include "tensor/format.h"

namespace heddle {

/// The result of `body`; errors from inside get the name of the function that the caller called.
template <class Body>
auto within(std::string_view function, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (message.starts_with(function) && message.substr(function.size()).starts_with(":")) throw;
    fail(error.code(), "{}: {}", function, message);
  }
}

/// f32 for what has no fractions, else the type itself.
inline DType at_least_float(DType dtype) noexcept {
  return is_integer(dtype) || dtype == DType::bool_ ? DType::f32 : dtype;
}

/// Axes counted from the front, sorted. Throws invalid_argument if one is out of range or named
/// twice.
Dims sorted_axes(const Dims& axes, std::size_t rank, const char* function);

}  // namespace heddle
