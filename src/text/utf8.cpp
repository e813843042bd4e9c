#include "text/utf8.h"

namespace heddle::text {
namespace {

/// What may follow a lead byte: how many bytes in all, and the range of the second one. Length 0:
/// no character begins with this byte.
struct Lead {
  std::uint32_t length;
  std::uint8_t second_min, second_max;
};

Lead lead_of(std::uint8_t byte) noexcept {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Unit utf8_unit(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.length == 1) return {Utf8Status::valid, 1, byte(0)};
  if (lead.length == 0) return {Utf8Status::invalid, 1, 0};
  char32_t code_point = byte(0) & (0xFFu >> (lead.length + 1));
  for (std::uint32_t i = 1; i < lead.length; ++i) {
    if (at + i == text.size()) return {Utf8Status::incomplete, i, 0};
    const std::uint8_t low = i == 1 ? lead.second_min : 0x80;
    const std::uint8_t high = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8Status::invalid, i, 0};
    code_point = (code_point << 6) | (byte(i) & 0x3Fu);
  }
  return {Utf8Status::valid, lead.length, code_point};
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
  const auto continuation = [&](int shift) { put(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    continuation(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    continuation(6);
    continuation(0);
  } else {
    put(0xF0 | (code_point >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

}  // namespace heddle::text
