#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "text/vocabularies.h"

namespace heddle::test {
namespace {

using Ids = std::vector<TokenId>;

/// BPE as it is defined, in quadratic time: again and again the earliest merge that applies
/// anywhere, leftmost first.
class NaiveBpe {
 public:
  explicit NaiveBpe(const VocabularyBuilder& builder) {
    for (std::size_t i = 0; i < builder.texts.size(); ++i) {
      ids_[builder.texts[i]] = static_cast<TokenId>(i);
    }
    for (std::size_t i = 0; i < builder.merges.size(); ++i) ranks_.emplace(builder.merges[i], i);
  }

  Ids encode(std::string_view word) const {
    std::vector<std::string> parts;
    for (const char c : word) parts.push_back(byte_text(static_cast<unsigned char>(c)));
    while (true) {
      std::size_t best = kNone, at = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto rank = ranks_.find(parts[i] + " " + parts[i + 1]);
        if (rank != ranks_.end() && rank->second < best) best = rank->second, at = i;
      }
      if (best == kNone) break;
      parts[at] += parts[at + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    Ids ids;
    for (const std::string& part : parts) ids.push_back(ids_.at(part));
    return ids;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::map<std::string, TokenId> ids_;
  std::map<std::string, std::size_t> ranks_;
};

/// Merges of random neighbours among what there is, over a few letters.
VocabularyBuilder random_vocabulary(std::mt19937& random, std::size_t merges) {
  VocabularyBuilder builder = all_bytes();
  std::vector<std::string> pool = {"a", "b", "c"};
  while (builder.merges.size() < merges) {
    const std::string left = pool[random() % pool.size()], right = pool[random() % pool.size()];
    builder.merge(left, right);
    pool.push_back(left + right);
  }
  return builder;
}

TEST(ByteLevel, BytesAreWrittenAsGpt2WritesThem) {
  EXPECT_EQ(byte_text(' '), "\xC4\xA0");   // U+0120
  EXPECT_EQ(byte_text('\n'), "\xC4\x8A");  // U+010A
  EXPECT_EQ(byte_text(0), "\xC4\x80");     // U+0100
  EXPECT_EQ(byte_text(0x7F), "\xC4\xA1");  // U+0121
  EXPECT_EQ(byte_text(0xAD), "\xC5\x83");  // U+0143
  const Tokenizer tokenizer(all_bytes().metadata("gpt2", "gpt-2"));
  for (TokenId byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    EXPECT_EQ(tokenizer.token_bytes(byte), text);
    EXPECT_EQ(tokenizer.encode(text, kPlain), Ids{byte});
  }
}

TEST(ByteLevel, EarlierMergesGoFirstAndEqualOnesFromTheLeft) {
  VocabularyBuilder builder = all_bytes();
  builder.merge("b", "c");    // 256
  builder.merge("a", "b");    // 257
  builder.merge("ab", "c");   // 258: never reached from "abc", whose "bc" goes first
  builder.merge("a", "a");    // 259
  builder.merge("aa", "a");   // 260
  builder.merge("aa", "aa");  // 261
  const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
  EXPECT_EQ(tokenizer.encode("abc", kPlain), (Ids{'a', 256}));
  EXPECT_EQ(tokenizer.encode("aaa", kPlain), (Ids{260}));
  EXPECT_EQ(tokenizer.encode("aaaa", kPlain), (Ids{261}));
  EXPECT_EQ(tokenizer.encode("aaaaa", kPlain), (Ids{259, 260}));
}

TEST(ByteLevel, EqualsTheDefinitionOnRandomText) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const VocabularyBuilder builder = random_vocabulary(random, 1 + random() % 60);
    const NaiveBpe naive(builder);
    const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
    for (int text = 0; text < 30; ++text) {
      std::string word;
      for (unsigned i = random() % 80; i > 0; --i) word += static_cast<char>('a' + random() % 3);
      ASSERT_EQ(tokenizer.encode(word, kPlain), naive.encode(word)) << word;
    }
  }
}

TEST(ByteLevel, AnyBytesComeBack) {
  std::mt19937 random(3);
  VocabularyBuilder builder = random_vocabulary(random, 20);
  builder.merge("\xE2", "\x82");
  builder.merge("\xE2\x82", "\xAC");
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "falcon", "default"}) {
    const Tokenizer tokenizer(builder.metadata("gpt2", pre));
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (unsigned i = random() % 60; i > 0; --i) text += static_cast<char>(random());
      ASSERT_EQ(concatenated_bytes(tokenizer, tokenizer.encode(text, kPlain)), text);
    }
    const std::string valid = "na\xC3\xAFve \xE2\x82\xAC 5,\n\n  \xF0\x9F\xA6\x99 \xE6\x88\x91";
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(valid)), valid);
    EXPECT_TRUE(tokenizer.encode("").empty());
  }
}

TEST(ByteLevel, MergesStayWithinWords) {
  VocabularyBuilder builder = all_bytes();
  builder.merge("a", " ");
  builder.merge(" ", "a");
  const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
  EXPECT_EQ(tokenizer.encode("a a", kPlain), (Ids{'a', 257}));
}

TEST(ByteLevel, Llama3TakesWholeWordsAsTheyAre) {
  VocabularyBuilder builder = all_bytes();
  const TokenId word = builder.add(in_byte_text(" xyz"));
  const TokenId end = builder.add("abc", TokenType::control);
  const Tokenizer llama(builder.metadata("gpt2", "llama-bpe"));
  EXPECT_EQ(llama.encode(" xyz", kPlain), Ids{word});
  EXPECT_EQ(llama.encode("abc", kPlain), (Ids{'a', 'b', 'c'}));  // a control token is no word
  EXPECT_EQ(llama.encode("abc", kParse), Ids{end});
  const Tokenizer gpt2(builder.metadata("gpt2", "gpt-2"));
  EXPECT_EQ(gpt2.encode(" xyz", kPlain), (Ids{' ', 'x', 'y', 'z'}));
}

TEST(ByteLevel, AMergeNeverMakesAControlToken) {
  VocabularyBuilder builder = all_bytes();
  builder.add("<>", TokenType::control);
  builder.merge("<", ">");
  const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
  EXPECT_EQ(tokenizer.encode("<>", kPlain), (Ids{'<', '>'}));
}

TEST(ByteLevel, ABytewithoutATokenIsUnknownOrNothing) {
  VocabularyBuilder builder;
  builder.add("a");
  builder.add("b");
  gguf::Metadata metadata = builder.metadata("gpt2", "gpt-2");
  EXPECT_EQ(Tokenizer(metadata).encode("axb", kPlain), (Ids{0, 1}));
  builder.add("?", TokenType::unknown);
  metadata = builder.metadata("gpt2", "gpt-2");
  metadata.set("tokenizer.ggml.unknown_token_id", std::uint32_t{2});
  EXPECT_EQ(Tokenizer(metadata).encode("axb", kPlain), (Ids{0, 2, 1}));
}

TEST(ByteLevel, BeginningAndEndAreAddedOnlyWhereAskedFor) {
  VocabularyBuilder builder = all_bytes();
  const TokenId bos = builder.add("<bos>", TokenType::control);
  const TokenId eos = builder.add("<eos>", TokenType::control);
  gguf::Metadata metadata = builder.metadata("gpt2", "gpt-2");
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t(bos));
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t(eos));
  EXPECT_EQ(Tokenizer(metadata).encode("a"), Ids{'a'});
  metadata.set("tokenizer.ggml.add_bos_token", true);
  metadata.set("tokenizer.ggml.add_eos_token", true);
  EXPECT_EQ(Tokenizer(metadata).encode("a"), (Ids{bos, 'a', eos}));
  EXPECT_EQ(Tokenizer(metadata).encode(""), (Ids{bos, eos}));
  EXPECT_EQ(Tokenizer(metadata).encode("a", kPlain), Ids{'a'});
  metadata = builder.metadata("gpt2", "llama-bpe");  // which adds the beginning by default
  EXPECT_EQ(Tokenizer(metadata).encode("a"), Ids{'a'});
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t(bos));
  EXPECT_EQ(Tokenizer(metadata).encode("a"), (Ids{bos, 'a'}));
}

TEST(ByteLevel, AMissingPreMeansDefault) {
  const VocabularyBuilder builder = all_bytes();
  const Tokenizer tokenizer(builder.metadata("gpt2"));
  EXPECT_EQ(tokenizer.encode("a 1", kPlain), (Ids{'a', ' ', '1'}));
}

TEST(ByteLevel, ThreadsShareATokenizer) {
  std::mt19937 random(5);
  const Tokenizer tokenizer(random_vocabulary(random, 50).metadata("gpt2", "qwen2"));
  std::vector<std::string> texts(40);
  for (std::string& text : texts) {
    for (unsigned i = random() % 500; i > 0; --i) text += "abc 1\n\xC3"[random() % 7];
  }
  std::vector<Ids> expected;
  for (const std::string& text : texts) expected.push_back(tokenizer.encode(text));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        count += tokenizer.encode(texts[i]) != expected[i];
        count += tokenizer.decode(expected[i]).empty() != texts[i].empty();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace heddle::test
