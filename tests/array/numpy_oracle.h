// NumPy as a second oracle. A table has a line for each call: what the operands are, what NumPy
// makes of them, and the call itself. All lines of a table go through one python3.
//
//   NUMPY("f32[3, 4], f32[4]", "a + b", add(a, b))
//
// Operands are called a, b, c, d. After a spec may stand the range of its random values, as in
// "f32[3] in 0.5..2"; otherwise floats are in -3..3, signed integers in -9..9, unsigned ones in
// 0..9. NumPy computes on floats in float64 and on complex numbers in complex128, whatever the
// dtype here; integers and bools have the same dtype there. Results are compared in shape, and in
// values: integers and bools exactly, others to the precision of the dtype that the call gives.
// Expressions also know `math` and, of whole arrays, `erf`; several results are a tuple or a list.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/ops.h"

namespace heddle::test {

struct NumpyCase {
  std::string operands, numpy, call_text;
  std::function<std::vector<Array>(const std::vector<Array>&)> call;
  double slack = 1;

  /// The tolerance times `factor`, for results whose rounding is magnified.
  NumpyCase loose(double factor) && {
    slack = factor;
    return std::move(*this);
  }
};

/// Whether there is a python3 with NumPy.
bool numpy_is_there();

/// One failure for each case that NumPy sees otherwise. Skips, with a line, where python3-numpy is
/// absent; to be the last statement of a test.
void expect_numpy_agrees(const std::vector<NumpyCase>& cases);
/// The same with expressions that know `torch` (python3-torch), and of arrays their tensors: T(a).
void expect_torch_agrees(const std::vector<NumpyCase>& cases);

inline std::vector<Array> results_of(std::vector<Array> arrays) {
  return arrays;
}
inline std::vector<Array> results_of(Array array) {
  return {std::move(array)};
}
inline std::vector<Array> results_of(const std::pair<Array, Array>& arrays) {
  return {arrays.first, arrays.second};
}

#define NUMPY(OPERANDS, EXPRESSION, ...)                                                     \
  ::heddle::test::NumpyCase {                                                                \
    OPERANDS, EXPRESSION, #__VA_ARGS__, [](const std::vector<::heddle::Array>& in_) {        \
      const auto at_ = [&](std::size_t i) {                                                  \
        return in_.empty() ? ::heddle::Array(0) : in_[i % in_.size()];                       \
      };                                                                                     \
      [[maybe_unused]] const ::heddle::Array a = at_(0), b = at_(1), c = at_(2), d = at_(3); \
      return ::heddle::test::results_of(__VA_ARGS__);                                        \
    }                                                                                        \
  }

}  // namespace heddle::test
