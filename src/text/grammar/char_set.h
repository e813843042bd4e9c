// Sets of Unicode scalar values (code points without the surrogates, which UTF-8 cannot write).
#pragma once

#include <compare>
#include <vector>

namespace heddle::text::grammar {

struct CharRange {
  char32_t first, last;  // both in it
  auto operator<=>(const CharRange&) const = default;
};

class CharSet {
 public:
  CharSet() = default;
  explicit CharSet(char32_t one) : CharSet({{one, one}}) {}
  /// In any order; they may overlap. Surrogates are left out.
  explicit CharSet(std::vector<CharRange> ranges);

  static const CharSet& all();

  /// Sorted, with gaps between them.
  const std::vector<CharRange>& ranges() const noexcept { return ranges_; }
  bool empty() const noexcept { return ranges_.empty(); }
  bool contains(char32_t c) const noexcept;

  CharSet complement() const;
  friend CharSet operator&(const CharSet& a, const CharSet& b);
  friend CharSet operator|(const CharSet& a, const CharSet& b);
  friend CharSet operator-(const CharSet& a, const CharSet& b);
  auto operator<=>(const CharSet&) const = default;

 private:
  std::vector<CharRange> ranges_;
};

}  // namespace heddle::text::grammar
