// What tests of constrained sampling share.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/grammar.h"
#include "heddle/tokenizer.h"

namespace heddle::test {

/// A vocabulary with its index.
struct Indexed {
  explicit Indexed(Tokenizer t)
      : tokenizer(std::move(t)), index(std::make_shared<VocabularyIndex>(tokenizer)) {}
  Tokenizer tokenizer;
  std::shared_ptr<const VocabularyIndex> index;
};

/// The 256 bytes, ids equal bytes, and 256, which ends a text.
const Indexed& bytes_vocabulary();
inline constexpr TokenId kBytesEnd = 256;
/// The bundled model's, and those of ../shared that are there.
std::vector<std::string> vocabulary_names();
const Indexed& vocabulary(const std::string& name);

/// Whether a grammar has this text, and whether it has one that begins with it.
bool has_text(const std::shared_ptr<const Grammar>& grammar, std::string_view text);
bool has_prefix(const std::shared_ptr<const Grammar>& grammar, std::string_view text);

/// FUZZ_ROUNDS from the environment, or `usual`.
int rounds_or(int usual);

using Random = std::mt19937_64;
inline std::size_t below(Random& random, std::size_t n) {
  return n == 0 ? 0 : random() % n;
}

/// The tokens that a mask leaves.
std::vector<TokenId> masked(GrammarMatcher& matcher, const Indexed& vocabulary);

/// Tokens drawn at random under the mask until an end token, with more and more weight on those
/// that close strings, lists and objects. Fails the test when `most` do not suffice.
std::string sample(const std::shared_ptr<const Grammar>& grammar, const Indexed& vocabulary,
                   Random& random, int most = 2000);

/// The message of the Error that `call` throws; fails the test if there is none.
std::string refusal(const std::function<void()>& call);

}  // namespace heddle::test
