// Python's operators.
#pragma once

#include "text/jinja/runtime.h"

namespace heddle::text::jinja {

Value arithmetic(Runtime& run, const std::string& op, const Value& a, const Value& b);
Value negated(const Value& value);
Value plus(const Value& value);
/// `a op b` for ==, !=, <, <=, >, >=, in, not in.
bool related(Runtime& run, const std::string& op, const Value& a, const Value& b);

/// value[begin:end:step]; bounds are integers or none.
Value sliced(Runtime& run, const Value& value, const Value& begin, const Value& end,
             const Value& step);

}  // namespace heddle::text::jinja
