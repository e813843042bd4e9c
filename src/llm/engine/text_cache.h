// Finished texts whose KV is kept, for those that begin in the same way.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heddle/llm.h"

namespace heddle::llm {

/// How many tokens two texts have in common at their beginning.
std::int64_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) noexcept;

/// Sequences of one context, the least lately used given up first. Not thread-safe.
class TextCache {
 public:
  /// Of up to `most` sequences of `context`.
  TextCache(Context& context, std::size_t most) : context_(context), most_(most) {}

  /// Takes over a sequence, whose positions hold the first of `tokens`. It is released at once if
  /// that is of no use.
  void keep(SequenceId sequence, std::vector<TokenId> tokens);

  struct Match {
    SequenceId sequence = -1;
    std::int64_t length = 0;  // tokens in common
  };
  /// The text that has most in common with `tokens`, and so has been used.
  Match find(std::span<const TokenId> tokens);

  /// Releases the least lately used; false if there is none.
  bool drop_oldest();
  void drop_if(const std::function<bool(SequenceId)>& is_gone);
  void clear();

  std::vector<SequenceId> sequences() const;
  std::size_t size() const noexcept { return texts_.size(); }

 private:
  struct Text {
    SequenceId sequence;
    std::vector<TokenId> tokens;
  };
  void drop(std::size_t index);

  Context& context_;
  std::size_t most_;
  std::vector<Text> texts_;  // the least lately used first
};

}  // namespace heddle::llm
