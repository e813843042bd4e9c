// Small vocabularies, made by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/gguf.h"
#include "heddle/tokenizer.h"
#include "text/utf8.h"

namespace heddle::test {

/// How a byte is written in a byte-level vocabulary (GPT-2's bytes_to_unicode).
inline std::string byte_text(unsigned byte) {
  const auto printable = [](unsigned b) {
    return (b > 32 && b < 127) || (b > 160 && b < 256 && b != 173);
  };
  char32_t code_point = byte;
  if (!printable(byte)) {
    code_point = 256;
    for (unsigned b = 0; b < byte; ++b) code_point += !printable(b);
  }
  std::string text;
  text::append_utf8(text, code_point);
  return text;
}

inline std::string in_byte_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += byte_text(static_cast<unsigned char>(c));
  return text;
}

/// Tokens with their types and scores, on the way to becoming metadata.
struct VocabularyBuilder {
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;

  TokenId add(std::string text, TokenType type = TokenType::normal, float score = 0) {
    texts.push_back(std::move(text));
    types.push_back(static_cast<std::int32_t>(type));
    scores.push_back(score);
    return static_cast<TokenId>(texts.size() - 1);
  }

  /// Adds a merge of two byte strings, and the token it makes unless it is there.
  void merge(std::string_view left, std::string_view right) {
    merges.push_back(in_byte_text(left) + " " + in_byte_text(right));
    std::string whole = in_byte_text(left) + in_byte_text(right);
    for (const std::string& text : texts) {
      if (text == whole) return;
    }
    add(std::move(whole));
  }

  gguf::Metadata metadata(const std::string& model, const std::string& pre = {}) const {
    gguf::Metadata m;
    m.set("tokenizer.ggml.model", model);
    if (!pre.empty()) m.set("tokenizer.ggml.pre", pre);
    m.set("tokenizer.ggml.tokens", gguf::Array(texts));
    m.set("tokenizer.ggml.token_type", gguf::Array(types));
    if (model == "llama") m.set("tokenizer.ggml.scores", gguf::Array(scores));
    if (model == "gpt2") m.set("tokenizer.ggml.merges", gguf::Array(merges));
    return m;
  }
};

/// The 256 bytes; ids equal bytes.
inline VocabularyBuilder all_bytes() {
  VocabularyBuilder builder;
  for (unsigned b = 0; b < 256; ++b) builder.add(byte_text(b));
  return builder;
}

/// What every SentencePiece vocabulary begins with: <unk>, <s>, </s>, and the bytes from id 3 on.
inline VocabularyBuilder sentencepiece_basics() {
  VocabularyBuilder builder;
  builder.add("<unk>", TokenType::unknown);
  builder.add("<s>", TokenType::control);
  builder.add("</s>", TokenType::control);
  for (unsigned b = 0; b < 256; ++b) {
    constexpr char kHex[] = "0123456789ABCDEF";
    builder.add(std::string("<0x") + kHex[b >> 4] + kHex[b & 15] + ">", TokenType::byte);
  }
  return builder;
}

inline constexpr TokenId kByteZero = 3;  // in sentencepiece_basics

inline std::string concatenated_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer.token_bytes(id);
  return bytes;
}

inline constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};
inline constexpr EncodeOptions kParse = {.add_special = false, .parse_special = true};

}  // namespace heddle::test
