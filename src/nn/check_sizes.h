// What constructors of modules share.
#pragma once

#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "array/ops_common.h"
#include "heddle/random.h"

namespace heddle::nn {

/// Throws invalid_argument unless all sizes are positive.
inline void require_positive(std::string_view module,
                             std::initializer_list<std::pair<const char*, int>> sizes) {
  for (const auto& [name, size] : sizes) {
    require(size > 0, ErrorCode::invalid_argument, "{}: {} is {}; it must be positive", module,
            name, size);
  }
}

/// Throws invalid_argument unless the last axis of `x` has `width` elements.
inline void require_width(std::string_view module, const Array& x, std::int64_t width) {
  require(x.ndim() >= 1 && x.shape().back() == width, ErrorCode::invalid_argument,
          "{}: x is {}; its last axis must be {}", module, x.spec(), width);
}

/// Numbers within 1 / sqrt(terms), so that sums of that many products keep their size.
inline Array uniform_for(const Shape& shape, std::int64_t terms, const Array& key) {
  const float bound = 1.0f / std::sqrt(static_cast<float>(terms));
  return random::uniform(-bound, bound, shape, DType::f32, key);
}

/// Keys one after the other, if there is one to begin with.
class Keys {
 public:
  explicit Keys(const random::Key& key) : key_(key) {}
  random::Key next() {
    if (!key_) return std::nullopt;
    auto [mine, rest] = random::split(*key_);
    key_ = std::move(rest);
    return mine;
  }

 private:
  random::Key key_;
};

}  // namespace heddle::nn
