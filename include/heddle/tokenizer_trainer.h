// Learning a vocabulary from texts: byte-level BPE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

namespace gguf {
class Metadata;
}

struct BpeOptions {
  /// Tokens in all: 256 bytes, what merges make, and special tokens. There are fewer where texts
  /// have no more pairs of neighbours that occur `min_count` times.
  std::size_t vocab_size = 0;
  std::uint64_t min_count = 2;
  /// Control tokens. They get the last ids, in this order. Where one stands in a text, that text is
  /// cut, the longest of those that begin at one place first.
  std::vector<std::string> special_tokens;
  /// The words that merges stay within: a name that `tokenizer.ggml.pre` may have.
  std::string pre = "qwen2";
};

/// A vocabulary as a GGUF file holds it: bytes are written as byte-level vocabularies write them.
struct BpeVocabulary {
  std::vector<std::string> tokens;  // ids 0 ... 255 are the bytes
  std::vector<std::string> merges;  // "left right", the first to be applied first
  std::size_t special_tokens = 0;   // the last so many tokens
  std::string pre;
};

/// Begins with bytes and merges, again and again, the pair of neighbouring tokens that is the most
/// frequent in the words of `texts`; of equally frequent ones that of the lowest left, then the
/// lowest right id. Texts may be any bytes, and empty. Needs memory for about fifty times the bytes
/// of all different words, and time near linear in those. Throws invalid_argument for a size that
/// has no room for bytes and special tokens, and for special tokens that are empty, twice there, or
/// read like the token of a byte; unsupported for an unknown `pre`.
BpeVocabulary train_bpe(std::span<const std::string> texts, const BpeOptions& options);

/// Writes what a Tokenizer reads of it: tokenizer.ggml.model, pre, tokens, token_type and merges.
void set_vocabulary(gguf::Metadata& metadata, const BpeVocabulary& vocabulary);

}  // namespace heddle
