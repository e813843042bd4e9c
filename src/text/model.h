// The two ways in which ordinary text becomes tokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tokenizer.h"

namespace heddle::gguf {
class Metadata;
}

namespace heddle::text {

struct Vocabulary;

/// Immutable; keeps a reference to the vocabulary.
class Model {
 public:
  virtual ~Model() = default;
  /// Appends the tokens of `text`, in which no special token is left. `after_special`: it begins
  /// the whole text, or follows a special token.
  virtual void encode(std::string_view text, bool after_special,
                      std::vector<TokenId>& ids) const = 0;
  /// The bytes of a token that ordinary text may become.
  virtual std::string bytes(TokenId id) const = 0;
};

std::unique_ptr<Model> make_sentencepiece(const Vocabulary& vocabulary);
std::unique_ptr<Model> make_byte_level(const Vocabulary& vocabulary,
                                       const gguf::Metadata& metadata);

}  // namespace heddle::text
