// The first step of byte-level BPE: cutting text into words, by regular expressions that each model
// family was trained with.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::gguf {
class Metadata;
}

namespace heddle::text {

/// What a name in `tokenizer.ggml.pre` stands for.
struct PretokenizerRules {
  std::span<const std::string_view> names;
  /// Applied in turn, each to the pieces that the one before left. What a pattern matches is a
  /// piece, and so is what lies between two matches.
  std::span<const std::string_view> patterns;
  bool whole_words = false;  // a word that is a token is taken as it is, whatever the merges say
  bool add_bos = false;
};

/// Throws unsupported, listing the names there are, when `name` is none of them.
const PretokenizerRules& pretokenizer_rules(std::string_view name);
/// Of the name in `tokenizer.ggml.pre`, or of "default".
const PretokenizerRules& pretokenizer_rules(const gguf::Metadata& metadata);

/// Immutable; any number of threads may use one.
class Pretokenizer {
 public:
  enum class Engine { fastest, interpreter };

  explicit Pretokenizer(const PretokenizerRules& rules, Engine engine = Engine::fastest);
  ~Pretokenizer();
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;

  /// The pieces of `text`, in order and without a gap. A byte that is not part of valid UTF-8
  /// counts as a control character. Time is linear in the length of the text.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Pattern;
  std::vector<Pattern> patterns_;
};

}  // namespace heddle::text
