#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "text/vocabularies.h"

namespace heddle::test {
namespace {

using Ids = std::vector<TokenId>;
const std::string kMark = "\xE2\x96\x81";

/// The definition: again and again the neighbours whose concatenation has the best score.
Ids naive_encode(const VocabularyBuilder& builder, const std::vector<std::string>& characters) {
  std::map<std::string, TokenId> ids;
  for (std::size_t i = 0; i < builder.texts.size(); ++i) {
    if (builder.types[i] == static_cast<int>(TokenType::normal)) {
      ids[builder.texts[i]] = static_cast<TokenId>(i);
    }
  }
  std::vector<std::string> parts = characters;
  while (true) {
    const TokenId none = -1;
    TokenId best = none;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ids.find(parts[i] + parts[i + 1]);
      if (found == ids.end()) continue;
      const auto score = [&](TokenId id) { return builder.scores[static_cast<std::size_t>(id)]; };
      if (best == none || score(found->second) > score(best)) best = found->second, at = i;
    }
    if (best == none) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  Ids result;
  for (const std::string& part : parts) result.push_back(ids.at(part));
  return result;
}

class SmallSentencePiece : public testing::Test {
 protected:
  VocabularyBuilder builder = sentencepiece_basics();
  TokenId mark = builder.add(kMark, TokenType::normal, -10);
  TokenId a = builder.add("a", TokenType::normal, -11);
  TokenId b = builder.add("b", TokenType::normal, -12);
  TokenId c = builder.add("c", TokenType::normal, -13);
  TokenId mark_a = builder.add(kMark + "a", TokenType::normal, -3);
  TokenId ab = builder.add("ab", TokenType::normal, -2);
  TokenId bc = builder.add("bc", TokenType::normal, -1);
  TokenId aa = builder.add("aa", TokenType::normal, -4);

  Ids encode(std::string_view text, const EncodeOptions& options = kPlain) const {
    return Tokenizer(builder.metadata("llama")).encode(text, options);
  }
};

TEST_F(SmallSentencePiece, BetterScoresMergeFirst) {
  EXPECT_EQ(encode("abc"), (Ids{mark_a, bc}));
  EXPECT_EQ(encode("ab"), (Ids{mark, ab}));
}

TEST_F(SmallSentencePiece, TiesMergeFromTheLeft) {
  EXPECT_EQ(encode("caaa"), (Ids{mark, c, aa, a}));
}

TEST_F(SmallSentencePiece, ASpaceIsPutBeforeTheText) {
  EXPECT_EQ(encode(""), Ids{});
  EXPECT_EQ(encode(" a"), (Ids{mark, mark_a}));
  gguf::Metadata metadata = builder.metadata("llama");
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(Tokenizer(metadata).encode("a", kPlain), Ids{a});
  EXPECT_EQ(Tokenizer(metadata).decode(Ids{mark_a}), " a");
  EXPECT_EQ(Tokenizer(builder.metadata("llama")).decode(Ids{mark_a}), "a");
}

TEST_F(SmallSentencePiece, CharactersWithoutATokenBecomeBytes) {
  EXPECT_EQ(encode("b\xC3\xA9"), (Ids{mark, b, kByteZero + 0xC3, kByteZero + 0xA9}));
  EXPECT_EQ(encode("\xFF"), (Ids{mark, kByteZero + 0xFF}));
  EXPECT_EQ(encode("\xE2\x96"), (Ids{mark, kByteZero + 0xE2, kByteZero + 0x96}));
  const Tokenizer tokenizer(builder.metadata("llama"));
  for (const std::string text : {"a\xC3\xA9 b", "  a  ", "\n\t", "\xF0\x9F\xA6\x99"}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST_F(SmallSentencePiece, WithoutBytesTheyBecomeTheUnknownToken) {
  VocabularyBuilder few;
  few.add("<unk>", TokenType::unknown);
  few.add(kMark);
  few.add("a");
  EXPECT_EQ(Tokenizer(few.metadata("llama")).encode("a\xC3\xA9x", kPlain), (Ids{1, 2, 0, 0}));
  few.types[0] = static_cast<int>(TokenType::normal);
  few.texts[0] = "zz";
  EXPECT_EQ(Tokenizer(few.metadata("llama")).encode("a\xC3\xA9x", kPlain), (Ids{1, 2}));
}

TEST_F(SmallSentencePiece, TheBeginningIsAddedByDefault) {
  EXPECT_EQ(encode("ab", {}), (Ids{1, mark, ab}));
  EXPECT_EQ(encode("", {}), Ids{1});
  gguf::Metadata metadata = builder.metadata("llama");
  metadata.set("tokenizer.ggml.add_bos_token", false);
  metadata.set("tokenizer.ggml.add_eos_token", true);
  const Tokenizer tokenizer(metadata);
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{mark, ab, 2}));
  EXPECT_EQ(tokenizer.bos(), 1);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_TRUE(tokenizer.is_end(2));
  EXPECT_FALSE(tokenizer.is_end(1));
}

TEST_F(SmallSentencePiece, ControlAndByteTokensAreNotWritten) {
  builder.add("<s", TokenType::normal, -1);
  builder.add("s>", TokenType::normal, -1);
  for (const char* text : {"<s>", "<0x41>", "<unk>"}) {
    for (const TokenId id : encode(text))
      EXPECT_FALSE(id == 0 || id == 1 || id == kByteZero + 0x41);
  }
  EXPECT_EQ(encode("<s>", kParse), Ids{1});
  EXPECT_EQ(encode("<unk>", kParse), Ids{0});
}

TEST_F(SmallSentencePiece, ASpaceFollowsASpecialToken) {
  EXPECT_EQ(encode("<s>a</s>bc", kParse), (Ids{1, mark_a, 2, mark, bc}));
  const TokenId mine = builder.add("@@", TokenType::user_defined);
  EXPECT_EQ(encode("a@@a"), (Ids{mark_a, mine, mark_a}));
}

TEST_F(SmallSentencePiece, EqualsTheDefinitionOnRandomText) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    const bool across_words = round % 2 == 0;
    VocabularyBuilder vocabulary = sentencepiece_basics();
    std::vector<std::string> pool = {kMark, "a", "b", "\xC3\xA9"};
    for (const std::string& text : pool) vocabulary.add(text, TokenType::normal, -100);
    for (unsigned i = random() % 50; i > 0; --i) {
      const std::string text = pool[random() % pool.size()] + pool[random() % pool.size()];
      if (std::find(pool.begin(), pool.end(), text) != pool.end()) continue;
      if (!across_words && text.find(kMark, text.find_first_not_of(kMark)) != text.npos) continue;
      pool.push_back(text);
      vocabulary.add(text, TokenType::normal, -static_cast<float>(random() % 8));  // with ties
    }
    const Tokenizer tokenizer(vocabulary.metadata("llama"));
    for (int n = 0; n < 30; ++n) {
      std::string text;
      std::vector<std::string> characters = {kMark};
      for (unsigned i = 1 + random() % 60; i > 0; --i) {
        const std::string& character = pool[random() % 4];
        text += character == kMark ? " " : character;
        characters.push_back(character);
      }
      ASSERT_EQ(tokenizer.encode(text, kPlain), naive_encode(vocabulary, characters)) << text;
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    }
  }
}

}  // namespace
}  // namespace heddle::test
