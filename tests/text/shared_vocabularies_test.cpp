// Four real vocabularies against the ids that llama.cpp's test data gives, and the bundled model's.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "support/file_contents.h"
#include "support/shared_files.h"
#include "text/vocabularies.h"

namespace heddle::test {
namespace {

using Ids = std::vector<TokenId>;

std::vector<std::string> read_texts(const std::filesystem::path& path) {
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  const std::string all = contents(path);
  std::vector<std::string> texts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = all.find(kSeparator, begin);
    if (end == std::string::npos) break;
    texts.push_back(all.substr(begin, end - begin));
    begin = end + kSeparator.size();
  }
  return texts;
}

std::vector<Ids> read_ids(const std::filesystem::path& path) {
  std::vector<Ids> cases;
  std::istringstream lines(contents(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    cases.emplace_back(std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>());
  }
  return cases;
}

class SharedVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(SharedVocabulary, EveryCaseIsExact) {
  const std::string name = GetParam();
  HEDDLE_SHARED_FILE(model, "tokenizers/" + name + ".gguf");
  HEDDLE_SHARED_FILE(input, "tokenizers/" + name + ".inp");
  HEDDLE_SHARED_FILE(output, "tokenizers/" + name + ".out");
  const Tokenizer tokenizer(gguf::File::open(model).metadata());
  const std::vector<std::string> texts = read_texts(input);
  const std::vector<Ids> expected = read_ids(output);
  ASSERT_GE(texts.size(), 46u);
  ASSERT_EQ(texts.size(), expected.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i], kPlain), expected[i]) << "case " << i << ": " << texts[i];
    EXPECT_EQ(tokenizer.decode(expected[i]), texts[i]) << "case " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SharedVocabulary,
                         testing::Values("llama-spm", "gpt-2", "qwen2", "llama-bpe"));

TEST(SharedVocabularies, SpecialTokensOfLlama3) {
  HEDDLE_SHARED_FILE(path, "tokenizers/llama-bpe.gguf");
  const Tokenizer tokenizer(gguf::File::open(path).metadata());
  EXPECT_EQ(tokenizer.encode("Hello"), (Ids{128000, 9906}));
  EXPECT_EQ(tokenizer.encode("<|eot_id|>", kParse), Ids{128009});
  EXPECT_GT(tokenizer.encode("<|eot_id|>", kPlain).size(), 1u);
  EXPECT_TRUE(tokenizer.is_end(128009));
  EXPECT_TRUE(tokenizer.is_end(128001));
}

TEST(SharedVocabularies, LlamaAddsItsBeginning) {
  HEDDLE_SHARED_FILE(path, "tokenizers/llama-spm.gguf");
  const Tokenizer tokenizer(gguf::File::open(path).metadata());
  EXPECT_EQ(tokenizer.encode("Hello"), (Ids{1, 15043}));
  EXPECT_EQ(tokenizer.encode("<s>", kParse), Ids{1});
}

TEST(SharedVocabularies, ASmallFileWithoutFlags) {
  HEDDLE_SHARED_FILE(model, "models/stories260K.gguf");
  HEDDLE_SHARED_FILE(story, "models/stories260K.greedy.txt");
  const Tokenizer tokenizer(gguf::File::open(model).metadata());
  const std::string text = contents(story);
  const Ids ids = tokenizer.encode(text);
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_LT(ids.size() * 2, text.size());
}

TEST(SharedVocabularies, BundledModel) {
  HEDDLE_SHARED_FILE(model, "models/fable-1m-f16.gguf");
  HEDDLE_SHARED_FILE(story, "models/fable-1m.greedy.txt");
  const Tokenizer tokenizer(gguf::File::open(model).metadata());
  EXPECT_EQ(tokenizer.size(), 907u);
  EXPECT_EQ(tokenizer.eos(), 906);
  EXPECT_TRUE(tokenizer.is_end(904));
  EXPECT_EQ(tokenizer.encode("<|im_start|><|im_end|>", kParse), (Ids{905, 906}));
  const std::string text = contents(story);
  const Ids ids = tokenizer.encode(text);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_LT(ids.size() * 3, text.size());  // its own prose falls into words, not bytes
}

}  // namespace
}  // namespace heddle::test
