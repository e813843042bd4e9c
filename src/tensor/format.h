// Specs and shapes as arguments of fmt: `require(ok, code, "{} is no matrix", spec)` makes text
// only if it fails, while `to_string(spec)` there would make it every time.
#pragma once

#include <fmt/format.h>

#include "heddle/tensor.h"

namespace heddle {

template <class T>
struct ToStringFormatter : fmt::formatter<std::string_view> {
  auto format(const T& value, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(to_string(value), context);
  }
};

}  // namespace heddle

template <>
struct fmt::formatter<heddle::DType> : heddle::ToStringFormatter<heddle::DType> {};
template <>
struct fmt::formatter<heddle::Dims> : heddle::ToStringFormatter<heddle::Dims> {};
template <>
struct fmt::formatter<heddle::TensorSpec> : heddle::ToStringFormatter<heddle::TensorSpec> {};
template <>
struct fmt::formatter<heddle::OperandSpec> : heddle::ToStringFormatter<heddle::OperandSpec> {};
