// Every function of the headers of functions with operands that suit it, and with input that does
// not.
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
  bool by_data = false;  // takes indices, or factors: what does not do fails when it is evaluated
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

/// Rows of a family of functions, in a file of its own: a constant registers them. Parts that it
/// does not have are null.
struct FamilyRows {
  void (*walked)(std::vector<Walked>& all) = nullptr;
  void (*of_an_axis)(std::vector<TakesAxis>& all) = nullptr;
  void (*of_axes)(std::vector<TakesAxes>& all) = nullptr;
  void (*refused)(std::vector<Refused>& all) = nullptr;
};
class Family {
 public:
  explicit Family(const FamilyRows& rows) { all().push_back(rows); }
  static std::vector<FamilyRows>& all();
};

/// The rows, with those that families add.
template <class Row>
std::vector<Row> with_families(std::vector<Row> rows,
                               void (*FamilyRows::*part)(std::vector<Row>&)) {
  for (const FamilyRows& family : Family::all()) {
    if (family.*part) (family.*part)(rows);
  }
  return rows;
}

// Parts of these.
void add_walked_axes(std::vector<Walked>& all);
void add_walked_quantized(std::vector<Walked>& all);
void add_refused_quantized(std::vector<Refused>& all);
void add_refused_models(std::vector<Refused>& all);
void add_refused_axes(std::vector<Refused>& all);

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
