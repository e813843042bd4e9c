#include "llm/engine/text_cache.h"

#include <algorithm>

namespace heddle::llm {

std::int64_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) noexcept {
  const std::size_t most = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first -
         a.begin();
}

void TextCache::keep(SequenceId sequence, std::vector<TokenId> tokens) {
  tokens.resize(static_cast<std::size_t>(context_.length(sequence)));
  const auto held_by = [&](const Text& longer, std::span<const TokenId> text) {
    return common_prefix(longer.tokens, text) == static_cast<std::int64_t>(text.size());
  };
  const auto longer =
      std::ranges::find_if(texts_, [&](const Text& t) { return held_by(t, tokens); });
  if (most_ == 0 || tokens.empty() || longer != texts_.end()) {
    if (longer != texts_.end()) std::rotate(longer, longer + 1, texts_.end());
    return context_.release(sequence);
  }
  const Text text{sequence, std::move(tokens)};
  for (std::size_t i = texts_.size(); i-- > 0;) {
    if (held_by(text, texts_[i].tokens)) drop(i);
  }
  if (texts_.size() == most_) drop(0);
  texts_.push_back(text);
}

TextCache::Match TextCache::find(std::span<const TokenId> tokens) {
  Match best;
  auto at = texts_.end();
  for (auto text = texts_.begin(); text != texts_.end(); ++text) {
    const std::int64_t length = common_prefix(text->tokens, tokens);
    if (length <= best.length) continue;
    best = {text->sequence, length};
    at = text;
  }
  if (at != texts_.end()) std::rotate(at, at + 1, texts_.end());
  return best;
}

bool TextCache::drop_oldest() {
  if (texts_.empty()) return false;
  drop(0);
  return true;
}

void TextCache::drop_if(const std::function<bool(SequenceId)>& is_gone) {
  for (std::size_t i = texts_.size(); i-- > 0;) {
    if (is_gone(texts_[i].sequence)) drop(i);
  }
}

void TextCache::clear() {
  while (drop_oldest()) {
  }
}

std::vector<SequenceId> TextCache::sequences() const {
  std::vector<SequenceId> all;
  for (const Text& text : texts_) all.push_back(text.sequence);
  return all;
}

void TextCache::drop(std::size_t index) {
  context_.release(texts_[index].sequence);
  texts_.erase(texts_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace heddle::llm
