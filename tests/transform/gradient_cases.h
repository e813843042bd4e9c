// Functions to differentiate and to map: each op in the ways in which it can be called.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "heddle/transforms.h"

namespace heddle::test {

struct GradientCase {
  std::string name;
  ArraysFunction function;
  std::vector<Array> inputs;  // floating; what else the function needs it has captured
  double step = 1e-4;         // of central differences
  double tolerance = 1e-6;    // relative to the size of what is compared
  bool second_order = true;
};

std::vector<GradientCase> gradient_cases();

/// Uniform in [low, high).
Array random_array(std::mt19937& random, const Shape& shape, double low = -1, double high = 1,
                   DType dtype = DType::f64);

}  // namespace heddle::test
