#include "llm/stop_texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "heddle/error.h"

namespace heddle::llm {
namespace {

TEST(StopTexts, WithoutAnyEverythingPasses) {
  StopTexts stops({});
  EXPECT_EQ(stops.add("one "), "one ");
  EXPECT_EQ(stops.add(""), "");
  EXPECT_EQ(stops.add("two"), "two");
  EXPECT_EQ(stops.finish(), "");
  EXPECT_FALSE(stops.found());
}

TEST(StopTexts, HoldsBackOnlyWhatMayYetStop) {
  StopTexts stops({"END"});
  EXPECT_EQ(stops.add("the E"), "the ");
  EXPECT_EQ(stops.add("N"), "");
  EXPECT_EQ(stops.add("EN"), "EN");
  EXPECT_EQ(stops.add("E"), "EN");
  EXPECT_EQ(stops.finish(), "E");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopTexts, EndsBeforeTheStopTextAndStaysThere) {
  StopTexts stops({"END"});
  EXPECT_EQ(stops.add("so E"), "so ");
  EXPECT_EQ(stops.add("ND of it"), "");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.add("more"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopTexts, TheFirstOfSeveralCounts) {
  StopTexts stops({"later", "now"});
  EXPECT_EQ(stops.add("here, now or later"), "here, ");
  EXPECT_TRUE(stops.found());
}

TEST(StopTexts, AnEmptyOneIsRefused) {
  EXPECT_THROW(StopTexts({"a", ""}), Error);
}

/// Where the first stop text to become complete begins; of those that do so at once, the first.
std::size_t expected_end(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t begin = std::string::npos;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop))
        begin = std::min(begin, end - stop.size());
    }
    if (begin != std::string::npos) return begin;
  }
  return text.size();
}

TEST(StopTexts, FoundLetterByLetterInRandomTexts) {
  std::mt19937_64 random(1);
  const auto word = [&](std::size_t length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::string text = word(random() % 30);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) texts.push_back(word(1 + random() % 6));
    StopTexts stops(texts);
    std::string given;
    for (const char c : text) given += stops.add(std::string(1, c));
    given += stops.finish();
    const std::size_t end = expected_end(text, texts);
    ASSERT_EQ(given, text.substr(0, end)) << text << " with " << texts.front();
    ASSERT_EQ(stops.found(), end < text.size()) << text;
  }
}

TEST(StopTexts, PiecesOfAnyLengthNeverLetAStopTextThrough) {
  std::mt19937_64 random(2);
  const std::string text = "to be or not to be, that is the question";
  for (int round = 0; round < 500; ++round) {
    StopTexts stops({"not to", "question"});
    std::string given;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = 1 + random() % 7;
      given += stops.add(std::string_view(text).substr(at, length));
      at += length;
    }
    given += stops.finish();
    ASSERT_EQ(given, "to be or ");
  }
}

}  // namespace
}  // namespace heddle::llm
