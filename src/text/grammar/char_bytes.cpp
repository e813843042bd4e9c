#include "text/grammar/char_bytes.h"

#include <algorithm>

namespace heddle::text::grammar {
namespace {

/// The part of sorted `ranges` within [first, last], counted from `first`.
std::vector<CharRange> within(std::span<const CharRange> ranges, char32_t first, char32_t last) {
  auto at = std::lower_bound(ranges.begin(), ranges.end(), first,
                             [](const CharRange& r, char32_t c) { return r.last < c; });
  std::vector<CharRange> found;
  for (; at != ranges.end() && at->first <= last; ++at)
    found.push_back({std::max(at->first, first) - first, std::min(at->last, last) - first});
  return found;
}

/// The lead bytes of characters of one length (Unicode 15, table 3-6).
struct Leads {
  std::uint32_t first, last;
  int bytes_left;
  char32_t lowest;  // the lowest character that needs this length
};
constexpr Leads kLeads[] = {
    {0xC0, 0xDF, 1, 0x80}, {0xE0, 0xEF, 2, 0x800}, {0xF0, 0xF4, 3, 0x10000}};

}  // namespace

PartId CharBytes::add(const CharSet& chars) {
  const auto known = by_set_.find(chars);
  if (known != by_set_.end()) return known->second;
  Part start;
  for (const CharRange& r : within(chars.ranges(), 0, 0x7F))
    start.push_back(
        {static_cast<std::uint8_t>(r.first), static_cast<std::uint8_t>(r.last), kPartDone});
  for (const Leads& leads : kLeads) {
    const CharSet encoded = chars & CharSet({{leads.lowest, 0x10FFFF}});
    const int bits = 6 * leads.bytes_left;
    for (std::uint32_t lead = leads.first; lead <= leads.last; ++lead) {
      const char32_t base = static_cast<char32_t>(lead - leads.first) << bits;
      const auto ranges = within(encoded.ranges(), base, base + (char32_t{1} << bits) - 1);
      if (!ranges.empty()) append(start, lead, continuation(ranges, leads.bytes_left));
    }
  }
  const PartId id = intern(std::move(start));
  by_set_.emplace(chars, id);
  return id;
}

/// Shared by most sets, and most of the work for each of them otherwise.
PartId CharBytes::any_continuation(int bytes_left) {
  PartId& any = any_[static_cast<std::size_t>(bytes_left)];
  if (any == kPartNone)
    any = intern({{0x80, 0xBF, bytes_left == 1 ? kPartDone : any_continuation(bytes_left - 1)}});
  return any;
}

PartId CharBytes::continuation(std::span<const CharRange> ranges, int bytes_left) {
  const CharRange whole{0, (char32_t{1} << 6 * bytes_left) - 1};
  if (ranges.size() == 1 && ranges.front() == whole) return any_continuation(bytes_left);
  Part part;
  const int bits = 6 * (bytes_left - 1);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const char32_t base = static_cast<char32_t>(i) << bits;
    const auto inner = within(ranges, base, base + (char32_t{1} << bits) - 1);
    if (inner.empty()) continue;
    append(part, 0x80 + i, bytes_left == 1 ? kPartDone : continuation(inner, bytes_left - 1));
  }
  return intern(std::move(part));
}

void CharBytes::append(Part& part, std::uint32_t byte, PartId next) {
  const auto b = static_cast<std::uint8_t>(byte);
  if (!part.empty() && part.back().next == next && part.back().last + 1 == b) {
    part.back().last = b;
  } else {
    part.push_back({b, b, next});
  }
}

PartId CharBytes::intern(Part part) {
  std::vector<std::uint64_t> key;
  for (const Edge& e : part)
    key.push_back(std::uint64_t{e.next} << 16 | std::uint64_t{e.first} << 8 | e.last);
  const auto [at, is_new] = by_edges_.emplace(std::move(key), static_cast<PartId>(parts_.size()));
  if (is_new) parts_.push_back(std::move(part));
  return at->second;
}

PartId CharBytes::next(PartId part, std::uint8_t byte) const noexcept {
  for (const Edge& e : parts_[part]) {
    if (byte < e.first) break;
    if (byte <= e.last) return e.next;
  }
  return kPartNone;
}

CharBytes::ByteClasses CharBytes::byte_classes() const {
  std::array<bool, 257> begins{};
  for (const Part& part : parts_) {
    for (const Edge& e : part) begins[e.first] = begins[e.last + 1u] = true;
  }
  ByteClasses classes{};
  std::uint32_t current = 0;
  for (std::size_t b = 0; b < 256; ++b) {
    if (b > 0 && begins[b]) ++current;
    classes.of[b] = static_cast<std::uint8_t>(current);
  }
  classes.count = current + 1;
  return classes;
}

}  // namespace heddle::text::grammar
