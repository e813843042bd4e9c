// What every op means, computed the plain way: nested loops over indices, one number at a time, in
// long double (which holds every 64-bit integer). Shares no code with kernels; devices are tested
// against it.
#pragma once

#include <complex>
#include <cstddef>
#include <vector>

#include "heddle/op.h"
#include "heddle/tensor.h"

namespace heddle::test {

using Number = long double;

/// A tensor's values, row-major.
struct Values {
  TensorSpec spec;
  std::vector<Number> real;
  std::vector<Number> imaginary;  // of complex64; else empty

  Values() = default;
  explicit Values(TensorSpec s);
};

/// The values that memory holds, whatever its layout and dtype.
Values decode(const OperandSpec& operand, const std::byte* data);

/// What `op` gives for these inputs: integers exact, everything else not rounded at all. A state's
/// next version is the whole state.
std::vector<Values> reference(const Op& op, const std::vector<Values>& inputs);

// ---- For the files that implement it

/// Where the element (or the block that it begins) lies, in elements from the operand's start.
std::int64_t element_offset(const OperandSpec& operand, const Dims& index);
std::size_t flat_index(const Shape& shape, const Dims& index);
/// Where `index`, into the broadcast shape, falls in a tensor of `shape`.
std::size_t broadcast_index(const Shape& shape, const Dims& index);

/// Calls f(index) for every index of the shape in row-major order.
template <class F>
void for_each_index(const Shape& shape, const F& f) {
  const std::int64_t count = elements(shape);
  Dims index(shape.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    f(index);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

Values reference_unary(const Unary& op, const Values& x);
Values reference_binary(const Binary& op, const Values& a, const Values& b);
Values reference_compare(const Compare& op, const Values& a, const Values& b);
Values reference_cast(const Cast& op, const Values& x);
Values reference_reduce(const Reduce& op, const Values& x);
/// How a scatter combines what is there with an update; sum for the kind that does not.
ReduceKind combining_kind(ScatterKind kind);
/// What a reduction to `dtype` makes of two of its values.
std::complex<Number> reference_combine(ReduceKind kind, DType dtype, std::complex<Number> a,
                                       std::complex<Number> b);
/// `activation` of one number.
Number reference_activation(UnaryKind activation, Number x);

// Each gives nothing for ops that are not its own.
std::vector<Values> reference_axis(const Op& op, const std::vector<Values>& inputs);
std::vector<Values> reference_order(const Op& op, const std::vector<Values>& inputs);
std::vector<Values> reference_spatial(const Op& op, const std::vector<Values>& inputs);
std::vector<Values> reference_rows(const Op& op, const std::vector<Values>& inputs);
std::vector<Values> reference_products(const Op& op, const std::vector<Values>& inputs);
/// Factors only where they are unique.
std::vector<Values> reference_linalg(const Op& op, const std::vector<Values>& inputs);
std::vector<Values> reference_quantized(const Op& op, const std::vector<Values>& inputs);
/// x / sqrt(mean(x^2) + eps) * weight over the last axis.
Values reference_rms_norm(const Values& x, Number eps, const Values* weight);

}  // namespace heddle::test
