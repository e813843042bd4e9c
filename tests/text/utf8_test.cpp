#include "text/utf8.h"

#include <gtest/gtest.h>

namespace heddle::text {
namespace {

TEST(Utf8, EncodesAndDecodesEveryCharacter) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text = "x";
    append_utf8(text, c);
    const Utf8Unit unit = utf8_unit(text, 1);
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(unit.status == Utf8Status::valid, !surrogate) << std::hex << static_cast<unsigned>(c);
    if (surrogate) continue;
    ASSERT_EQ(unit.code_point, c);
    ASSERT_EQ(unit.length + 1, text.size());
  }
}

TEST(Utf8, KnownEncodings) {
  const auto encoded = [](char32_t c) {
    std::string text;
    append_utf8(text, c);
    return text;
  };
  EXPECT_EQ(encoded('$'), "$");
  EXPECT_EQ(encoded(0xA3), "\xC2\xA3");
  EXPECT_EQ(encoded(0x20AC), "\xE2\x82\xAC");
  EXPECT_EQ(encoded(0x10348), "\xF0\x90\x8D\x88");
}

TEST(Utf8, EveryCutCharacterIsIncomplete) {
  for (const std::string whole : {"\xC2\xA3", "\xE2\x82\xAC", "\xF0\x90\x8D\x88"}) {
    for (std::size_t n = 1; n < whole.size(); ++n) {
      const Utf8Unit unit = utf8_unit(whole.substr(0, n), 0);
      EXPECT_EQ(unit.status, Utf8Status::incomplete);
      EXPECT_EQ(unit.length, n);
      EXPECT_EQ(utf8_unit(whole.substr(0, n) + "A", 0).status, Utf8Status::invalid);
      EXPECT_EQ(utf8_unit(whole.substr(0, n) + "A", 0).length, n);
    }
  }
}

}  // namespace
}  // namespace heddle::text
