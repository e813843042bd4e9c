// A mebibyte of what has brought tokenizers down. A quadratic step would take hours here.
#include <gtest/gtest.h>

#include <random>

#include "support/shared_files.h"
#include "text/vocabularies.h"

namespace heddle::test {
namespace {

constexpr std::size_t kMebibyte = 1 << 20;

std::string repeated(std::string_view unit, std::size_t size) {
  std::string text;
  while (text.size() < size) text += unit;
  return text;
}

std::vector<std::string> long_texts(std::size_t size) {
  std::vector<std::string> texts;
  for (const char* unit : {"a", " ", "7", "\n", "\xF0\x9F\x98\x81", "<|", " a", "\xE2\x96\x81"}) {
    texts.push_back(repeated(unit, size));
  }
  texts.push_back(repeated(" ", size) + "x");
  std::mt19937 random(23);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  texts.push_back(bytes);
  for (char& c : bytes) c = static_cast<char>('a' + random() % 26);
  texts.push_back(bytes);
  return texts;
}

/// Merges that double: "aa", "aaaa", ... and likewise for blanks, digits and newlines.
VocabularyBuilder doubling_bytes() {
  VocabularyBuilder builder = all_bytes();
  for (const char c : {'a', ' ', '7', '\n'}) {
    for (std::size_t n = 1; n <= 64; n *= 2) builder.merge(std::string(n, c), std::string(n, c));
  }
  return builder;
}

void expect_bytes_return(const Tokenizer& tokenizer, std::size_t size) {
  for (const std::string& text : long_texts(size)) {
    const std::vector<TokenId> ids = tokenizer.encode(text, kPlain);
    EXPECT_TRUE(concatenated_bytes(tokenizer, ids) == text) << "text like " << text.substr(0, 8);
  }
}

TEST(LongText, EveryPretokenizer) {
  const VocabularyBuilder builder = doubling_bytes();
  for (const char* pre : {"default", "llama-bpe", "qwen2", "gpt-2", "starcoder", "falcon",
                          "deepseek-llm", "deepseek-coder"}) {
    expect_bytes_return(Tokenizer(builder.metadata("gpt2", pre)), kMebibyte / 4);
  }
}

TEST(LongText, SentencePiece) {
  VocabularyBuilder builder = sentencepiece_basics();
  for (const std::string unit : {"a", "7", "\xE2\x96\x81"}) {
    std::string text = unit;
    for (float score = -1; score > -8; --score) {
      builder.add(text, TokenType::normal, score);
      text += text;
    }
  }
  gguf::Metadata metadata = builder.metadata("llama");
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  const Tokenizer tokenizer(metadata);
  for (const std::string& text : long_texts(kMebibyte)) {
    std::string expected = text;  // the mark itself reads back as a space
    if (expected.starts_with("\xE2\x96\x81")) expected.assign(expected.size() / 3, ' ');
    EXPECT_TRUE(concatenated_bytes(tokenizer, tokenizer.encode(text, kPlain)) == expected);
  }
}

TEST(LongText, Llama3sVocabulary) {
  HEDDLE_SHARED_FILE(path, "tokenizers/llama-bpe.gguf");
  expect_bytes_return(Tokenizer(gguf::File::open(path).metadata()), kMebibyte);
}

}  // namespace
}  // namespace heddle::test
