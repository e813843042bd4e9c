#include "text/grammar/token_trie.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace heddle::text::grammar {

TokenTrie::TokenTrie(const Tokenizer& tokenizer)
    : drops_first_space_(tokenizer.drops_first_space()) {
  begins_.push_back(0);
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (tokenizer.is_end(id)) {
      ends_.push_back(id);
    } else if (tokenizer.type(id) != TokenType::control) {
      bytes_ += tokenizer.token_bytes(id);
    }
    begins_.push_back(bytes_.size());
    if (begins_[i] < begins_[i + 1]) ordered_.push_back(id);
  }
  require(bytes_.size() < std::numeric_limits<std::uint32_t>::max(), ErrorCode::unsupported,
          "the tokens have {} bytes in all, more than grammars can be matched with", bytes_.size());
  std::sort(ordered_.begin(), ordered_.end(), [&](TokenId a, TokenId b) {
    const int order = bytes(a).compare(bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
  add_nodes();
}

void TokenTrie::add_nodes() {
  std::vector<std::uint32_t> path;  // the nodes of the last token's bytes
  std::string_view last;
  for (std::uint32_t i = 0; i < ordered_.size(); ++i) {
    const std::string_view token = bytes(ordered_[i]);
    const auto shared = static_cast<std::size_t>(
        std::mismatch(last.begin(), last.end(), token.begin(), token.end()).first - last.begin());
    for (; path.size() > shared; path.pop_back())
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
    while (path.size() < token.size()) {
      const auto byte = static_cast<std::uint8_t>(token[path.size()]);
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({0, i, static_cast<std::uint32_t>(path.size()), byte});
    }
    max_depth_ = std::max(max_depth_, static_cast<std::uint32_t>(token.size()));
    last = token;
  }
  const auto end = static_cast<std::uint32_t>(nodes_.size());
  for (const std::uint32_t node : path) nodes_[node].end = end;
  nodes_.push_back({end + 1, static_cast<std::uint32_t>(ordered_.size()), 0, 0});
}

bool TokenTrie::is_end(TokenId id) const noexcept {
  return std::binary_search(ends_.begin(), ends_.end(), id);
}

}  // namespace heddle::text::grammar
