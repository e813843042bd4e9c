// Cutting text at the tokens that are matched before any splitting or merging.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace heddle::text {

/// A stretch of the text as it is (`id` is kNoToken), or a special token.
struct Fragment {
  std::size_t begin, end;
  TokenId id;
};

/// Bytes [begin, end) of a text.
struct ByteRange {
  std::size_t begin, end;
};

/// A set of special tokens, ready to be found. Immutable.
class SpecialTokens {
 public:
  /// User-defined tokens, and with `parse_special` control and unknown tokens too. Keeps views of
  /// the vocabulary's texts.
  SpecialTokens(const Vocabulary& vocabulary, bool parse_special);

  /// Cuts `text`, which is not empty, into fragments. Where tokens overlap, the longest in the
  /// whole text goes first, the leftmost of equals. Only user-defined tokens may have bytes in
  /// `data`, which is in order. Time is linear in the length of the text.
  std::vector<Fragment> cut(std::string_view text, std::span<const ByteRange> data = {}) const;

 private:
  struct Token {
    std::string_view text;
    TokenId id;
    bool user_defined;
  };
  /// Where some token begins, and the length of the longest that does.
  struct Start {
    std::size_t at, longest;
  };
  struct Starts {
    std::vector<Start> starts;
    std::vector<std::size_t> lengths;  // of all tokens that were seen, longest first
  };

  Starts find_starts(std::string_view text) const;
  std::size_t longest_at(std::string_view text, std::vector<std::uint8_t>& length_seen) const;
  const Token* exactly(std::string_view text) const;
  std::vector<Fragment> cut_at_length(std::string_view text, const std::vector<Start>& starts,
                                      std::size_t length, std::span<const ByteRange> data,
                                      const std::vector<Fragment>& fragments) const;

  std::vector<Token> tokens_;  // sorted by text
  std::array<std::uint32_t, 257>
      first_byte_;  // tokens_[first_byte_[b], first_byte_[b + 1]) begin with b
  std::size_t max_length_ = 0;
  bool strip_after_;
  std::vector<TokenId> keep_after_;  // though strip_after_
};

}  // namespace heddle::text
