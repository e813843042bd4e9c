// What `tokenizer.ggml.*` says, checked: the tokens, their types, and the ids with a role.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tokenizer.h"
#include "text/texts.h"

namespace heddle::text {

enum class VocabularyKind : std::uint8_t { sentencepiece, byte_level };

struct Vocabulary {
  VocabularyKind kind;
  Texts texts;
  std::vector<TokenType> types;
  std::vector<float> scores;  // sentencepiece only
  TextIndex by_text;          // empty texts are not in it
  std::optional<TokenId> bos, eos, unknown;
  std::vector<TokenId> ends;  // sorted
  bool add_bos, add_eos;
  bool add_space_prefix;  // sentencepiece only
  /// Special tokens swallow the white space after them. Which models want that is not in the
  /// metadata but known by their name.
  bool strip_after_special;

  std::size_t size() const noexcept { return texts.size(); }
  TokenType type(TokenId id) const noexcept { return types[static_cast<std::size_t>(id)]; }
  std::string_view text(TokenId id) const noexcept { return texts[static_cast<std::size_t>(id)]; }
  std::optional<TokenId> find(std::string_view text) const noexcept;
  /// Whether ordinary text may become this token. Control tokens come from `parse_special` alone,
  /// so that nobody can write one by writing its name.
  bool is_ordinary(TokenId id) const noexcept {
    return type(id) == TokenType::normal || type(id) == TokenType::user_defined ||
           type(id) == TokenType::unused;
  }
};

/// Throws Error(io) naming the key at fault; unsupported for a `tokenizer.ggml.model` that is
/// neither "llama" nor "gpt2".
Vocabulary read_vocabulary(const gguf::Metadata& metadata);

}  // namespace heddle::text
