#include "io/gguf_format.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::gguf {

std::string_view to_string(ValueType type) noexcept {
  constexpr std::string_view kNames[kValueTypeCount] = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                        "i32", "f32", "bool", "string", "array",
                                                        "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

std::optional<std::string> key_problem(std::string_view key) {
  if (key.empty()) return "key is empty";
  if (key.size() > kMaxKeyBytes) {
    return fmt::format("key has {} bytes, at most {} are allowed", key.size(), kMaxKeyBytes);
  }
  const bool printable_ascii =
      std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!printable_ascii) return "key holds characters other than printable ASCII";
  return std::nullopt;
}

std::optional<std::string> tensor_name_problem(std::string_view name) {
  if (name.empty()) return "name is empty";
  if (name.size() > kMaxTensorNameBytes) {
    return fmt::format("name has {} bytes, at most {} are allowed", name.size(),
                       kMaxTensorNameBytes);
  }
  return std::nullopt;
}

std::optional<std::string> alignment_problem(std::uint32_t alignment) {
  if (alignment != 0 && alignment % 8 == 0) return std::nullopt;
  return fmt::format("alignment {} is not a positive multiple of 8", alignment);
}

std::uint32_t alignment_of(const Metadata& metadata, std::optional<std::string>& problem) {
  const Value* value = metadata.find(kAlignmentKey);
  if (value == nullptr) return kDefaultAlignment;
  const auto* alignment = std::get_if<std::uint32_t>(value);
  if (alignment == nullptr) {
    problem = fmt::format("type is {}, must be u32", to_string(type_of(*value)));
    return kDefaultAlignment;
  }
  problem = alignment_problem(*alignment);
  return *alignment;
}

std::string quote_name(std::string_view name) {
  constexpr std::size_t kShown = 80;
  std::string text = "'";
  for (const char c : name.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  text += name.size() > kShown ? "...'" : "'";
  return text;
}

}  // namespace heddle::gguf
