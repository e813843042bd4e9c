#include "heddle/tokenizer_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "heddle/gguf.h"
#include "heddle/tokenizer.h"
#include "text/byte_level.h"
#include "text/pretokenizer.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Texts = std::vector<std::string>;

BpeVocabulary train(const Texts& texts, std::size_t vocab_size, Texts specials = {},
                    std::uint64_t min_count = 1) {
  return train_bpe(
      texts,
      {.vocab_size = vocab_size, .min_count = min_count, .special_tokens = std::move(specials)});
}

Tokenizer tokenizer_of(const BpeVocabulary& vocabulary) {
  gguf::Metadata metadata("a trained vocabulary");
  set_vocabulary(metadata, vocabulary);
  return Tokenizer(metadata);
}

std::string message_of(const std::function<void()>& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

// ---- A trainer that counts all pairs of all words before each merge.

using Ids = std::vector<TokenId>;
using Word = std::pair<Ids, std::uint64_t>;

Ids merged(const Ids& word, TokenId left, TokenId right, TokenId whole) {
  Ids result;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool here = word[i] == left && i + 1 < word.size() && word[i + 1] == right;
    result.push_back(here ? whole : word[i]);
    i += here;
  }
  return result;
}

struct Naive {
  Texts tokens, merges;
  std::vector<Word> words;

  Naive(const Texts& texts, std::size_t vocab_size, std::uint64_t min_count) {
    for (unsigned b = 0; b < 256; ++b) {
      tokens.push_back(text::byte_character(static_cast<std::uint8_t>(b)));
    }
    const text::Pretokenizer pretokenizer(text::pretokenizer_rules("qwen2"));
    std::map<Ids, std::uint64_t> counts;
    for (const std::string& text : texts) {
      for (const std::string_view word : pretokenizer.split(text)) {
        Ids ids;
        for (const char c : word) ids.push_back(static_cast<std::uint8_t>(c));
        ++counts[ids];
      }
    }
    words.assign(counts.begin(), counts.end());
    while (tokens.size() < vocab_size && step(min_count)) {
    }
  }

  bool step(std::uint64_t min_count) {
    std::map<std::pair<TokenId, TokenId>, std::uint64_t> pairs;
    for (const auto& [word, count] : words) {
      for (std::size_t i = 1; i < word.size(); ++i) pairs[{word[i - 1], word[i]}] += count;
    }
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;  // the first of equals, and so the lowest ids
        });
    if (best == pairs.end() || best->second < min_count) return false;
    const auto [left, right] = best->first;
    const std::string& a = tokens[static_cast<std::size_t>(left)];
    const std::string& b = tokens[static_cast<std::size_t>(right)];
    const std::string whole = a + b;
    merges.push_back(a + " " + b);
    auto id = std::find(tokens.begin(), tokens.end(), whole);
    if (id == tokens.end()) id = tokens.insert(tokens.end(), whole);
    for (auto& [word, count] : words) {
      word = merged(word, left, right, static_cast<TokenId>(id - tokens.begin()));
    }
    return true;
  }
};

Texts random_texts(std::mt19937& random, std::string_view alphabet) {
  Texts texts(random() % 5);
  for (std::string& text : texts) {
    for (std::size_t i = random() % 200; i > 0; --i) text += alphabet[random() % alphabet.size()];
  }
  return texts;
}

TEST(BpeTrainer, MergesWhatIsMostFrequent) {
  const BpeVocabulary vocabulary = train({"hug hug hugs pug"}, 260);
  // ug 4 times, " hug"'s h and ug 3 times.
  EXPECT_THAT(vocabulary.merges, ElementsAre("u g", "h ug", "\u0120 hug", "\u0120 p"));
  EXPECT_EQ(vocabulary.tokens[256], "ug");
  EXPECT_EQ(vocabulary.tokens.size(), 260u);
}

TEST(BpeTrainer, MergesWhatANaiveTrainerMerges) {
  std::mt19937 random(1);
  for (const std::string_view alphabet : {"a", "ab", "abc ", "ab \n1.", "\xC3\xA4\xFF a"}) {
    for (int round = 0; round < 30; ++round) {
      const Texts texts = random_texts(random, alphabet);
      const std::size_t size = 256 + random() % 60;
      const std::uint64_t min_count = 1 + random() % 4;
      const BpeVocabulary vocabulary = train(texts, size, {}, min_count);
      const Naive naive(texts, size, min_count);
      ASSERT_EQ(vocabulary.merges, naive.merges) << testing::PrintToString(texts);
      ASSERT_EQ(vocabulary.tokens, naive.tokens) << testing::PrintToString(texts);
    }
  }
}

TEST(BpeTrainer, ATokenizerEncodesWhatItWasTrainedOnAsTrainingLeftIt) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    const Texts texts = random_texts(random, "aab \n");
    const BpeVocabulary vocabulary = train(texts, 300);
    const Tokenizer tokenizer = tokenizer_of(vocabulary);
    const Naive naive(texts, 300, 1);
    for (const auto& [ids, count] : naive.words) {
      const std::string word = tokenizer.decode(ids);
      EXPECT_EQ(tokenizer.encode(word), ids) << word;
    }
  }
}

TEST(BpeTrainer, AnyBytesComeBack) {
  std::mt19937 random(3);
  std::string trained;
  for (int i = 0; i < 20000; ++i) trained += static_cast<char>(random() % 256);
  const Tokenizer tokenizer = tokenizer_of(train({trained}, 600, {"<|end|>"}));
  for (int round = 0; round < 50; ++round) {
    std::string text;
    for (std::size_t i = random() % 300; i > 0; --i) text += static_cast<char>(random() % 256);
    std::string bytes;
    for (const TokenId id : tokenizer.encode(text)) bytes += tokenizer.token_bytes(id);
    EXPECT_EQ(bytes, text);
  }
}

TEST(BpeTrainer, TheOrderOfTextsDoesNotMatter) {
  std::mt19937 random(4);
  Texts texts = random_texts(random, "abcd e");
  while (texts.size() < 20) texts.push_back(random_texts(random, "abcd e").emplace_back());
  const BpeVocabulary vocabulary = train(texts, 350);
  std::reverse(texts.begin(), texts.end());
  EXPECT_EQ(train(texts, 350).merges, vocabulary.merges);
}

TEST(BpeTrainer, SpecialTokensCutTexts) {
  const BpeVocabulary vocabulary = train({"ab<|x|>ab<|x|>ab<|x|y|>"}, 300, {"<|x|>", "<|x|y|>"});
  EXPECT_THAT(vocabulary.merges, ElementsAre("a b"));
  ASSERT_EQ(vocabulary.tokens.size(), 259u);
  EXPECT_EQ(vocabulary.special_tokens, 2u);
  const Tokenizer tokenizer = tokenizer_of(vocabulary);
  EXPECT_EQ(tokenizer.type(257), TokenType::control);
  EXPECT_EQ(tokenizer.type(256), TokenType::normal);
  EXPECT_THAT(tokenizer.encode("ab<|x|y|>", {.parse_special = true}), ElementsAre(256, 258));
}

TEST(BpeTrainer, NoTokenReadsLikeASpecialOne) {
  // " t" is written as the special token is.
  const BpeVocabulary vocabulary = train({" t t t t ta ta"}, 300, {"\u0120t"});
  EXPECT_EQ(std::count(vocabulary.tokens.begin(), vocabulary.tokens.end(), "\u0120t"), 1);
  EXPECT_EQ(tokenizer_of(vocabulary).size(), vocabulary.tokens.size());
}

TEST(BpeTrainer, WithoutPairsThereAreBytesOnly) {
  EXPECT_EQ(train({}, 1000).tokens.size(), 256u);
  EXPECT_EQ(train({"", "a", " "}, 1000, {"<s>"}).tokens.size(), 257u);
  EXPECT_EQ(train({"ab"}, 1000, {}, 2).tokens.size(), 256u);
  EXPECT_EQ(train({"abab"}, 256).merges.size(), 0u);
}

TEST(BpeTrainer, OneEndlessWordIsNoTrouble) {
  const BpeVocabulary vocabulary = train({std::string(300'000, 'a')}, 1000);
  EXPECT_EQ(vocabulary.tokens.back().size(), 300'000u);
  std::mt19937 random(5);
  std::string word;
  for (int i = 0; i < 300'000; ++i) word += static_cast<char>('a' + random() % 3);
  EXPECT_EQ(train({word}, 1000).tokens.size(), 1000u);
}

TEST(BpeTrainer, RefusesOptionsThatMakeNoVocabulary) {
  constexpr auto kInvalid = ErrorCode::invalid_argument;
  EXPECT_THAT(message_of([] { train({"a"}, 255); }, kInvalid), HasSubstr("need 256"));
  EXPECT_THAT(message_of([] { train({"a"}, 256, {"<s>"}); }, kInvalid), HasSubstr("need 257"));
  EXPECT_THAT(message_of([] { train({"a"}, 300, {""}); }, kInvalid), HasSubstr("empty"));
  EXPECT_THAT(message_of([] { train({"a"}, 300, {"<s>", "<s>"}); }, kInvalid), HasSubstr("twice"));
  EXPECT_THAT(message_of([] { train({"a"}, 300, {"a"}); }, kInvalid), HasSubstr("a byte"));
  EXPECT_THAT(message_of([] { train({"a"}, std::size_t{1} << 40); }, kInvalid),
              HasSubstr("31 bits"));
  EXPECT_THAT(message_of([] { train_bpe({}, {.vocab_size = 300, .pre = "nonesuch"}); },
                         ErrorCode::unsupported),
              HasSubstr("nonesuch"));
  gguf::Metadata metadata;
  EXPECT_THAT(message_of(
                  [&] {
                    set_vocabulary(metadata, {{"a"}, {}, 2, "qwen2"});
                  },
                  kInvalid),
              HasSubstr("2 special"));
}

}  // namespace
}  // namespace heddle
