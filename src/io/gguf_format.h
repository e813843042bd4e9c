// What the GGUF reader and writer must agree on.
// Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "heddle/gguf.h"

namespace heddle::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF is read and written in place");

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::uint32_t kVersion = 3;
inline constexpr std::uint32_t kOldestVersion = 2;
inline constexpr std::uint32_t kDefaultAlignment = 32;
inline constexpr std::size_t kMaxKeyBytes = 65535;
inline constexpr std::size_t kMaxTensorNameBytes = 64;
inline constexpr std::size_t kMaxTensorDims = 4;
inline constexpr std::string_view kAlignmentKey = "general.alignment";

/// A metadata value's type as stored; also its position in `Value`.
enum class ValueType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
inline constexpr std::uint32_t kValueTypeCount = 13;
static_assert(std::variant_size_v<Value> == kValueTypeCount);
static_assert(std::variant_size_v<Array> == kValueTypeCount - 1);

inline ValueType type_of(const Value& value) noexcept {
  return static_cast<ValueType>(value.index());
}

/// `Array` holds the types of `Value` in the same order, without arrays.
inline ValueType element_type(const Array& array) noexcept {
  const bool before_array = array.index() < static_cast<std::size_t>(ValueType::array);
  return static_cast<ValueType>(array.index() + (before_array ? 0 : 1));
}

std::string_view to_string(ValueType type) noexcept;

/// What is wrong with a metadata key, a tensor's name or an alignment ("is empty"); nothing if it
/// follows the format.
std::optional<std::string> key_problem(std::string_view key);
std::optional<std::string> tensor_name_problem(std::string_view name);
std::optional<std::string> alignment_problem(std::uint32_t alignment);

/// `general.alignment`, or the default. What is wrong with it comes back through `problem`.
std::uint32_t alignment_of(const Metadata& metadata, std::optional<std::string>& problem);

/// The next multiple of `alignment` (not zero). `offset` is a position in memory or in a file, and
/// `alignment` has 32 bits: the sum cannot overflow.
inline std::uint64_t align_up(std::uint64_t offset, std::uint32_t alignment) noexcept {
  return (offset + alignment - 1) / alignment * alignment;
}

/// A name from a file as an error may show it: in quotes, short, and in printable ASCII, so
/// that no terminal obeys what it holds.
std::string quote_name(std::string_view name);

}  // namespace heddle::gguf
