#include "text/grammar/span_table.h"

#include <algorithm>

namespace heddle::text::grammar {
namespace {

std::uint64_t hash_of(std::span<const std::uint32_t> words) noexcept {
  std::uint64_t hash = words.size();
  for (const std::uint32_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

void SpanTable::clear() {
  words_.clear();
  begins_.assign(1, 0);
  slots_.assign(64, kEmpty);
}

std::uint32_t SpanTable::intern(std::span<const std::uint32_t> words) {
  std::size_t slot = locate(words);
  if (slots_[slot] != kEmpty) return slots_[slot];
  const auto id = static_cast<std::uint32_t>(size());
  words_.insert(words_.end(), words.begin(), words.end());
  begins_.push_back(words_.size());
  slots_[slot] = id;
  if (size() * 2 > slots_.size()) grow();
  return id;
}

std::size_t SpanTable::locate(std::span<const std::uint32_t> words) const noexcept {
  std::size_t slot = hash_of(words) & (slots_.size() - 1);
  while (slots_[slot] != kEmpty && !std::ranges::equal((*this)[slots_[slot]], words))
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void SpanTable::grow() {
  slots_.assign(slots_.size() * 2, kEmpty);
  for (std::uint32_t id = 0; id < size(); ++id) slots_[locate((*this)[id])] = id;
}

}  // namespace heddle::text::grammar
