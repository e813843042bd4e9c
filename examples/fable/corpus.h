// Fables as tokens.
#pragma once

#include <heddle/array.h>
#include <heddle/gguf.h>
#include <heddle/tokenizer.h>
#include <heddle/tokenizer_trainer.h>

#include <cstdint>
#include <string>

#include "grammar.h"

namespace fable {

inline constexpr const char* kEndOfText = "<|endoftext|>";
inline constexpr const char* kTurnBegin = "<|im_start|>";
inline constexpr const char* kTurnEnd = "<|im_end|>";

/// What fables are for: each purpose has its own, and none of the others'.
enum class Purpose : std::uint64_t { vocabulary, training, held_out };

/// The turns of a fable that was asked for, up to where the story begins, in ChatML.
std::string request_text(const Fable& fable);

/// The vocabulary that the fables of a seed give, and those fables. Immutable; any thread may use
/// one.
class Corpus {
 public:
  Corpus(std::uint64_t seed, int texts, int n_vocab);

  const heddle::BpeVocabulary& vocabulary() const { return vocabulary_; }
  /// What a GGUF file says of the vocabulary, with ids of special tokens and the chat template.
  const heddle::gguf::Metadata& metadata() const { return metadata_; }

  /// i32 [rows, length]: rows number first_row ... Each is a conversation, or stories one after the
  /// other, cut where the row is full.
  heddle::Array rows(Purpose purpose, std::int64_t first_row, int rows, int length) const;

 private:
  void append_row(Random random, std::size_t length, std::vector<heddle::TokenId>& ids) const;

  std::uint64_t seed_;
  heddle::BpeVocabulary vocabulary_;
  heddle::gguf::Metadata metadata_;
  heddle::Tokenizer tokenizer_;
};

}  // namespace fable
