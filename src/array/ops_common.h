// What the functions on arrays share.
#pragma once

#include <string_view>
#include <utility>

#include "array/call_site.h"
#include "array/make.h"
#include "base/check.h"
#include "heddle/ops.h"
#include "tensor/format.h"

namespace heddle {

/// The message of an error, beginning with the name of the function that the caller called.
inline std::string named(std::string_view function, std::string_view message) {
  const bool is = message.starts_with(function) && message.substr(function.size()).starts_with(":");
  return is ? std::string(message) : fmt::format("{}: {}", function, message);
}

/// The result of `body`; errors from inside get the name of the function that the caller called.
template <class Body>
auto within(std::string_view function, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.code(), named(function, error.what()));
  }
}

/// The same for a public function: nodes made inside, and errors, belong to the line of its call.
template <class Body>
auto within(std::string_view function, const std::source_location& where, Body&& body) {
  const CallSite site(where);
  try {
    return body();
  } catch (const Error& error) {
    std::string message = named(function, error.what());
    if (site.outermost()) message += " " + to_string(where);
    throw Error(error.code(), message);
  }
}
template <class Body>
auto within(std::string_view function, const Arg& argument, Body&& body) {
  return within(function, argument.where(), std::forward<Body>(body));
}

/// f32 for what has no fractions, else the type itself.
inline DType at_least_float(DType dtype) noexcept {
  return is_integer(dtype) || dtype == DType::bool_ ? DType::f32 : dtype;
}

/// Axes counted from the front, sorted. Throws invalid_argument if one is out of range or named
/// twice.
Dims sorted_axes(const Dims& axes, std::size_t rank, const char* function);

}  // namespace heddle
