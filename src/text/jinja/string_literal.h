// Escapes in string literals.
#pragma once

#include <string>
#include <string_view>

namespace heddle::text::jinja {

/// What is between the quotes, with Python's escapes resolved; unknown ones stay as they are.
/// Throws SyntaxFailure; `at` is where the literal begins in the source.
std::string unescaped(std::string_view literal, std::size_t at);

}  // namespace heddle::text::jinja
