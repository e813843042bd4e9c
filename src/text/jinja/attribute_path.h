// The `attribute` argument of filters: "a.b.0", or several with commas.
#pragma once

#include "text/jinja/native.h"

namespace heddle::text::jinja {

/// `path`: none (the item itself), an integer, or names and numbers with dots between. An undefined
/// step becomes `otherwise`, if that is given.
Value at_path(Runtime& run, const Value& item, const Value& path, const Value* otherwise = nullptr);
/// What an item is ordered and told apart by; a list where the path has commas.
Value sort_key(Runtime& run, const Value& item, const Value& path, bool case_sensitive);

}  // namespace heddle::text::jinja
