// A vocabulary's tokens by their bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tokenizer.h"

namespace heddle::text::grammar {

/// The tokens that may be part of a text: those that add bytes to it and do not end it. Nodes are
/// in the order of their bytes, each before what it is a prefix of. Immutable.
class TokenTrie {
 public:
  struct Node {
    std::uint32_t end;          // one past the last node that begins with these bytes
    std::uint32_t first_token;  // in `ordered`; those of the node end where the next node's begin
    std::uint32_t depth;        // bytes
    std::uint8_t byte;          // the last of them
  };

  explicit TokenTrie(const Tokenizer& tokenizer);

  std::size_t size() const noexcept { return nodes_.size() - 1; }
  const Node& operator[](std::uint32_t node) const noexcept { return nodes_[node]; }
  std::span<const TokenId> tokens(std::uint32_t node) const noexcept {
    const std::uint32_t first = nodes_[node].first_token;
    return std::span(ordered_).subspan(first, nodes_[node + 1].first_token - first);
  }
  std::uint32_t max_depth() const noexcept { return max_depth_; }

  std::size_t vocabulary_size() const noexcept { return begins_.size() - 1; }
  /// Empty for tokens that are not in the trie.
  std::string_view bytes(TokenId id) const noexcept {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(bytes_).substr(begins_[i], begins_[i + 1] - begins_[i]);
  }
  std::span<const TokenId> ends() const noexcept { return ends_; }
  bool is_end(TokenId id) const noexcept;
  bool drops_first_space() const noexcept { return drops_first_space_; }

 private:
  void add_nodes();

  std::string bytes_;
  std::vector<std::size_t> begins_;
  std::vector<TokenId> ordered_, ends_;
  std::vector<Node> nodes_;
  std::uint32_t max_depth_ = 0;
  bool drops_first_space_;
};

}  // namespace heddle::text::grammar
