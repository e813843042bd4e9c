#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "heddle/error.h"

namespace heddle::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kNames[] = {"default",   "llama-bpe",    "qwen2",          "gpt-2",
                                  "starcoder", "deepseek-llm", "deepseek-coder", "command-r",
                                  "refact",    "falcon"};

std::vector<std::string> split(const char* name, std::string_view text) {
  std::vector<std::string> pieces;
  for (const std::string_view piece : Pretokenizer(pretokenizer_rules(name)).split(text)) {
    pieces.emplace_back(piece);
  }
  return pieces;
}

// The first two: Hugging Face's documentation of its ByteLevel pre-tokenizer, and its course.
TEST(Pretokenizer, Gpt2) {
  EXPECT_THAT(split("gpt-2", "Let's do tokenization!"),
              ElementsAre("Let", "'s", " do", " tokenization", "!"));
  EXPECT_THAT(split("gpt-2", "Hello, how are  you?"),
              ElementsAre("Hello", ",", " how", " are", " ", " you", "?"));
  EXPECT_THAT(split("gpt-2", "I'LL 12a\n\nb"),
              ElementsAre("I", "'", "LL", " 12", "a", "\n", "\n", "b"));
  EXPECT_THAT(split("gpt-2", "x\ny   "), ElementsAre("x", "\n", "y", "   "));
  EXPECT_THAT(split("gpt-2", ""), ElementsAre());
}

TEST(Pretokenizer, Llama3TakesThreeDigitsAndKeepsNewlinesWithPunctuation) {
  EXPECT_THAT(split("llama-bpe", "I'LL pay 12345 \xE2\x82\xAC\n\n  now"),
              ElementsAre("I", "'LL", " pay", " ", "123", "45", " \xE2\x82\xAC\n\n", " ", " now"));
  EXPECT_THAT(split("llama-bpe", "a \n \n b"), ElementsAre("a", " \n \n", " b"));
  EXPECT_THAT(split("llama-bpe", "(foo)_bar"), ElementsAre("(foo", ")_", "bar"));
  EXPECT_EQ(&pretokenizer_rules("llama3"), &pretokenizer_rules("llama-bpe"));
  EXPECT_EQ(&pretokenizer_rules("llama-v3"), &pretokenizer_rules("llama-bpe"));
}

TEST(Pretokenizer, Qwen2TakesDigitsOneByOne) {
  EXPECT_THAT(split("qwen2", "we've 12 \xC2\xBD"),
              ElementsAre("we", "'ve", " ", "1", "2", " ", "\xC2\xBD"));
  EXPECT_THAT(split("qwen2", "\t\tx"), ElementsAre("\t", "\tx"));
}

TEST(Pretokenizer, StarcoderAndItsKin) {
  for (const char* name : {"starcoder", "refact", "command-r"}) {
    EXPECT_THAT(split(name, "in 2024's"), ElementsAre("in", " ", "2", "0", "2", "4", "'s")) << name;
  }
}

TEST(Pretokenizer, FalconAndDefaultCutDigitsInThrees) {
  EXPECT_THAT(split("falcon", "Hello, 12345!"), ElementsAre("Hello", ",", " ", "123", "45", "!"));
  EXPECT_THAT(split("falcon", "a`b"), ElementsAre("a", "`", "b"));
  EXPECT_THAT(split("default", "a+b 1234"), ElementsAre("a", "+", "b", " ", "123", "4"));
  // A grave accent is a symbol, which default's first pattern leaves to the second.
  EXPECT_THAT(split("default", " `"), ElementsAre(" `"));
  EXPECT_THAT(split("falcon", " `"), ElementsAre(" ", "`"));
}

TEST(Pretokenizer, DeepseekLlm) {
  EXPECT_THAT(split("deepseek-llm", "Hello  world 123\n"),
              ElementsAre("Hello", " ", " world", " ", "123", "\n"));
  // Cased letters and the rest of the alphabet fall apart; Han characters stand alone.
  EXPECT_THAT(split("deepseek-llm", "\xD0\x9F\xD1\x80\xE6\x88\x91\xE6\x83\xB3x"),
              ElementsAre("\xD0\x9F\xD1\x80", "\xE6\x88\x91\xE6\x83\xB3", "x"));
  EXPECT_THAT(split("deepseek-llm", "end.   "), ElementsAre("end", ".", "   "));
  EXPECT_THAT(split("deepseek-llm", "a   b"), ElementsAre("a", "  ", " b"));
}

TEST(Pretokenizer, DeepseekCoder) {
  EXPECT_THAT(split("deepseek-coder", "x = 12;"), ElementsAre("x", " = ", "1", "2", ";"));
  EXPECT_THAT(split("deepseek-coder", "a\n\n b"), ElementsAre("a", "\n", "\n", " b"));
}

TEST(Pretokenizer, WhiteSpaceIsUnicodes) {
  // U+0085, U+2003 and U+3000 are white space; U+180E no longer is.
  EXPECT_THAT(split("gpt-2", "\xC2\x85\xE2\x80\x83\xE3\x80\x80"),
              ElementsAre("\xC2\x85\xE2\x80\x83\xE3\x80\x80"));
  EXPECT_THAT(split("gpt-2", "!\xE1\xA0\x8E!"), ElementsAre("!\xE1\xA0\x8E!"));
}

TEST(Pretokenizer, InvalidBytesCountAsControlCharacters) {
  EXPECT_THAT(split("gpt-2", "a\xFF\xFE b\xE2\x82"),
              ElementsAre("a", "\xFF\xFE", " b", "\xE2\x82"));
  EXPECT_THAT(split("gpt-2", "\xED\xA0\x80"), ElementsAre("\xED\xA0\x80"));  // a surrogate
}

TEST(Pretokenizer, PiecesMakeUpTheTextAndEnginesAgree) {
  constexpr const char* kParts[] = {"a",
                                    "Z",
                                    "9",
                                    " ",
                                    "\n",
                                    "\r",
                                    "\t",
                                    "'s",
                                    "'LL",
                                    ".",
                                    "+",
                                    "\xC3\xA9",
                                    "\xE6\x88\x91",
                                    "\xF0\x9F\x98\x81",
                                    "\xFF",
                                    "\0",
                                    "\xE2",
                                    "\xC2\xA0",
                                    "\xCC\x81",
                                    "$"};
  std::mt19937 random(1);
  for (const char* name : kNames) {
    const Pretokenizer fastest(pretokenizer_rules(name));
    const Pretokenizer interpreter(pretokenizer_rules(name), Pretokenizer::Engine::interpreter);
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (unsigned i = random() % 40; i > 0; --i) text += kParts[random() % std::size(kParts)];
      std::string joined;
      for (const std::string_view piece : fastest.split(text)) {
        EXPECT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text) << name;
      ASSERT_EQ(fastest.split(text), interpreter.split(text)) << name << ": " << text;
    }
  }
}

// Hangs if some pattern is quadratic, and fails if the interpreter meets its limits.
TEST(Pretokenizer, LongRunsOfAnythingAreSplit) {
  constexpr std::size_t kSize = 1 << 18;
  const auto repeated = [](std::string_view unit, std::string_view end) {
    std::string text;
    while (text.size() < kSize) text += unit;
    return text += end;
  };
  for (const auto engine : {Pretokenizer::Engine::fastest, Pretokenizer::Engine::interpreter}) {
    for (const char* name : kNames) {
      const Pretokenizer pretokenizer(pretokenizer_rules(name), engine);
      for (const char* unit :
           {"a", " ", "7", "\n", "\t", "!", "'", " \n", "\r\n", "\xC2\xA0", "A "}) {
        for (const char* end : {"", "x"}) {
          const std::string text = repeated(unit, end);
          std::size_t total = 0;
          for (const std::string_view piece : pretokenizer.split(text)) total += piece.size();
          ASSERT_EQ(total, text.size()) << name << ": " << unit;
        }
      }
    }
  }
}

TEST(Pretokenizer, AnUnknownNameListsTheKnownOnes) {
  try {
    pretokenizer_rules("nonesuch");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("tokenizer.ggml.pre"));
    EXPECT_THAT(error.what(), HasSubstr("\"nonesuch\""));
    for (const char* name : kNames) EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

}  // namespace
}  // namespace heddle::text
