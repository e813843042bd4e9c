// What the functions that draw share.
#pragma once

#include "heddle/random.h"

namespace heddle::random {

/// The key given, or the next of the implicit sequence. Throws invalid_argument if it is none.
Array key_or_next(const Key& key);

/// Throws invalid_argument unless `a` and `b`, the shapes of `what`, broadcast to `shape` itself.
void require_broadcast_to(const Shape& shape, const Shape& a, const Shape& b, const char* what);

}  // namespace heddle::random
