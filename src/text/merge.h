// Merging neighbouring symbols, best pair first: the heart of both kinds of BPE.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "heddle/tokenizer.h"
#include "text/texts.h"

namespace heddle::text {

inline constexpr std::uint32_t kNoSymbol = ~std::uint32_t{0};

/// A stretch of the text in a doubly linked list. One that was merged into its left neighbour has
/// length 0.
struct Symbol {
  TokenId id;  // kNoToken: no token reads like this
  std::uint32_t begin, length;
  std::uint32_t previous, next;
};

/// What two neighbours become. The lowest order in the text goes first, the leftmost of equals.
struct Merge {
  double order;
  TokenId id;
};

class Merger {
 public:
  void clear() {
    symbols_.clear();
    queue_.clear();
  }

  void add_symbol(TokenId id, std::uint32_t begin, std::uint32_t length) {
    const auto index = static_cast<std::uint32_t>(symbols_.size());
    if (index > 0) symbols_[index - 1].next = index;
    symbols_.push_back({id, begin, length, index == 0 ? kNoSymbol : index - 1, kNoSymbol});
  }

  /// Merges until `find(left, right)`, which gives an optional Merge of two symbols, has no more.
  /// Returns the number of candidates that were looked at, which is at most three times the number
  /// of symbols.
  template <class Find>
  std::size_t run(const Find& find);

  template <class Visit>
  void for_each(const Visit& visit) const {
    if (symbols_.empty()) return;
    for (std::uint32_t i = 0; i != kNoSymbol; i = symbols_[i].next) visit(symbols_[i]);
  }

 private:
  struct Candidate {
    double order;
    std::uint32_t left, right, length;
    TokenId id;
    /// For a heap whose top is the best.
    friend bool operator<(const Candidate& a, const Candidate& b) noexcept {
      return a.order > b.order || (a.order == b.order && a.left > b.left);
    }
  };

  template <class Find>
  bool consider(std::uint32_t left, std::uint32_t right, const Find& find) {
    if (left == kNoSymbol || right == kNoSymbol) return false;
    const Symbol &a = symbols_[left], &b = symbols_[right];
    const std::optional<Merge> merge = find(a, b);
    if (merge) queue_.push_back({merge->order, left, right, a.length + b.length, merge->id});
    return merge.has_value();
  }

  /// A symbol only ever grows to the right, so equal lengths mean that neither has changed.
  bool is_current(const Candidate& c) const noexcept {
    const Symbol &left = symbols_[c.left], &right = symbols_[c.right];
    return left.length != 0 && right.length != 0 && left.length + right.length == c.length;
  }

  void apply(const Candidate& c) noexcept {
    Symbol &left = symbols_[c.left], &right = symbols_[c.right];
    left.id = c.id;
    left.length = c.length;
    left.next = right.next;
    right.length = 0;
    if (right.next != kNoSymbol) symbols_[right.next].previous = c.left;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;
};

template <class Find>
std::size_t Merger::run(const Find& find) {
  for (std::size_t i = 1; i < symbols_.size(); ++i) {
    consider(static_cast<std::uint32_t>(i - 1), static_cast<std::uint32_t>(i), find);
  }
  std::make_heap(queue_.begin(), queue_.end());
  std::size_t looked_at = 0;
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const Candidate best = queue_.back();
    queue_.pop_back();
    ++looked_at;
    if (!is_current(best)) continue;
    apply(best);
    const Symbol merged = symbols_[best.left];
    if (consider(merged.previous, best.left, find)) std::push_heap(queue_.begin(), queue_.end());
    if (consider(best.left, merged.next, find)) std::push_heap(queue_.begin(), queue_.end());
  }
  return looked_at;
}

}  // namespace heddle::text
