// The op set: what heddle can compute, as plain data.
//
// An Op is a closed variant of small aggregates, in op_*.h by family. Each has a name, defaulted
// equality, and `fields`, the one visitor from which hashing, printing and JSON follow. What an op
// takes and gives is said beside it as  inputs -> outputs, with optional inputs in brackets;
// `infer` checks it and is the only home of shape rules.
//
// Tensors are row-major; "rows" are what lies along all axes but the last.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/op_attention.h"
#include "heddle/op_fused.h"
#include "heddle/op_index.h"
#include "heddle/op_linalg.h"
#include "heddle/op_math.h"
#include "heddle/op_move.h"
#include "heddle/op_order.h"
#include "heddle/op_quantized.h"
#include "heddle/op_random.h"
#include "heddle/op_spatial.h"
#include "heddle/op_view.h"
#include "heddle/tensor.h"

namespace heddle {

using OpVariant = std::variant<Constant, Parameter, Input, StateRef,                            //
                               Reshape, Transpose, Slice, Broadcast, Squeeze, ExpandDims,       //
                               AsStrided, Depends, Contiguous, Repack, Cast, Reinterpret,       //
                               Concatenate, SliceUpdate, GatherRows, WriteRows, Feed, Arange,   //
                               GatherAxis, ScatterAxis, Pad, Unary, Binary, Compare, Select,    //
                               GatedMultiply, Reduce, Scan, ArgReduce, TopK, Softmax, RmsNorm,  //
                               AddRmsNorm, LayerNorm, ChannelNorm, GroupNorm, Matmul, Linear,   //
                               GroupedLinear, Conv, Im2col, Pool, Resize, Rope, RopeTable,      //
                               RopeWriteRows, Attention, Attend, SelectiveScan, Gather, Scatter,
                               Sort, SearchSorted, Factor, Solve, Fft, Hadamard, GroupQuantize,
                               GroupDequantize, GroupMatmul, GatherMatmul, SegmentedMatmul, Fp8,
                               RandomBits, CausalSoftmax, NormRope, NormRopeWriteRows, Fused>;

inline constexpr std::size_t kOpCount = std::variant_size_v<OpVariant>;

namespace detail {
template <class T, class... Kinds>
constexpr bool is_kind_of(const std::variant<Kinds...>*) {
  return (std::is_same_v<T, Kinds> || ...);
}
}  // namespace detail

/// One of the ops below, used as the variant that it is. What every holder of an Op needs (to copy,
/// move, drop and compare it) is compiled once, in op.cpp: there are many kinds and many holders.
class Op : public OpVariant {
 public:
  Op() noexcept;  // a constant
  template <class T>
  requires(detail::is_kind_of<T>(static_cast<OpVariant*>(nullptr))) Op(T op)
      : OpVariant(std::in_place_type<T>, std::move(op)) {}  // NOLINT: an op is an Op
  Op(const Op&);
  Op(Op&&) noexcept;
  Op& operator=(const Op&);
  Op& operator=(Op&&) noexcept;
  ~Op();

  friend bool operator==(const Op& a, const Op& b);
};

// ---- What is known of every op

std::string_view name(const Op& op) noexcept;  // "rms_norm"; for element-wise ops the kind: "add"
std::string to_string(const Op& op);           // "rms_norm(eps=1e-05, has_weight=true, ...)"
std::string to_json(const Op& op);             // one object, with "op" and the fields
std::size_t hash(const Op& op) noexcept;       // equal ops hash the same

bool is_leaf(const Op& op) noexcept;  // constant, parameter, input, state
bool is_view(const Op& op) noexcept;  // reshape ... as_strided

/// The outputs' specs. Throws invalid_argument naming the op, the operand and the specs when the
/// inputs do not suit it.
std::vector<TensorSpec> infer(const Op& op, std::span<const TensorSpec> inputs);

/// A view op as strides: where its output lies in its input's memory.
struct ViewOf {
  std::int64_t offset_bytes = 0;  // from the input's lowest byte to the output's; never negative
  Layout layout;
};
/// Nothing when the bytes must be copied (a reshape that strides cannot express, or a packed
/// layout).
std::optional<ViewOf> view_of(const Op& view_op, const OperandSpec& input);
/// What Reinterpret gives of an operand that lies `offset_bytes` into its buffer, as strides;
/// nothing where the last axis has gaps or something is not whole in the new items. Throws as infer
/// does.
std::optional<ViewOf> reinterpreted_view(DType to, const OperandSpec& input,
                                         std::size_t offset_bytes);

/// Bytes moved and arithmetic operations done, for figures and estimates. Weights count as stored.
struct Cost {
  double bytes = 0, operations = 0;
};
Cost cost(const Op& op, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs);

/// An operand that holds indices: its values lie in [minimum, limit), where limit is the extent of
/// `axis` of operand `of`, times `multiplier`, divided by `divisor` (and one more if `inclusive`);
/// in [-limit, limit) if it `wraps`, since negative ones then count from the end.
/// Executors check them on the host where the operand is an input; kernels guard what they compute.
struct IndexBound {
  std::size_t operand;
  std::int64_t minimum;  // -1 where negative marks what is idle
  std::size_t of;
  std::size_t axis = 0;
  std::int64_t multiplier = 1, divisor = 1;
  bool inclusive = false;
  bool wraps = false;
};
std::vector<IndexBound> index_bounds(const Op& op);

/// The state operand that the op replaces (its output 0 is the next version), if it writes one.
inline bool writes_state(const Op& op) noexcept {
  return std::holds_alternative<WriteRows>(op) || std::holds_alternative<RopeWriteRows>(op) ||
         std::holds_alternative<NormRopeWriteRows>(op) || std::holds_alternative<Feed>(op);
}

/// Whether each output row (axis 0) depends on the same row of operand `operand` only, so that a
/// run which needs only the first rows may leave out the others. False for weights, states and
/// tables.
bool is_row_operand(const Op& op, std::size_t operand, std::span<const TensorSpec> inputs);

}  // namespace heddle
