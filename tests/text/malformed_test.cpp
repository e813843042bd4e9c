// Each field of the metadata, broken by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "heddle/error.h"
#include "text/vocabularies.h"

namespace heddle::test {
namespace {

using gguf::Array;
using gguf::Metadata;
using testing::HasSubstr;

gguf::Metadata without(const Metadata& metadata, std::string_view key) {
  Metadata rest;
  for (const auto& [name, value] : metadata.entries()) {
    if (name != key) rest.set(name, value);
  }
  return rest;
}

Metadata byte_level() {
  VocabularyBuilder builder = all_bytes();
  builder.merge("a", "b");
  return builder.metadata("gpt2", "gpt-2");
}

Metadata sentencepiece() {
  return sentencepiece_basics().metadata("llama");
}

void expect_error(const Metadata& metadata, ErrorCode code, const std::string& key,
                  const std::string& detail = {}) {
  try {
    const Tokenizer tokenizer(metadata);
    FAIL() << key << ": no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(key));
    EXPECT_THAT(error.what(), HasSubstr(detail));
  }
}

void expect_io(Metadata metadata, const std::string& key, gguf::Value value,
               const std::string& detail = {}) {
  metadata.set(key, std::move(value));
  expect_error(metadata, ErrorCode::io, key, detail);
}

TEST(MalformedVocabulary, WhatIsSoundIsAccepted) {
  EXPECT_NO_THROW(Tokenizer{byte_level()});
  EXPECT_NO_THROW(Tokenizer{sentencepiece()});
}

TEST(MalformedVocabulary, MissingKeys) {
  for (const char* name : {"model", "tokens", "merges"}) {
    const std::string key = std::string("tokenizer.ggml.") + name;
    expect_error(without(byte_level(), key), ErrorCode::io, key);
  }
  expect_error(without(sentencepiece(), "tokenizer.ggml.scores"), ErrorCode::io,
               "tokenizer.ggml.scores");
  EXPECT_NO_THROW(Tokenizer{without(byte_level(), "tokenizer.ggml.token_type")});
}

TEST(MalformedVocabulary, ModelsAndPretokenizersThatAreNotKnown) {
  Metadata metadata = byte_level();
  metadata.set("tokenizer.ggml.pre", std::string("nonesuch"));
  expect_error(metadata, ErrorCode::unsupported, "tokenizer.ggml.pre", "qwen2");
  metadata.set("tokenizer.ggml.model", std::string("bert"));
  expect_error(metadata, ErrorCode::unsupported, "tokenizer.ggml.model", "bert");
  expect_io(byte_level(), "tokenizer.ggml.model", std::uint32_t{1});
  expect_io(byte_level(), "tokenizer.ggml.pre", true);
}

TEST(MalformedVocabulary, Tokens) {
  const std::string key = "tokenizer.ggml.tokens";
  expect_io(byte_level(), key, Array(std::vector<std::string>{}), "empty");
  expect_io(byte_level(), key, Array(std::vector<float>(257)));
  expect_io(byte_level(), key, std::string("a"));
  VocabularyBuilder builder = all_bytes();
  builder.add("x");
  expect_error(builder.metadata("gpt2", "gpt-2"), ErrorCode::io, key, "120 and 256");
  builder.texts.back().clear();
  EXPECT_NO_THROW(Tokenizer{builder.metadata("gpt2", "gpt-2")});
  builder.add("");  // empty texts are never found, so they may repeat
  const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
  EXPECT_EQ(tokenizer.encode("x", kPlain), std::vector<TokenId>{'x'});
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{256, 257}), "");
}

TEST(MalformedVocabulary, Types) {
  const std::string key = "tokenizer.ggml.token_type";
  expect_io(byte_level(), key, Array(std::vector<std::int32_t>(256, 1)),
            "256 types for 257 tokens");
  expect_io(byte_level(), key, Array(std::vector<std::string>(257)));
  for (const int type : {-1, 7}) {
    std::vector<std::int32_t> types(257, 1);
    types[5] = type;
    expect_io(byte_level(), key, Array(types), "token 5");
  }
  VocabularyBuilder builder = sentencepiece_basics();
  for (const char* text : {"<0x4>", "<0xGG>", "<0x4G>", "A", "<0x041>", "<0x-1>", "<0x41 "}) {
    VocabularyBuilder broken = builder;
    broken.add(text, TokenType::byte);
    expect_error(broken.metadata("llama"), ErrorCode::io, "tokenizer.ggml.tokens", "token 259");
  }
}

TEST(MalformedVocabulary, Scores) {
  const std::string key = "tokenizer.ggml.scores";
  expect_io(sentencepiece(), key, Array(std::vector<float>(258)), "258 scores for 259 tokens");
  std::vector<float> scores(259);
  scores[7] = std::nanf("");
  expect_io(sentencepiece(), key, Array(scores), "token 7");
}

TEST(MalformedVocabulary, Merges) {
  const std::string key = "tokenizer.ggml.merges";
  const auto with = [&](const char* merge, const char* detail) {
    expect_io(byte_level(), key, Array(std::vector<std::string>{"a b", merge}), detail);
  };
  with("ab", "not two tokens");
  with("", "not two tokens");
  with(" a", "not two tokens");
  with("zz a", "\"zz\"");
  with("a zz", "\"zz\"");
  with("b a", "\"ba\"");
  with("a b c", "\"b c\"");
  with("a ", "\"\"");
  expect_io(byte_level(), key, Array(std::vector<std::int32_t>{1}));
  Metadata metadata = byte_level();
  metadata.set(key, Array(std::vector<std::string>{}));
  EXPECT_NO_THROW(Tokenizer{metadata});
}

TEST(MalformedVocabulary, Ids) {
  for (const char* name :
       {"bos", "eos", "eot", "eom", "unknown", "padding", "seperator", "mask", "cls", "fim_pre",
        "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"}) {
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    expect_io(byte_level(), key, std::uint32_t{257}, "257");
    expect_io(byte_level(), key, std::int32_t{-1}, "-1");
    expect_io(byte_level(), key, std::uint64_t{1} << 63);
    expect_io(byte_level(), key, std::string("1"));
    Metadata metadata = byte_level();
    metadata.set(key, std::uint32_t{256});
    EXPECT_NO_THROW(Tokenizer{metadata});
  }
}

TEST(MalformedVocabulary, Flags) {
  for (const char* key : {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"}) {
    expect_io(byte_level(), key, true, "names no");
    expect_io(byte_level(), key, std::string("yes"));
    Metadata metadata = byte_level();
    metadata.set(key, false);
    EXPECT_NO_THROW(Tokenizer{metadata});
  }
  expect_io(sentencepiece(), "tokenizer.ggml.add_space_prefix", 1.0f);
}

}  // namespace
}  // namespace heddle::test
