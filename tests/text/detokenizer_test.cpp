#include <gtest/gtest.h>

#include <random>
#include <unordered_set>

#include "heddle/error.h"
#include "text/vocabularies.h"

namespace heddle::test {
namespace {

using Ids = std::vector<TokenId>;
const std::string kBad = "\xEF\xBF\xBD";

/// Repairs UTF-8 from nothing but the list of all characters: a piece is the longest string that
/// begins some character.
class Repair {
 public:
  Repair() {
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      std::string text;
      text::append_utf8(text, c);
      for (std::size_t n = 1; n < text.size(); ++n) beginnings_.insert(text.substr(0, n));
      characters_.insert(text);
    }
  }

  std::string operator()(const std::string& bytes) const {
    std::string result;
    for (std::size_t i = 0; i < bytes.size();) {
      std::size_t n = 4;
      while (n > 1 && (i + n > bytes.size() || !known(bytes.substr(i, n)))) --n;
      const std::string piece = bytes.substr(i, n);
      result += characters_.count(piece) ? piece : kBad;
      i += n;
    }
    return result;
  }

 private:
  bool known(const std::string& s) const { return characters_.count(s) || beginnings_.count(s); }
  std::unordered_set<std::string> beginnings_, characters_;
};

Ids bytes_as_ids(std::string_view bytes) {
  Ids ids;
  for (const char c : bytes) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

std::string repeated_bad(int n) {
  std::string text;
  while (n-- > 0) text += kBad;
  return text;
}

TEST(Detokenizer, GivesOutWholeCharactersOnly) {
  const Tokenizer tokenizer(all_bytes().metadata("gpt2", "gpt-2"));
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.add('a'), "a");
  EXPECT_EQ(detokenizer.add(0xE2), "");
  EXPECT_EQ(detokenizer.add(0x82), "");
  EXPECT_EQ(detokenizer.add(0xAC), "\xE2\x82\xAC");
  EXPECT_EQ(detokenizer.add(0xF0), "");
  EXPECT_EQ(detokenizer.add('b'), kBad + "b");
  EXPECT_EQ(detokenizer.add(0xC3), "");
  EXPECT_EQ(detokenizer.finish(), kBad);
  EXPECT_EQ(detokenizer.finish(), "");
}

// The Unicode Standard 15.0, tables 3-8 to 3-11.
TEST(Detokenizer, RepairsAsUnicodeRecommends) {
  const Tokenizer tokenizer(all_bytes().metadata("gpt2", "gpt-2"));
  const auto decode = [&](std::string_view bytes) { return tokenizer.decode(bytes_as_ids(bytes)); };
  EXPECT_EQ(decode("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                   "A"),
            repeated_bad(8) + "A");
  EXPECT_EQ(decode("\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
                   "A"),
            repeated_bad(8) + "A");
  EXPECT_EQ(decode("\xF4\x91\x92\x93\xFF"
                   "A\x80\xBF"
                   "B"),
            repeated_bad(5) + "A" + repeated_bad(2) + "B");
  EXPECT_EQ(decode("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                   "A"),
            repeated_bad(4) + "A");
}

TEST(Detokenizer, StreamsWhatRepairingTheWholeGives) {
  const Repair repair;
  const Tokenizer tokenizer(all_bytes().metadata("gpt2", "gpt-2"));
  constexpr unsigned char kTelling[] = {'a',  0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2,
                                        0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5};
  std::mt19937 random(17);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (unsigned i = random() % 30; i > 0; --i) {
      bytes +=
          static_cast<char>(random() % 4 ? kTelling[random() % std::size(kTelling)] : random());
    }
    Detokenizer detokenizer(tokenizer);
    std::string streamed;
    for (const TokenId id : bytes_as_ids(bytes)) {
      const std::string part = detokenizer.add(id);
      ASSERT_EQ(repair(part), part) << "half a character";
      streamed += part;
    }
    streamed += detokenizer.finish();
    ASSERT_EQ(streamed, repair(bytes));
    ASSERT_EQ(tokenizer.decode(bytes_as_ids(bytes)), streamed);
  }
}

TEST(Detokenizer, DropsTheFirstSpaceOfASentencePieceText) {
  VocabularyBuilder builder = sentencepiece_basics();
  const TokenId word = builder.add(
      "\xE2\x96\x81"
      "w");
  const TokenId marks = builder.add("\xE2\x96\x81\xE2\x96\x81");
  const Tokenizer tokenizer(builder.metadata("llama"));
  EXPECT_EQ(tokenizer.decode(Ids{1, word, word}), "w w");
  EXPECT_EQ(tokenizer.decode(Ids{marks, word}), "  w");
  EXPECT_EQ(tokenizer.decode(Ids{1, word, 2}, true), "<s>w</s>");
  EXPECT_EQ(tokenizer.decode(Ids{kByteZero + 'x', word}), "x w");
  EXPECT_EQ(tokenizer.token_bytes(word), " w");
  EXPECT_EQ(tokenizer.decode(Ids{kByteZero + 0xC3, 1, kByteZero + 0xA9}), "\xC3\xA9");
  EXPECT_EQ(tokenizer.decode(Ids{}), "");
}

TEST(Detokenizer, BytesAreThoseOfTheTokenType) {
  VocabularyBuilder builder = all_bytes();
  const TokenId control = builder.add("<c>", TokenType::control);
  const TokenId unknown = builder.add("<u>", TokenType::unknown);
  const TokenId mine = builder.add("\xC4\xA0 raw", TokenType::user_defined);
  const TokenId plain = builder.add("\xC4\xA0w\xE2\x82\xAC");  // the euro sign stands for no byte
  const TokenId unused = builder.add("\xC4\xA0q", TokenType::unused);
  const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
  EXPECT_EQ(tokenizer.token_bytes(control), "");
  EXPECT_EQ(tokenizer.token_bytes(control, true), "<c>");
  EXPECT_EQ(tokenizer.token_bytes(unknown), "");
  EXPECT_EQ(tokenizer.token_bytes(unknown, true), "<u>");
  EXPECT_EQ(tokenizer.token_bytes(mine), "\xC4\xA0 raw");
  EXPECT_EQ(tokenizer.token_bytes(plain), " w\xE2\x82\xAC");
  EXPECT_EQ(tokenizer.token_bytes(unused), " q");
  EXPECT_EQ(tokenizer.size(), 261u);
}

TEST(Detokenizer, IdsOutOfRangeAreErrors) {
  const Tokenizer tokenizer(all_bytes().metadata("gpt2", "gpt-2"));
  Detokenizer detokenizer(tokenizer);
  for (const TokenId id : {-1, 256, 1 << 30}) {
    const auto refused = [](const auto& call) {
      try {
        call();
      } catch (const Error& error) {
        return error.code() == ErrorCode::invalid_argument;
      }
      return false;
    };
    EXPECT_TRUE(refused([&] { tokenizer.token_bytes(id); }));
    EXPECT_TRUE(refused([&] { tokenizer.token_text(id); }));
    EXPECT_TRUE(refused([&] { tokenizer.type(id); }));
    EXPECT_TRUE(refused([&] { tokenizer.decode(Ids{id}); }));
    EXPECT_TRUE(refused([&] { detokenizer.add(id); }));
  }
  EXPECT_EQ(detokenizer.add('a'), "a");
}

}  // namespace
}  // namespace heddle::test
