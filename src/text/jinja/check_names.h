// Filters and tests that do not exist are found before a template runs.
#pragma once

#include "text/jinja/ast.h"

namespace heddle::text::jinja {

/// Throws SyntaxFailure for an unknown filter or test, unless it stands under a condition (an if
/// statement, "a if b else c"), which may have asked whether it is there: that fails when it runs.
void check_names(const Body& body);

}  // namespace heddle::text::jinja
