// Constrained sampling: a grammar says which texts may come out, a matcher which tokens may come
// next.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "heddle/tokenizer.h"

namespace heddle {

/// A set of texts. Immutable; any number of threads and matchers may share one. What matchers find
/// out about it is kept with the vocabulary's index for as long as the grammar lives, so it pays to
/// keep grammars that come back.
class Grammar {
 public:
  /// GBNF, as llama.cpp writes it: `name ::= alternatives`, one of the rules called root;
  /// "literals", [character classes], `.`, groups, `|`, `?`, `*`, `+`, `{m}`, `{m,}`, `{m,n}`, #
  /// comments, and the escapes \n \r \t \\ \" \[ \] \xNN \uNNNN \UNNNNNNNN. Left recursion is
  /// refused. Throws invalid_argument naming line and column, or the rule at fault.
  static std::shared_ptr<const Grammar> from_gbnf(std::string_view text);

  /// Every text is JSON that is valid under the schema, on one line, with at most one space after a
  /// comma or colon; not every valid document is such a text. Properties come in the order in which
  /// the schema gives them. An object with `properties` has others only where the schema says
  /// `additionalProperties`. Objects and arrays that the schema leaves open nest at most 32 deep.
  /// docs/grammars.md lists the keywords. Throws unsupported naming the JSON pointer of a keyword
  /// that cannot be enforced, invalid_argument for what is no schema or has no instance.
  static std::shared_ptr<const Grammar> from_json_schema(std::string_view schema);

  /// Any JSON object, in the same form. One object for all callers.
  static std::shared_ptr<const Grammar> json_object();

  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

 private:
  friend class GrammarMatcher;
  struct Impl;
  explicit Grammar(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

/// The bytes of a vocabulary's tokens, ready to be searched. Built once for a tokenizer, in some
/// tens of milliseconds, and shared; thread-safe. Keeps nothing of the tokenizer.
class VocabularyIndex {
 public:
  explicit VocabularyIndex(const Tokenizer& tokenizer);
  ~VocabularyIndex();
  VocabularyIndex(const VocabularyIndex&) = delete;
  VocabularyIndex& operator=(const VocabularyIndex&) = delete;

  std::size_t size() const noexcept;  // tokens

 private:
  friend class GrammarMatcher;
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// Where a text begins that a matcher follows.
enum class TextStart {
  after_prompt,  // its first space counts
  at_beginning,  // nothing came before: a SentencePiece vocabulary's first space is dropped
};

/// How far one text has come in a grammar. The end tokens of the vocabulary are allowed where the
/// text may end; control tokens, and tokens that add nothing to the text, never. A token may end
/// inside a character. Copyable; a copy goes its own way. Not thread-safe, but matchers of one
/// grammar may be used by different threads at once.
class GrammarMatcher {
 public:
  GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                 std::shared_ptr<const VocabularyIndex> vocabulary,
                 TextStart start = TextStart::after_prompt);
  ~GrammarMatcher();
  GrammarMatcher(const GrammarMatcher& other);
  GrammarMatcher& operator=(const GrammarMatcher& other);
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;

  /// Sets the logit of each token that may not come next to -inf, and leaves the others alone.
  /// Logits beyond the vocabulary become -inf too; fewer throw invalid_argument. Throws
  /// invalid_argument when the text has ended or no token of the vocabulary can continue it, and
  /// unsupported when the grammar can be read in too many ways at once here.
  void mask(std::span<float> logits);
  /// Whether `mask` would leave this one alone.
  bool allows(TokenId token);
  /// Throws invalid_argument if the token is not allowed; then nothing has changed.
  void accept(TokenId token);
  /// Whether the text is complete as it stands.
  bool may_end() const;
  /// Whether it is complete and nothing can follow: only an end token is left, or has come.
  bool must_end() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
