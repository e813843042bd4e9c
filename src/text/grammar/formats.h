// The values of JSON schema's `format` that are enforced on strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle::text::grammar {

/// A pattern for the strings of a format, or for most of them: it is never looser than the format.
std::optional<std::string> format_pattern(std::string_view format);
/// For errors.
std::string known_formats();

}  // namespace heddle::text::grammar
