// Many short texts, and finding one among them.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tokenizer.h"

namespace heddle::text {

inline constexpr TokenId kNoToken = -1;

/// Texts end to end in one piece of memory: a std::string each would take several times as much. At
/// most 4 GiB of them.
class Texts {
 public:
  void reserve(std::size_t count, std::size_t bytes) {
    ends_.reserve(count);
    all_.reserve(bytes);
  }
  void push_back(std::string_view text) {
    all_ += text;
    ends_.push_back(static_cast<std::uint32_t>(all_.size()));
  }
  std::size_t size() const noexcept { return ends_.size(); }
  std::string_view operator[](std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(all_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string all_;
  std::vector<std::uint32_t> ends_;
};

/// Ids by text. Open addressing, at most three quarters full; the texts lie elsewhere.
class TextIndex {
 public:
  TextIndex() = default;
  explicit TextIndex(std::size_t count) : slots_(std::bit_ceil(count + count / 3 + 1), kNoToken) {}

  /// Adds an id, or returns the one that has its text already.
  std::optional<TokenId> add(TokenId id, const Texts& texts) noexcept {
    TokenId& slot = slots_[locate(texts[static_cast<std::size_t>(id)], texts)];
    if (slot != kNoToken) return slot;
    slot = id;
    return std::nullopt;
  }
  std::optional<TokenId> find(std::string_view text, const Texts& texts) const noexcept {
    const TokenId id = slots_[locate(text, texts)];
    return id == kNoToken ? std::nullopt : std::optional(id);
  }

 private:
  std::size_t locate(std::string_view text, const Texts& texts) const noexcept {
    std::size_t i = std::hash<std::string_view>()(text) & (slots_.size() - 1);
    while (slots_[i] != kNoToken && texts[static_cast<std::size_t>(slots_[i])] != text) {
      i = (i + 1) & (slots_.size() - 1);
    }
    return i;
  }

  std::vector<TokenId> slots_ = {kNoToken};
};

}  // namespace heddle::text
