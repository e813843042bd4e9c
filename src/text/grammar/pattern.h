// Regular expressions as JSON schema's `pattern` has them.
#pragma once

#include <string_view>

#include "text/grammar/char_dfa.h"

namespace heddle::text::grammar {

/// The texts in which `pattern` finds a match: ECMA-262 without look-around, word boundaries, back
/// references, Unicode properties and flags, none of which a machine this simple can follow. Where
/// ECMA-262 and other engines differ in what a class holds, only what they agree on is in it: the
/// negated classes \D, \S and \W hold ASCII characters, the first two also accented Latin letters.
///
/// Throws invalid_argument or unsupported; `where` begins the message. Takes what it costs from
/// `steps` (of about 100 ns), and throws where they do not suffice.
CharDfa pattern_dfa(std::string_view pattern, std::string_view where, std::size_t& steps);

}  // namespace heddle::text::grammar
