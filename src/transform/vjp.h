// The derivatives of ops, backwards: rules by family.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "heddle/transforms.h"

namespace heddle {

/// One op on its way back: what it took, what it gave, and the cotangents of that.
struct Backward {
  std::span<const Array> in, out;
  std::span<const std::optional<Array>> cotangents;
  std::vector<bool> wanted;  // whether anybody asks for the cotangent of an input

  /// Of output i; zeros if nothing depends on it.
  Array g(std::size_t i = 0) const;
};

/// A cotangent for each input; nothing where it is zero or nobody wants it.
using InputCotangents = std::vector<std::optional<Array>>;

/// By the op's family. Throws unsupported, naming the op, where there is no derivative.
InputCotangents vjp_of(const Op& op, const Backward& b);

// The families. Ops that have no derivative by any input (comparisons, indices) have no rule.
InputCotangents vjp_rule(const Reshape&, const Backward&);
InputCotangents vjp_rule(const Transpose&, const Backward&);
InputCotangents vjp_rule(const Slice&, const Backward&);
InputCotangents vjp_rule(const Broadcast&, const Backward&);
InputCotangents vjp_rule(const Squeeze&, const Backward&);
InputCotangents vjp_rule(const ExpandDims&, const Backward&);
InputCotangents vjp_rule(const AsStrided&, const Backward&);
InputCotangents vjp_rule(const Depends&, const Backward&);
InputCotangents vjp_rule(const Contiguous&, const Backward&);
InputCotangents vjp_rule(const Cast&, const Backward&);
InputCotangents vjp_rule(const Concatenate&, const Backward&);

InputCotangents vjp_rule(const SliceUpdate&, const Backward&);
InputCotangents vjp_rule(const GatherRows&, const Backward&);
InputCotangents vjp_rule(const GatherAxis&, const Backward&);
InputCotangents vjp_rule(const ScatterAxis&, const Backward&);
InputCotangents vjp_rule(const Pad&, const Backward&);
InputCotangents vjp_rule(const TopK&, const Backward&);
InputCotangents vjp_rule(const Sort&, const Backward&);
InputCotangents vjp_rule(const Gather&, const Backward&);
InputCotangents vjp_rule(const Scatter&, const Backward&);

InputCotangents vjp_rule(const Unary&, const Backward&);
InputCotangents vjp_rule(const Binary&, const Backward&);
InputCotangents vjp_rule(const Select&, const Backward&);
InputCotangents vjp_rule(const GatedMultiply&, const Backward&);
InputCotangents vjp_rule(const Fused&, const Backward&);

InputCotangents vjp_rule(const Reduce&, const Backward&);
InputCotangents vjp_rule(const Scan&, const Backward&);

InputCotangents vjp_rule(const Softmax&, const Backward&);
InputCotangents vjp_rule(const CausalSoftmax&, const Backward&);
InputCotangents vjp_rule(const RmsNorm&, const Backward&);
InputCotangents vjp_rule(const AddRmsNorm&, const Backward&);
InputCotangents vjp_rule(const LayerNorm&, const Backward&);
InputCotangents vjp_rule(const ChannelNorm&, const Backward&);
InputCotangents vjp_rule(const GroupNorm&, const Backward&);

InputCotangents vjp_rule(const Matmul&, const Backward&);
InputCotangents vjp_rule(const Linear&, const Backward&);
InputCotangents vjp_rule(const GroupedLinear&, const Backward&);
InputCotangents vjp_rule(const GatherMatmul&, const Backward&);
InputCotangents vjp_rule(const SegmentedMatmul&, const Backward&);
InputCotangents vjp_rule(const GroupMatmul&, const Backward&);
InputCotangents vjp_rule(const GroupDequantize&, const Backward&);

InputCotangents vjp_rule(const Factor&, const Backward&);
InputCotangents vjp_rule(const Solve&, const Backward&);
InputCotangents vjp_rule(const Fft&, const Backward&);
InputCotangents vjp_rule(const Hadamard&, const Backward&);

InputCotangents vjp_rule(const Conv&, const Backward&);
InputCotangents vjp_rule(const Im2col&, const Backward&);
InputCotangents vjp_rule(const Pool&, const Backward&);
InputCotangents vjp_rule(const Resize&, const Backward&);

InputCotangents vjp_rule(const Rope&, const Backward&);
InputCotangents vjp_rule(const RopeTable&, const Backward&);
InputCotangents vjp_rule(const NormRope&, const Backward&);
InputCotangents vjp_rule(const Attention&, const Backward&);
InputCotangents vjp_rule(const SelectiveScan&, const Backward&);

// ---- For rules

/// The cotangents of the inputs of `parts`, which computes what the op does of simpler ones.
InputCotangents vjp_of_parts(const ArraysFunction& parts, const Backward& b);

/// The cotangent of what was broadcast from `shape`.
Array sum_to(const Array& a, const Shape& shape);
/// The sum along the last axis, which stays as 1, of a's products with b.
Array sum_of_products(const Array& a, const Array& b);
/// What undoes a transposition by `order`.
Dims inverse_order(const Dims& order);
/// x f32 for the half types, to compute in; itself otherwise.
Array widened(const Array& x);

}  // namespace heddle
