// JSON schema as a grammar.
#pragma once

#include <string_view>

#include "text/grammar/expr.h"

namespace heddle::text::grammar {

/// Throws unsupported naming the JSON pointer of what cannot be enforced, invalid_argument for what
/// is no schema.
Rules schema_rules(std::string_view schema);
/// Any JSON object.
Rules json_object_rules();

}  // namespace heddle::text::grammar
