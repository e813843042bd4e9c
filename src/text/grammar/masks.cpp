#include "text/grammar/masks.h"

#include <algorithm>
#include <bit>

namespace heddle::text::grammar {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
/// The parser's states serve the masks of neighbouring places too. 8 MiB.
constexpr std::size_t kKeptWords = std::size_t{1} << 21;

}  // namespace

bool TokenSet::empty() const noexcept {
  return std::all_of(words_.begin(), words_.end(), [](std::uint64_t w) { return w == 0; });
}

std::vector<TokenId> TokenSet::ids() const {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    for (std::uint64_t word = words_[i]; word != 0; word &= word - 1)
      ids.push_back(
          static_cast<TokenId>(i * 64 + static_cast<std::size_t>(std::countr_zero(word))));
  }
  return ids;
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
  if (parser_.size_in_words() > kKeptWords) parser_.clear();
  auto mask = std::make_shared<PlaceMask>();
  parser_.begin_work();
  const StateId inside = parser_.inside(place.node, place.part);
  const auto end = static_cast<std::uint32_t>(trie_.size());
  auto many = std::make_unique<TokenSet>(trie_.vocabulary_size());
  std::size_t count = 0;
  walk(trie_, parser_, inside, 0, end, trail_, [&](std::uint32_t node, StateId state) {
    const auto tokens = trie_.tokens(node);
    for (const TokenId id : tokens) many->add(id);
    count += tokens.size();
    if (parser_.leaves(state) && trie_[node].end > node + 1) mask->leaving.push_back(node);
  });
  if (count <= trie_.vocabulary_size() / 32) {
    mask->few = many->ids();
  } else {
    mask->many = std::move(many);
  }
  return mask;
}

}  // namespace heddle::text::grammar
