// What a function made of its arguments: the ops between them and its outputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "array/node.h"
#include "heddle/transforms.h"

namespace heddle {

/// A node that depends on arguments.
struct RecordedOp {
  Ref<Node> node;
  std::vector<Array> inputs;

  const Op& op() const noexcept { return node->op(); }
  std::vector<Array> outputs() const;
};

/// A call of a function.
struct Record {
  std::vector<Array> arguments;  // what stood for the arguments
  std::vector<Array> outputs;
  std::vector<RecordedOp> ops;  // sources come before consumers
};

/// An array of its own that holds what `a` holds, and stands for it in a record.
Array stand_in(const Array& a);

/// Calls fun(arguments), keeping what it evaluates on its way until the record is made.
Record record(const ArraysFunction& fun, std::vector<Array> arguments);

/// Whether there are derivatives by arrays of this type.
bool is_differentiable(DType dtype) noexcept;

/// As many arrays, of the same dtypes and shapes, as `like`. Throws invalid_argument naming
/// `transform` and `what` ("cotangent", "output").
void check_like(const char* transform, const char* what, const std::vector<Array>& arrays,
                const std::vector<Array>& like, const char* of);

/// A scalar of `dtype`.
Array scalar(double value, DType dtype);

}  // namespace heddle
