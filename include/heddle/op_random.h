// Random bits from keys.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle {

/// keys u32 [..., 2] -> [..., shape...] unsigned integers of `width` bytes (1, 2, 4 or 8): the
/// stream of threefry2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011)
/// under each key, as MLX counts it.
struct RandomBits {
  static constexpr std::string_view kName = "random_bits";
  Shape shape;
  std::int64_t width = 4;
  bool operator==(const RandomBits&) const = default;
  void fields(auto&& f) const { f("shape", shape), f("width", width); }
};

}  // namespace heddle
