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
  bool by_data = false;  // takes indices: what lies outside fails when it is evaluated
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

// Parts of these.
void add_walked_axes(std::vector<Walked>& all);
void add_walked_index(std::vector<Walked>& all);
void add_refused_models(std::vector<Refused>& all);
void add_refused_axes(std::vector<Refused>& all);
void add_refused_index(std::vector<Refused>& all);
void add_index_axes(std::vector<TakesAxis>& all);
void add_index_axes(std::vector<TakesAxes>& all);

/// Zeros of any type.
Array zeros_of(const TensorSpec& spec);
inline Array floats(const Shape& shape) {
  return zeros_of({DType::f32, shape});
}
inline Array ints(const Shape& shape) {
  return zeros_of({DType::i32, shape});
}
inline Array blocks() {
  return zeros_of({DType::q8_0, {2, 64}});
}

}  // namespace heddle::test
