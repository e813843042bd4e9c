// GBNF, the notation of llama.cpp's grammars.
#pragma once

#include <string_view>

#include "text/grammar/expr.h"

namespace heddle::text::grammar {

/// Throws invalid_argument naming line and column.
Rules parse_gbnf(std::string_view text);

}  // namespace heddle::text::grammar
