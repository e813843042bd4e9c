// Template source to tokens.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::text::jinja {

enum class TokenKind : std::uint8_t {
  data,  // text outside of tags, with white space control applied
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,  // its value, escapes resolved
  integer,
  floating,
  op,  // an operator or a bracket
  end,
};

struct Token {
  TokenKind kind;
  std::size_t at;  // byte of the source
  std::string text;

  bool is(std::string_view op) const { return kind == TokenKind::op && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

/// What is wrong with a source, and where.
class SyntaxFailure : public std::runtime_error {
 public:
  SyntaxFailure(const std::string& message, std::size_t where)
      : std::runtime_error(message), at(where) {}
  std::size_t at;
};

/// Line ends become "\n", and one at the end goes. Throws SyntaxFailure for what is not UTF-8.
std::string normalized_source(std::string_view source);

/// Of a normalized source; ends with TokenKind::end.
std::vector<Token> tokenize(std::string_view source);

}  // namespace heddle::text::jinja
