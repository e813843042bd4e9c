#include "text/special_tokens.h"

#include <algorithm>

#include "text/merge.h"

namespace heddle::text {
namespace {

bool is_space(char c) noexcept {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::uint8_t byte_at(std::string_view text, std::size_t i) noexcept {
  return static_cast<std::uint8_t>(text[i]);
}

bool touches(std::span<const ByteRange> ranges, std::size_t begin, std::size_t end) noexcept {
  const auto after = std::partition_point(ranges.begin(), ranges.end(),
                                          [&](const ByteRange& r) { return r.end <= begin; });
  return after != ranges.end() && after->begin < end;
}

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary, bool parse_special)
    : strip_after_(vocabulary.strip_after_special) {
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const TokenType type = vocabulary.types[i];
    const bool wanted =
        type == TokenType::user_defined ||
        (parse_special && (type == TokenType::control || type == TokenType::unknown));
    if (!wanted || vocabulary.texts[i].empty()) continue;
    tokens_.push_back(
        {vocabulary.texts[i], static_cast<TokenId>(i), type == TokenType::user_defined});
    max_length_ = std::max(max_length_, vocabulary.texts[i].size());
  }
  std::sort(tokens_.begin(), tokens_.end(),
            [](const Token& a, const Token& b) { return a.text < b.text; });
  std::size_t i = 0;
  for (std::size_t byte = 0; byte <= 256; ++byte) {
    while (i < tokens_.size() && byte_at(tokens_[i].text, 0) < byte) ++i;
    first_byte_[byte] = static_cast<std::uint32_t>(i);
  }
  // Phi-3's three tokens without "rstrip" in its tokenizer.json.
  for (const char* text : {"<unk>", "<s>", "<|endoftext|>"}) {
    if (const auto id = vocabulary.find(text)) keep_after_.push_back(*id);
  }
}

/// Walks the sorted tokens byte by byte, narrowing the range of those that still agree, and marks
/// in `length_seen` the length of each token that `text` begins with.
std::size_t SpecialTokens::longest_at(std::string_view text,
                                      std::vector<std::uint8_t>& length_seen) const {
  const std::uint8_t first = byte_at(text, 0);
  auto low = tokens_.begin() + first_byte_[first];
  auto high = tokens_.begin() + first_byte_[first + 1u];
  std::size_t longest = 0;
  for (std::size_t depth = 1; low != high; ++depth) {
    if (low->text.size() == depth) {
      length_seen[depth] = 1;
      longest = depth;
      if (++low == high) break;
    }
    if (depth == text.size()) break;
    const std::uint8_t byte = byte_at(text, depth);
    low = std::partition_point(low, high,
                               [&](const Token& t) { return byte_at(t.text, depth) < byte; });
    high = std::partition_point(low, high,
                                [&](const Token& t) { return byte_at(t.text, depth) <= byte; });
  }
  return longest;
}

SpecialTokens::Starts SpecialTokens::find_starts(std::string_view text) const {
  Starts found;
  std::vector<std::uint8_t> length_seen(max_length_ + 1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint8_t first = byte_at(text, i);
    if (first_byte_[first] == first_byte_[first + 1u]) continue;
    const std::size_t longest = longest_at(text.substr(i), length_seen);
    if (longest > 0) found.starts.push_back({i, longest});
  }
  for (std::size_t length = max_length_; length > 0; --length) {
    if (length_seen[length]) found.lengths.push_back(length);
  }
  return found;
}

const SpecialTokens::Token* SpecialTokens::exactly(std::string_view text) const {
  const auto at = std::lower_bound(tokens_.begin(), tokens_.end(), text,
                                   [](const Token& t, std::string_view s) { return t.text < s; });
  return at != tokens_.end() && at->text == text ? &*at : nullptr;
}

std::vector<Fragment> SpecialTokens::cut_at_length(std::string_view text,
                                                   const std::vector<Start>& starts,
                                                   std::size_t length,
                                                   std::span<const ByteRange> data,
                                                   const std::vector<Fragment>& fragments) const {
  std::vector<Fragment> finer;
  finer.reserve(fragments.size());
  auto start = starts.begin();
  for (Fragment fragment : fragments) {
    if (fragment.id != kNoToken) {
      finer.push_back(fragment);
      continue;
    }
    for (; start != starts.end() && start->at < fragment.end; ++start) {
      if (start->at < fragment.begin || start->longest < length) continue;
      const std::size_t end = start->at + length;
      if (end > fragment.end) continue;
      const Token* token = exactly(text.substr(start->at, length));
      if (token == nullptr || (!token->user_defined && touches(data, start->at, end))) continue;
      const TokenId id = token->id;
      if (start->at > fragment.begin) finer.push_back({fragment.begin, start->at, kNoToken});
      finer.push_back({start->at, end, id});
      fragment.begin = end;
      const bool keep = std::find(keep_after_.begin(), keep_after_.end(), id) != keep_after_.end();
      if (!strip_after_ || keep) continue;
      while (fragment.begin < fragment.end && is_space(text[fragment.begin])) ++fragment.begin;
    }
    if (fragment.begin < fragment.end) finer.push_back(fragment);
  }
  return finer;
}

std::vector<Fragment> SpecialTokens::cut(std::string_view text,
                                         std::span<const ByteRange> data) const {
  std::vector<Fragment> fragments = {{0, text.size(), kNoToken}};
  if (tokens_.empty()) return fragments;
  const Starts found = find_starts(text);
  for (const std::size_t length : found.lengths) {
    fragments = cut_at_length(text, found.starts, length, data, fragments);
  }
  return fragments;
}

}  // namespace heddle::text
