// Ops that compute: element by element, along axes, and products.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle {

// ---- Element-wise. The operands have the same dtype (the array functions promote) and broadcast.

enum class UnaryKind : std::uint8_t {
  abs,
  negative,
  sign,
  square,
  sqrt,
  rsqrt,
  reciprocal,
  exp,
  expm1,
  log,
  log2,
  log10,
  log1p,
  sin,
  cos,
  tan,
  sinh,
  cosh,
  tanh,
  arcsin,
  arccos,
  arctan,
  sigmoid,
  silu,
  gelu,
  gelu_tanh,
  relu,
  erf,
  floor,
  ceil,
  round,
  logical_not,
  isnan,
  isinf,
  isfinite,
  trunc,
  erfinv,
  arcsinh,
  arccosh,
  arctanh,
  bitwise_invert,
  conjugate,
  real,
  imag,
};
std::string_view to_string(UnaryKind kind) noexcept;

struct Unary {  // x -> f(x); logical_not and is* give bool, real and imag of complex64 f32
  static constexpr std::string_view kName = "unary";
  UnaryKind kind;
  bool operator==(const Unary&) const = default;
  void fields(auto&& f) const { f("kind", kind); }
};

enum class BinaryKind : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  remainder,
  power,
  maximum,
  minimum,
  logaddexp,
  arctan2,
  logical_and,
  logical_or,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  left_shift,
  right_shift,
};
std::string_view to_string(BinaryKind kind) noexcept;

struct Binary {  // a, b -> f(a, b), broadcast; logical_* give bool
  static constexpr std::string_view kName = "binary";
  BinaryKind kind;
  bool operator==(const Binary&) const = default;
  void fields(auto&& f) const { f("kind", kind); }
};

enum class CompareKind : std::uint8_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal
};
std::string_view to_string(CompareKind kind) noexcept;

struct Compare {  // a, b -> bool, broadcast
  static constexpr std::string_view kName = "compare";
  CompareKind kind;
  bool operator==(const Compare&) const = default;
  void fields(auto&& f) const { f("kind", kind); }
};

struct Select {  // condition bool, a, b -> a where condition, else b; all three broadcast
  static constexpr std::string_view kName = "select";
  bool operator==(const Select&) const = default;
  void fields(auto&&) const {}
};

struct GatedMultiply {  // gate, up -> act(gate) * up; same shape; act is silu, gelu, gelu_tanh or
                        // relu
  static constexpr std::string_view kName = "gated_multiply";
  UnaryKind activation = UnaryKind::silu;
  bool operator==(const GatedMultiply&) const = default;
  void fields(auto&& f) const { f("activation", activation); }
};

// ---- Reductions and normalisations

enum class ReduceKind : std::uint8_t { sum, mean, max, min, prod, all, any };
std::string_view to_string(ReduceKind kind) noexcept;

/// x -> x reduced over `axes` (sorted, distinct, non-negative). Half types accumulate in f32; sum
/// and prod of bool and small integers give i32, as in MLX; all and any of plain dtypes give bool.
/// Max, min and mean of nothing are errors.
struct Reduce {
  static constexpr std::string_view kName = "reduce";
  ReduceKind kind;
  Dims axes;
  bool keepdims = false;
  bool operator==(const Reduce&) const = default;
  void fields(auto&& f) const { f("kind", kind), f("axes", axes), f("keepdims", keepdims); }
};

enum class ScanKind : std::uint8_t { sum, prod, max, min, logaddexp };
std::string_view to_string(ScanKind kind) noexcept;

/// x -> of x's shape: out[i] combines x[0] ... x[i] along `axis`; with `reverse`, x[i] ... x[n-1];
/// with `exclusive` without x[i] itself, so that the first (or last) is of nothing: 0, 1, the
/// lowest value (-inf, false), the highest (inf, true) and -inf. The sum of bools is i32, all else
/// x's dtype. Half types accumulate in f32, integers wrap. Max and min are NaN from the first NaN
/// on. sum and prod take plain dtypes (the product of bools is and), max and min all but complex64,
/// logaddexp floating ones: log of the sum of e^x, which is -inf while all x are.
struct Scan {
  static constexpr std::string_view kName = "scan";
  ScanKind kind = ScanKind::sum;
  std::int64_t axis = 0;
  bool reverse = false, exclusive = false;
  bool operator==(const Scan&) const = default;
  void fields(auto&& f) const {
    f("kind", kind), f("axis", axis), f("reverse", reverse), f("exclusive", exclusive);
  }
};

enum class ArgReduceKind : std::uint8_t { max, min };
std::string_view to_string(ArgReduceKind kind) noexcept;

/// x (bool, integer or floating) -> u32, the index along `axis` of its largest or smallest element;
/// of equals (-0 equals 0) the first. A NaN counts as beyond all numbers for both kinds, so that
/// the first NaN wins, as in NumPy. An axis of extent 0 is an error, unless the result is empty
/// too; so is one that u32 cannot count.
struct ArgReduce {
  static constexpr std::string_view kName = "arg_reduce";
  ArgReduceKind kind = ArgReduceKind::max;
  std::int64_t axis = 0;
  bool keepdims = false;
  bool operator==(const ArgReduce&) const = default;
  void fields(auto&& f) const { f("kind", kind), f("axis", axis), f("keepdims", keepdims); }
};

/// x [..., n] (bool, integer or floating) -> values [..., k] of x's dtype and indices u32 [..., k]:
/// the k largest of each row, 0 <= k <= n, the largest first. NaN counts as larger than all
/// numbers, as in NumPy's sort; equals (NaNs; -0 and 0) come in the order of their indices.
struct TopK {
  static constexpr std::string_view kName = "top_k";
  std::int64_t k = 1;
  bool operator==(const TopK&) const = default;
  void fields(auto&& f) const { f("k", k); }
};

struct Softmax {  // x floating -> softmax over the last axis; a row of -inf gives zeros
  static constexpr std::string_view kName = "softmax";
  bool operator==(const Softmax&) const = default;
  void fields(auto&&) const {}
};

/// x floating [..., Q, K] -> softmax over the last axis where row q sees columns up to K - Q + q;
/// the others give 0, and a row that sees nothing or only -inf gives zeros
struct CausalSoftmax {
  static constexpr std::string_view kName = "causal_softmax";
  bool operator==(const CausalSoftmax&) const = default;
  void fields(auto&&) const {}
};

/// x [..., D], [weight [D]], [bias [D]] -> x / sqrt(mean(x^2) + eps) * weight + bias
struct RmsNorm {
  static constexpr std::string_view kName = "rms_norm";
  float eps = 1e-5f;
  bool has_weight = true, has_bias = false;
  bool operator==(const RmsNorm&) const = default;
  void fields(auto&& f) const {
    f("eps", eps), f("has_weight", has_weight), f("has_bias", has_bias);
  }
};

/// a, b [..., D], [weight], [bias] -> a + b, and rms_norm of that
struct AddRmsNorm {
  static constexpr std::string_view kName = "add_rms_norm";
  float eps = 1e-5f;
  bool has_weight = true, has_bias = false;
  bool operator==(const AddRmsNorm&) const = default;
  void fields(auto&& f) const {
    f("eps", eps), f("has_weight", has_weight), f("has_bias", has_bias);
  }
};

/// x [..., D], [weight [D]], [bias [D]] -> (x - mean) / sqrt(var + eps) * weight + bias
struct LayerNorm {
  static constexpr std::string_view kName = "layer_norm";
  float eps = 1e-5f;
  bool has_weight = true, has_bias = true;
  bool operator==(const LayerNorm&) const = default;
  void fields(auto&& f) const {
    f("eps", eps), f("has_weight", has_weight), f("has_bias", has_bias);
  }
};

/// x (floating), [weight [C]], [bias [C]], where C is x's extent along `axis` -> layer_norm over
/// that axis: (x - mean) / sqrt(var + eps) * weight + bias, with a mean and a variance (over C) of
/// each line along `axis`.
struct ChannelNorm {
  static constexpr std::string_view kName = "channel_norm";
  std::int64_t axis = 0;
  float eps = 1e-5f;
  bool has_weight = true, has_bias = true;
  bool operator==(const ChannelNorm&) const = default;
  void fields(auto&& f) const {
    f("axis", axis), f("eps", eps), f("has_weight", has_weight), f("has_bias", has_bias);
  }
};

/// x (floating) [N, ..., C], [weight [C]], [bias [C]] -> (x - mean) / sqrt(var + eps) * weight +
/// bias, with a mean and a variance for each n and group g, over all positions and the channels
/// g*C/groups ... (g+1)*C/groups - 1. C is a multiple of `groups` > 0.
struct GroupNorm {
  static constexpr std::string_view kName = "group_norm";
  std::int64_t groups = 1;
  float eps = 1e-5f;
  bool has_weight = true, has_bias = true;
  bool operator==(const GroupNorm&) const = default;
  void fields(auto&& f) const {
    f("groups", groups), f("eps", eps), f("has_weight", has_weight), f("has_bias", has_bias);
  }
};

// ---- Products

struct Matmul {  // a [..., M, K], b [..., K, N] -> [..., M, N]; batch axes broadcast; one float
                 // dtype or complex64
  static constexpr std::string_view kName = "matmul";
  bool operator==(const Matmul&) const = default;
  void fields(auto&&) const {}
};

/// x f32 [..., in], then n >= 1 weights [out_i, in] (f32, f16, bf16 or a block type; they may
/// differ)
/// -> n outputs f32 [..., out_i] = x weight_i^T. One rounding of x, if any, serves all weights.
struct Linear {
  static constexpr std::string_view kName = "linear";
  bool operator==(const Linear&) const = default;
  void fields(auto&&) const {}
};

/// x f32 [T, in], weights [E, out, in] (f32, f16, bf16 or a block type), expert i32 [T] in [-1, E)
/// -> f32 [T, out] = x[t] weights[expert[t]]^T, zeros where expert[t] is -1. Each row has the bits
/// that Linear gives with that expert's weights, not repacked. Tokens of one expert that lie side
/// by side share its reading.
struct GroupedLinear {
  static constexpr std::string_view kName = "grouped_linear";
  bool operator==(const GroupedLinear&) const = default;
  void fields(auto&&) const {}
};

}  // namespace heddle
