// Which tokens may come at a place in a grammar.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "text/grammar/parser.h"
#include "text/grammar/token_trie.h"

namespace heddle::text::grammar {

/// A bit for each token of a vocabulary.
class TokenSet {
 public:
  explicit TokenSet(std::size_t tokens) : words_((tokens + 63) / 64) {}
  void add(TokenId id) noexcept {
    words_[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
  }
  bool contains(TokenId id) const noexcept {
    return (words_[static_cast<std::size_t>(id) / 64] >> (id % 64) & 1) != 0;
  }
  void add(const TokenSet& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool empty() const noexcept;
  std::vector<TokenId> ids() const;
  const std::vector<std::uint64_t>& words() const noexcept { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

/// Calls `visit(node, state)` for the nodes in [first, last) of the trie, which have the same
/// prefix, that a text can go on with from `state`. `trail` is working memory.
template <class Visit>
void walk(const TokenTrie& trie, Parser& parser, StateId state, std::uint32_t first,
          std::uint32_t last, std::vector<StateId>& trail, const Visit& visit) {
  if (first == last) return;
  trail.resize(trie.max_depth() + std::size_t{1});
  trail[trie[first].depth - 1] = state;
  for (std::uint32_t i = first; i < last;) {
    const TokenTrie::Node node = trie[i];
    const StateId next = parser.step(trail[node.depth - 1], node.byte);
    if (next == kNoState) {
      i = node.end;
      continue;
    }
    visit(i, next);
    trail[node.depth] = next;
    // Where nothing can follow, the longer tokens need no look.
    i = parser.reads_on(next) ? i + 1 : node.end;
  }
}

/// What can come at one place while its rule lasts, whatever comes after it.
struct PlaceMask {
  std::unique_ptr<const TokenSet> many;  // tokens allowed, if they are many,
  std::vector<TokenId> few;              // or else
  /// Nodes of the trie, with others below, at whose end the rule may be complete: tokens that begin
  /// like this are allowed if what comes after the rule allows the rest.
  std::vector<std::uint32_t> leaving;

  std::size_t bytes() const noexcept;
};

/// The masks of one grammar's places over one vocabulary, made when they are first wanted.
/// Thread-safe. Takes up to 64 MiB and a mask.
class PlaceMasks {
 public:
  PlaceMasks(const Automaton& automaton, const TokenTrie& trie) : trie_(trie), parser_(automaton) {}
  std::shared_ptr<const PlaceMask> at(const Place& place);

 private:
  std::shared_ptr<const PlaceMask> make(const Place& place);

  const TokenTrie& trie_;
  std::mutex mutex_;
  Parser parser_;
  std::vector<StateId> trail_;
  std::map<std::pair<NodeId, PartId>, std::shared_ptr<const PlaceMask>> masks_;
  std::size_t bytes_ = 0;
};

}  // namespace heddle::text::grammar
