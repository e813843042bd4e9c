// The `attribute` argument of filters: "a.b.0".
#pragma once

#include "text/jinja/native.h"

namespace heddle::text::jinja {

/// `path`: none (the item itself), an integer, or names and numbers with dots between. An undefined
/// step becomes `otherwise`, if that is given.
Value at_path(Runtime& run, const Value& item, const Value& path, const Value* otherwise = nullptr);
/// What an item is told apart by.
Value sort_key(Runtime& run, const Value& item, const Value& path, bool case_sensitive);
/// A list of what is at each of the paths, which have commas between. Equal ones need no order.
Value sort_keys(Runtime& run, const Value& item, const Value& paths, bool case_sensitive);

}  // namespace heddle::text::jinja
