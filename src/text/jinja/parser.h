// Tokens to a tree.
#pragma once

#include "heddle/chat_template.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace heddle::text::jinja {

/// Throws SyntaxFailure.
Body parse(std::vector<Token> tokens, const TemplateLimits& limits);

}  // namespace heddle::text::jinja
