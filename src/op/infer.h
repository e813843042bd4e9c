// Inference, split by family. `infer` in infer.cpp dispatches to these.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/inline_vector.h"
#include "heddle/op.h"
#include "tensor/format.h"

namespace heddle {

using Specs = InlineVector<TensorSpec, 2>;  // most ops have one output

std::string to_string(std::span<const TensorSpec> specs);  // "f32[2], i32[]"

}  // namespace heddle

template <>
struct fmt::formatter<std::span<const heddle::TensorSpec>>
    : heddle::ToStringFormatter<std::span<const heddle::TensorSpec>> {};

namespace heddle {

/// Kinds of dtypes, as a set.
enum DTypeSet : unsigned {
  kBool = 1,
  kInteger = 2,
  kFloat = 4,
  kComplex = 8,
  kReal = kInteger | kFloat,
  kNumber = kReal | kComplex,
  kOrdered = kBool | kReal,
  kPlain = kBool | kNumber,
};

/// The inputs of an op, with the checks that many ops share. Every failed check names the op.
class Operands {
 public:
  Operands(std::string_view op, std::span<const TensorSpec> inputs) : op_(op), inputs_(inputs) {}

  const TensorSpec& operator[](std::size_t i) const { return inputs_[i]; }
  std::size_t size() const { return inputs_.size(); }
  std::span<const TensorSpec> all() const { return inputs_; }
  std::string_view op() const { return op_; }

  template <class... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (condition) [[likely]]
      return;
    fail(ErrorCode::invalid_argument, "{}: {}", op_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  /// Exactly `count` inputs, which `what` lists: "x, weight".
  void check_count(std::size_t count, std::string_view what) const;
  void check_rank(std::size_t i, std::size_t rank, std::string_view what) const;
  void check_min_rank(std::size_t i, std::size_t rank, std::string_view what) const;
  void check_plain(std::size_t i) const;
  /// The dtype of operand `i` is of one of the `kinds`, a DTypeSet.
  void check_kind(std::size_t i, unsigned kinds) const;
  void check_axis(std::size_t i, std::int64_t axis) const;
  void check_floating(std::size_t i, std::string_view what) const;
  /// Operand `i` is `what`, and has to be exactly `wanted`.
  void check_spec(std::size_t i, const TensorSpec& wanted, std::string_view what) const;
  /// Operand `i` is a vector of `extent` elements, of `dtype` or f32.
  void check_vector(std::size_t i, std::int64_t extent, DType dtype, std::string_view what) const;
  /// The broadcast of all inputs' shapes.
  Shape broadcast() const;
  /// Inputs `first` and later have one dtype.
  void check_one_dtype(std::size_t first = 0) const;

 private:
  std::string_view op_;
  std::span<const TensorSpec> inputs_;
};

/// `infer` without a vector.
Specs infer_specs(const Op& op, std::span<const TensorSpec> inputs);

// Leaves and views (infer_view.cpp)
Specs infer_op(const Constant&, const Operands&);
Specs infer_op(const Parameter&, const Operands&);
Specs infer_op(const Input&, const Operands&);
Specs infer_op(const StateRef&, const Operands&);
Specs infer_op(const Reshape&, const Operands&);
Specs infer_op(const Transpose&, const Operands&);
Specs infer_op(const Slice&, const Operands&);
Specs infer_op(const Broadcast&, const Operands&);
Specs infer_op(const Squeeze&, const Operands&);
Specs infer_op(const ExpandDims&, const Operands&);
Specs infer_op(const Depends&, const Operands&);
Specs infer_op(const AsStrided&, const Operands&);

// Data movement (infer_move.cpp)
Specs infer_op(const Contiguous&, const Operands&);
Specs infer_op(const Repack&, const Operands&);
Specs infer_op(const Cast&, const Operands&);
Specs infer_op(const Reinterpret&, const Operands&);
Specs infer_op(const Concatenate&, const Operands&);
Specs infer_op(const SliceUpdate&, const Operands&);
Specs infer_op(const GatherRows&, const Operands&);
Specs infer_op(const WriteRows&, const Operands&);
Specs infer_op(const Feed&, const Operands&);
Specs infer_op(const Arange&, const Operands&);

// Along an axis (infer_axis.cpp)
Specs infer_op(const GatherAxis&, const Operands&);
Specs infer_op(const ScatterAxis&, const Operands&);
Specs infer_op(const Pad&, const Operands&);
Specs infer_op(const Scan&, const Operands&);
Specs infer_op(const ArgReduce&, const Operands&);
Specs infer_op(const TopK&, const Operands&);

// Arithmetic (infer_math.cpp)
Specs infer_op(const Unary&, const Operands&);
Specs infer_op(const Binary&, const Operands&);
Specs infer_op(const Compare&, const Operands&);
Specs infer_op(const Select&, const Operands&);
Specs infer_op(const GatedMultiply&, const Operands&);
Specs infer_op(const Reduce&, const Operands&);
Specs infer_op(const Softmax&, const Operands&);
Specs infer_op(const CausalSoftmax&, const Operands&);
Specs infer_op(const RmsNorm&, const Operands&);
Specs infer_op(const AddRmsNorm&, const Operands&);
Specs infer_op(const LayerNorm&, const Operands&);
Specs infer_op(const ChannelNorm&, const Operands&);
Specs infer_op(const GroupNorm&, const Operands&);
Specs infer_op(const Matmul&, const Operands&);
Specs infer_op(const Linear&, const Operands&);
Specs infer_op(const GroupedLinear&, const Operands&);

// Over spatial axes (infer_spatial.cpp)
Specs infer_op(const Conv&, const Operands&);
Specs infer_op(const Im2col&, const Operands&);
Specs infer_op(const Pool&, const Operands&);
Specs infer_op(const Resize&, const Operands&);

// Attention and positions (infer_attention.cpp)
Specs infer_op(const Rope&, const Operands&);
Specs infer_op(const RopeTable&, const Operands&);
Specs infer_op(const RopeWriteRows&, const Operands&);
Specs infer_op(const NormRope&, const Operands&);
Specs infer_op(const NormRopeWriteRows&, const Operands&);
Specs infer_op(const Attention&, const Operands&);
Specs infer_op(const Attend&, const Operands&);
Specs infer_op(const SelectiveScan&, const Operands&);

// Programs (infer_fused.cpp)
Specs infer_op(const Fused&, const Operands&);

// By indices and in order (infer_order.cpp)
Specs infer_op(const Gather&, const Operands&);
Specs infer_op(const Scatter&, const Operands&);
Specs infer_op(const Sort&, const Operands&);
Specs infer_op(const SearchSorted&, const Operands&);

// Linear algebra (infer_linalg.cpp)
Specs infer_op(const Factor&, const Operands&);
Specs infer_op(const Solve&, const Operands&);
Specs infer_op(const Fft&, const Operands&);
Specs infer_op(const Hadamard&, const Operands&);

// Quantised groups, chosen matrices (infer_quantized.cpp)
Specs infer_op(const GroupQuantize&, const Operands&);
Specs infer_op(const GroupDequantize&, const Operands&);
Specs infer_op(const GroupMatmul&, const Operands&);
Specs infer_op(const GatherMatmul&, const Operands&);
Specs infer_op(const SegmentedMatmul&, const Operands&);
Specs infer_op(const Fp8&, const Operands&);

// Random bits (infer_random.cpp)
Specs infer_op(const RandomBits&, const Operands&);

/// The shape of operand 0's slice [start:stop:step], once that is checked to be within it (shared
/// by slice and slice_update).
Shape slice_shape(const Operands& in, const Dims& start, const Dims& stop, const Dims& step);

/// That `x` can be written into rows of operand `state` (shared by write_rows and its fusion).
void check_row_write(const Operands& in, std::size_t state, std::size_t x, std::size_t row);

}  // namespace heddle
