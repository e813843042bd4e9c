// Specs from the text they print as: specs("f32[2, 3], i32[]").
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {

inline Shape shape_of(std::string_view text) {  // "[2, 3]"
  Shape shape;
  const char* at = text.data() + 1;
  while (*at != ']') {
    char* end = nullptr;
    shape.push_back(std::strtoll(at, &end, 10));
    if (end == at) throw std::invalid_argument("bad shape: " + std::string(text));
    at = end + (*end == ',');
  }
  return shape;
}

inline std::vector<TensorSpec> specs(std::string_view text) {
  std::vector<TensorSpec> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t open = text.find('[', begin);
    const std::size_t close = text.find(']', open);
    const std::optional<DType> dtype = dtype_from_name(text.substr(begin, open - begin));
    if (!dtype) throw std::invalid_argument("bad spec: " + std::string(text));
    result.push_back({*dtype, shape_of(text.substr(open, close + 1 - open))});
    begin = text.find_first_not_of(", ", close + 1);
    if (begin == std::string_view::npos) break;
  }
  return result;
}

inline TensorSpec spec(std::string_view text) {
  return specs(text).at(0);
}

}  // namespace heddle
