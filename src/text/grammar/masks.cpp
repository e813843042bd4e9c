#include "text/grammar/masks.h"

#include <algorithm>

namespace heddle::text::grammar {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
/// The parser's states serve the masks of neighbouring places too.
constexpr std::size_t kKeptStates = 20'000;

}  // namespace

bool TokenSet::empty() const noexcept {
  return std::all_of(words_.begin(), words_.end(), [](std::uint64_t w) { return w == 0; });
}

std::size_t PlaceMask::bytes() const noexcept {
  return sizeof(*this) + (many ? many->words().size() * sizeof(std::uint64_t) : 0) +
         (few.size() + leaving.size()) * sizeof(std::uint32_t);
}

std::shared_ptr<const PlaceMask> PlaceMasks::at(const Place& place) {
  const std::lock_guard lock(mutex_);
  const auto known = masks_.find({place.node, place.part});
  if (known != masks_.end()) return known->second;
  std::shared_ptr<const PlaceMask> mask = make(place);
  if (bytes_ > kMostBytes) {
    masks_.clear();
    bytes_ = 0;
  }
  bytes_ += mask->bytes();
  masks_.emplace(std::pair(place.node, place.part), mask);
  return mask;
}

std::shared_ptr<const PlaceMask> PlaceMasks::make(const Place& place) {
  if (parser_.state_count() > kKeptStates) parser_.clear();
  auto mask = std::make_shared<PlaceMask>();
  parser_.begin_work();
  const StateId inside = parser_.inside(place.node, place.part);
  const auto end = static_cast<std::uint32_t>(trie_.size());
  walk(trie_, parser_, inside, 0, end, trail_, [&](std::uint32_t node, StateId state) {
    const auto tokens = trie_.tokens(node);
    mask->few.insert(mask->few.end(), tokens.begin(), tokens.end());
    if (parser_.leaves(state) && trie_[node].end > node + 1) mask->leaving.push_back(node);
  });
  if (mask->few.size() <= trie_.vocabulary_size() / 32) return mask;
  auto many = std::make_unique<TokenSet>(trie_.vocabulary_size());
  for (const TokenId id : mask->few) many->add(id);
  mask->many = std::move(many);
  mask->few = {};
  return mask;
}

}  // namespace heddle::text::grammar
