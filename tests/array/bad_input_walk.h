// Every function of ops.h and array.h with operands that suit it, and with input that does not.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/ops.h"

namespace heddle::test {

using Arrays = std::vector<Array>;

/// A function that arrays are given to.
struct Walked {
  std::string function;  // as declared: "sum", "operator+", "fast::rms_norm"
  const char* operands;  // that suit it, as specs() reads them
  std::function<Arrays(const Arrays& in)> call;
};

/// A function that is given an axis of f32[2, 3], or axes.
struct TakesAxis {
  std::string function;
  std::function<void(const Array& x, int axis)> call;
  bool of_scalars = false;  // scalars have an axis 0 here
};
struct TakesAxes {
  std::string function;
  std::function<void(const Array& x, const Dims& axes)> call;
};

struct Refused {
  std::string function;
  std::vector<std::string> parts;  // of the message, beside the function's name
  std::function<void()> call;
};

std::vector<Walked> walked_functions();
std::vector<TakesAxis> functions_of_an_axis();
std::vector<TakesAxes> functions_of_axes();
std::vector<Refused> refused_calls();

/// Zeros of any type.
Array zeros_of(const TensorSpec& spec);

}  // namespace heddle::test
