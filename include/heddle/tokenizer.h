// Text to token ids and back, from the vocabulary in a GGUF file's metadata.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

namespace gguf {
class Metadata;
}
struct TextPiece;  // chat_template.h

using TokenId = std::int32_t;

enum class TokenType : std::uint8_t {  // tokenizer.ggml.token_type
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

struct EncodeOptions {
  /// Add the beginning and end tokens that the vocabulary asks for.
  bool add_special = true;
  /// Let text such as "<|im_end|>" become the control token it names. Off for text from users.
  bool parse_special = false;
};

/// A vocabulary with its rules. Immutable; any number of threads may use one.
///
/// `tokenizer.ggml.model` = "llama": SentencePiece-style BPE by merge scores, with byte fallback.
/// "gpt2": byte-level BPE by merge ranks, after a split by the pattern that `tokenizer.ggml.pre`
/// names (llama-bpe, qwen2, gpt-2, starcoder, falcon, deepseek-llm, deepseek-coder, command-r,
/// refact, default, which is also what a missing name means). Others throw unsupported, with the
/// name. Malformed metadata (two tokens of one text, arrays of different lengths, ids out of range,
/// merges of what are not tokens, ...) throws io naming the key.
class Tokenizer {
 public:
  explicit Tokenizer(const gguf::Metadata& metadata);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Any bytes can be encoded, valid UTF-8 or not: an invalid byte becomes a byte token like any
  /// other (and counts as a control character when text is cut into words). What no token stands
  /// for becomes the unknown token, or nothing where there is none. User-defined tokens are found
  /// in the text first, and with `parse_special` control tokens too, the longest before shorter
  /// ones. Time is near linear in the length of the text, whatever it holds. A GiB or more at once
  /// throws invalid_argument.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// A rendered chat template. Control tokens are found in what the template itself says, and
  /// nowhere else: one that reaches into data is text like any other. Between special tokens, text
  /// is encoded as if it were one piece. `add_special` as in EncodeOptions; most templates write
  /// the beginning token themselves.
  std::vector<TokenId> encode_pieces(std::span<const TextPiece> pieces,
                                     bool add_special = false) const;

  /// The bytes of one token: what it adds to the text. Control tokens and the unknown token add
  /// nothing unless `show_special`, when they give their name. Ids out of range throw
  /// invalid_argument.
  std::string token_bytes(TokenId id, bool show_special = false) const;
  /// The text of `ids`: valid UTF-8, the same as a Detokenizer gives. The bytes themselves are
  /// `token_bytes`, one after the other.
  std::string decode(std::span<const TokenId> ids, bool show_special = false) const;

  std::size_t size() const noexcept;
  std::string_view token_text(TokenId id) const;  // as stored in the vocabulary
  TokenType type(TokenId id) const;
  std::optional<TokenId> find(std::string_view token_text) const noexcept;
  std::optional<TokenId> bos() const noexcept;
  std::optional<TokenId> eos() const noexcept;
  /// Whether generation ends at this token: eos, eot and the vocabulary's other ends of turn.
  bool is_end(TokenId id) const noexcept;
  /// Whether a text's first space is only a mark of where its first word begins, which a
  /// Detokenizer drops (SentencePiece with a space prefix).
  bool drops_first_space() const noexcept;

 private:
  friend class Detokenizer;
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// Turns a stream of tokens into text, giving out whole characters only. A SentencePiece
/// vocabulary's leading space is dropped at the beginning of the text. Not thread-safe.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool show_special = false);
  /// The text that became complete with this token; empty while a character is half there. Bytes
  /// that cannot become UTF-8 come out as U+FFFD.
  std::string add(TokenId id);
  /// What is left at the end: U+FFFD for an unfinished character, or nothing.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool show_special_;
  bool at_start_ = true;
  std::string pending_;
};

}  // namespace heddle
