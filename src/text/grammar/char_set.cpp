#include "text/grammar/char_set.h"

#include <algorithm>

namespace heddle::text::grammar {
namespace {

constexpr char32_t kBeforeSurrogates = 0xD7FF, kAfterSurrogates = 0xE000;
constexpr char32_t kLast = 0x10FFFF;

}  // namespace

CharSet::CharSet(std::vector<CharRange> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<CharRange> joined;
  for (const CharRange& r : ranges) {
    if (!joined.empty() && r.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, r.last);
    } else {
      joined.push_back(r);
    }
  }
  for (const CharRange& r : joined) {
    if (r.first <= kBeforeSurrogates)
      ranges_.push_back({r.first, std::min(r.last, kBeforeSurrogates)});
    if (r.last >= kAfterSurrogates)
      ranges_.push_back({std::max(r.first, kAfterSurrogates), r.last});
  }
}

const CharSet& CharSet::all() {
  static const CharSet set({{0, kLast}});
  return set;
}

bool CharSet::contains(char32_t c) const noexcept {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                      [](char32_t x, const CharRange& r) { return x < r.first; });
  return after != ranges_.begin() && c <= std::prev(after)->last;
}

CharSet CharSet::complement() const {
  std::vector<CharRange> gaps;
  char32_t next = 0;
  for (const CharRange& r : ranges_) {
    if (r.first > next) gaps.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLast) gaps.push_back({next, kLast});
  return CharSet(std::move(gaps));
}

CharSet operator&(const CharSet& a, const CharSet& b) {
  std::vector<CharRange> common;
  for (auto i = a.ranges_.begin(), j = b.ranges_.begin();
       i != a.ranges_.end() && j != b.ranges_.end();) {
    const CharRange r{std::max(i->first, j->first), std::min(i->last, j->last)};
    if (r.first <= r.last) common.push_back(r);
    if (i->last < j->last) {
      ++i;
    } else {
      ++j;
    }
  }
  return CharSet(std::move(common));
}

CharSet operator|(const CharSet& a, const CharSet& b) {
  std::vector<CharRange> ranges = a.ranges_;
  ranges.insert(ranges.end(), b.ranges_.begin(), b.ranges_.end());
  return CharSet(std::move(ranges));
}

CharSet operator-(const CharSet& a, const CharSet& b) {
  return a & b.complement();
}

}  // namespace heddle::text::grammar
