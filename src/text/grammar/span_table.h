// Numbers for sequences of words: equal sequences have one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::text::grammar {

class SpanTable {
 public:
  SpanTable() { clear(); }
  void clear();
  std::uint32_t intern(std::span<const std::uint32_t> words);
  /// Until the next `intern`.
  std::span<const std::uint32_t> operator[](std::uint32_t id) const noexcept {
    return std::span(words_).subspan(begins_[id], begins_[id + 1] - begins_[id]);
  }
  std::size_t size() const noexcept { return begins_.size() - 1; }
  std::size_t words() const noexcept { return words_.size(); }

 private:
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};
  std::size_t locate(std::span<const std::uint32_t> words) const noexcept;
  void grow();

  std::vector<std::uint32_t> words_;
  std::vector<std::size_t> begins_;
  std::vector<std::uint32_t> slots_;  // open addressing, at most half full
};

}  // namespace heddle::text::grammar
