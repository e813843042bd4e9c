// The op set: what heddle can compute, as plain data.
//
// An Op is a closed variant of small aggregates. Each has a name, defaulted equality, and `fields`,
// the one visitor from which hashing, printing and JSON follow. What an op takes and gives is said
// beside it as  inputs -> outputs; `infer` checks it and is the only home of shape rules.
//
// Tensors are row-major; "rows" are what lies along all axes but the last.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heddle/buffer.h"
#include "heddle/ref.h"
#include "heddle/tensor.h"

namespace heddle {

// ---- Leaves: values that no kernel makes. No inputs.

/// A value known when the graph is built, held contiguously at the start of `data` in host memory.
struct Constant {
  static constexpr std::string_view kName = "constant";
  TensorSpec spec;
  Ref<Buffer> data;
  bool operator==(const Constant&) const = default;
  void fields(auto&& f) const { f("spec", spec); }
};

/// A weight: bound by name, unchanged between runs, and so free to be repacked.
struct Parameter {
  static constexpr std::string_view kName = "parameter";
  std::string name;
  TensorSpec spec;
  bool operator==(const Parameter&) const = default;
  void fields(auto&& f) const { f("name", name), f("spec", spec); }
};

/// What a caller gives for each run, by name. `extent`, if not empty, names an i32 scalar input:
/// only that many leading rows (axis 0) count in the run, and nothing need be computed for the
/// rest.
struct Input {
  static constexpr std::string_view kName = "input";
  std::string name;
  TensorSpec spec;
  std::string extent;
  bool operator==(const Input&) const = default;
  void fields(auto&& f) const { f("name", name), f("spec", spec), f("extent", extent); }
};

/// The version of a state that a run begins with. The bound state may have more rows (axis 0) than
/// `spec`.
struct StateRef {
  static constexpr std::string_view kName = "state";
  std::string name;
  TensorSpec spec;
  bool operator==(const StateRef&) const = default;
  void fields(auto&& f) const { f("name", name), f("spec", spec); }
};

// ---- Views: another look at the same bytes where strides allow, a copy where they do not.

struct Reshape {  // x -> x as `shape`
  static constexpr std::string_view kName = "reshape";
  Shape shape;
  bool operator==(const Reshape&) const = default;
  void fields(auto&& f) const { f("shape", shape); }
};

struct Transpose {  // x -> output axis i is input axis axes[i]
  static constexpr std::string_view kName = "transpose";
  Dims axes;
  bool operator==(const Transpose&) const = default;
  void fields(auto&& f) const { f("axes", axes); }
};

/// x -> x[start:stop:step] on every axis. With step > 0, 0 <= start <= stop <= extent; with step <
/// 0, -1 <= stop <= start < extent, and a stop of -1 is before the first.
struct Slice {
  static constexpr std::string_view kName = "slice";
  Dims start, stop, step;
  bool operator==(const Slice&) const = default;
  void fields(auto&& f) const { f("start", start), f("stop", stop), f("step", step); }
};

struct Broadcast {  // x -> x repeated to `shape`, by NumPy's rule
  static constexpr std::string_view kName = "broadcast";
  Shape shape;
  bool operator==(const Broadcast&) const = default;
  void fields(auto&& f) const { f("shape", shape); }
};

struct Squeeze {  // x -> x without `axes`, each of extent 1
  static constexpr std::string_view kName = "squeeze";
  Dims axes;
  bool operator==(const Squeeze&) const = default;
  void fields(auto&& f) const { f("axes", axes); }
};

struct ExpandDims {  // x -> x with new axes of extent 1 at `axes` of the result
  static constexpr std::string_view kName = "expand_dims";
  Dims axes;
  bool operator==(const ExpandDims&) const = default;
  void fields(auto&& f) const { f("axes", axes); }
};

/// x0 ... x[values-1], then any number of dependencies -> x0 ... x[values-1], no sooner than all
/// inputs. Lazy evaluation only: in a graph, whose order is fixed, its outputs are its inputs.
struct Depends {
  static constexpr std::string_view kName = "depends";
  std::int64_t values = 0;
  bool operator==(const Depends&) const = default;
  void fields(auto&& f) const { f("values", values); }
};

/// x -> element (i, j, ...) is the row-major element offset + i*strides[0] + j*strides[1] + ... of
/// x, which has one there for every index; of no block type.
struct AsStrided {
  static constexpr std::string_view kName = "as_strided";
  Shape shape;
  Dims strides;  // in elements, of either sign
  std::int64_t offset = 0;
  bool operator==(const AsStrided&) const = default;
  void fields(auto&& f) const { f("shape", shape), f("strides", strides), f("offset", offset); }
};

// ---- Data movement

struct Contiguous {  // x -> a row-major copy of x
  static constexpr std::string_view kName = "contiguous";
  bool operator==(const Contiguous&) const = default;
  void fields(auto&&) const {}
};

struct Repack {  // matrix [out, in] -> the same, held as `kind`
  static constexpr std::string_view kName = "repack";
  LayoutKind kind = LayoutKind::panel16;
  bool operator==(const Repack&) const = default;
  void fields(auto&& f) const { f("kind", kind); }
};

struct Cast {  // x -> x as `dtype`; block types dequantise. To integers, truncates towards zero.
  static constexpr std::string_view kName = "cast";
  DType dtype = DType::f32;
  bool operator==(const Cast&) const = default;
  void fields(auto&& f) const { f("dtype", dtype); }
};

/// x -> the same bytes, row-major, as elements of `dtype`; the last axis grows or shrinks by the
/// ratio of sizes, and a scalar only becomes what is as large. Of plain dtypes. No view, since
/// whether strides can express it depends on where x lies (`reinterpreted_view`).
struct Reinterpret {
  static constexpr std::string_view kName = "view";
  DType dtype = DType::f32;
  bool operator==(const Reinterpret&) const = default;
  void fields(auto&& f) const { f("dtype", dtype); }
};

struct Concatenate {  // x0, x1, ... -> joined along `axis`; one dtype
  static constexpr std::string_view kName = "concatenate";
  std::int64_t axis = 0;
  bool operator==(const Concatenate&) const = default;
  void fields(auto&& f) const { f("axis", axis); }
};

/// base, update -> base with base[start:stop:step] (as Slice reads it) replaced by update, which
/// has that slice's shape and the base's dtype, a plain one.
struct SliceUpdate {
  static constexpr std::string_view kName = "slice_update";
  Dims start, stop, step;
  bool operator==(const SliceUpdate&) const = default;
  void fields(auto&& f) const { f("start", start), f("stop", stop), f("step", step); }
};

/// table [R, ...], ids (any integer dtype) [I...] -> [I..., ...]; dtype `dtype`, into which block
/// and packed tables are dequantised. Ids outside [0, R) are an error.
struct GatherRows {
  static constexpr std::string_view kName = "gather_rows";
  DType dtype = DType::f32;
  bool operator==(const GatherRows&) const = default;
  void fields(auto&& f) const { f("dtype", dtype); }
};

/// state [R, ...], x [T, ...], row i32 [T] -> the state's next version, with x[t] (converted to the
/// state's dtype, quantised included) in row row[t]. Negative rows write nothing. Output 0 is
/// input 0's buffer. Two live rows of one write must differ.
struct WriteRows {
  static constexpr std::string_view kName = "write_rows";
  bool operator==(const WriteRows&) const = default;
  void fields(auto&&) const {}
};

/// state, x, extent i32 scalar (`rows` only) -> the state's next version, folded back from an
/// output.
///   whole: x has the state's shape.  prefix: the first `extent` rows of x replace the state's.
///   row: x's row number `extent` becomes the whole state ([1, ...] or [...]).
struct Feed {
  static constexpr std::string_view kName = "feed";
  enum class Kind : std::uint8_t { whole, prefix, row } kind = Kind::whole;
  bool operator==(const Feed&) const = default;
  void fields(auto&& f) const { f("kind", kind); }
};

/// -> start, start+step, ... [size] of `dtype`
struct Arange {
  static constexpr std::string_view kName = "arange";
  double start = 0, step = 1;
  std::int64_t size = 0;
  DType dtype = DType::f32;
  bool operator==(const Arange&) const = default;
  void fields(auto&& f) const {
    f("start", start), f("step", step), f("size", size), f("dtype", dtype);
  }
};

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
};
std::string_view to_string(UnaryKind kind) noexcept;

struct Unary {  // x -> f(x); logical_not and is* give bool
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

enum class ReduceKind : std::uint8_t { sum, mean, max, min, prod };
std::string_view to_string(ReduceKind kind) noexcept;

/// x -> x reduced over `axes` (sorted, distinct, non-negative). Half types accumulate in f32; sum
/// and prod of bool and small integers give i32, as in MLX. Max, min and mean of nothing are
/// errors.
struct Reduce {
  static constexpr std::string_view kName = "reduce";
  ReduceKind kind;
  Dims axes;
  bool keepdims = false;
  bool operator==(const Reduce&) const = default;
  void fields(auto&& f) const { f("kind", kind), f("axes", axes), f("keepdims", keepdims); }
};

struct Softmax {  // x floating -> softmax over the last axis; a row of -inf gives zeros
  static constexpr std::string_view kName = "softmax";
  bool operator==(const Softmax&) const = default;
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

// ---- Products

struct Matmul {  // a [..., M, K], b [..., K, N] -> [..., M, N]; batch axes broadcast; one float
                 // dtype
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

// ---- Attention and positions

enum class RopeStyle : std::uint8_t {
  interleaved,  // pairs (2i, 2i+1): llama's "norm"
  split_half,   // pairs (i, i + dims/2): "neox"
};
std::string_view to_string(RopeStyle style) noexcept;

/// The angles of a rotary embedding: pair i of the first `dims` features at position p turns by
/// p * scale * base^(-2i/dims) / factor[i].
struct RopeAngles {
  RopeStyle style = RopeStyle::split_half;
  std::int64_t dims = 0;  // features that turn; even; the others pass
  float base = 10000.0f;
  float scale = 1.0f;        // of positions: 1/4 for a context stretched four times
  bool has_factors = false;  // an operand f32 [dims/2] divides the frequencies
  bool operator==(const RopeAngles&) const = default;
  void fields(auto&& f) const {
    f("style", style), f("dims", dims), f("base", base), f("scale", scale),
        f("has_factors", has_factors);
  }
};

/// x [T, H, D], [bias [H*D]], pos i32 [T], [factors f32 [dims/2]] -> x + bias, turned by angles
struct Rope {
  static constexpr std::string_view kName = "rope";
  RopeAngles angles;
  bool has_bias = false;
  bool operator==(const Rope&) const = default;
  void fields(auto&& f) const { angles.fields(f), f("has_bias", has_bias); }
};

/// x [T, H, D], cos and sin f32 [P, dims/2], index i32 [T] (`by_position`) -> x turned by the angle
/// whose cosine and sine the tables' row index[t] holds; without `by_position`, P = T and row t.
struct RopeTable {
  static constexpr std::string_view kName = "rope_table";
  RopeStyle style = RopeStyle::split_half;
  bool by_position = true;
  bool operator==(const RopeTable&) const = default;
  void fields(auto&& f) const { f("style", style), f("by_position", by_position); }
};

/// state [R, H, D], x [T, H, D], row i32 [T], [bias [H*D]], then with `rope`: pos i32 [T],
/// [factors] -> the state's next version: write_rows(state, rope(x + bias)).
struct RopeWriteRows {
  static constexpr std::string_view kName = "rope_write_rows";
  bool has_bias = false, rope = true;
  RopeAngles angles;
  bool operator==(const RopeWriteRows&) const = default;
  void fields(auto&& f) const { f("has_bias", has_bias), f("rope", rope), angles.fields(f); }
};

/// q, k, v and [mask] -> softmax(q k^T * scale + mask) v.
/// q [B,Hq,Sq,D], k [B,Hkv,Sk,D], v [B,Hkv,Sk,Dv] -> [B,Hq,Sq,Dv]; with `sequence_first` the middle
/// two axes are swapped, in and out. Hq is a multiple of Hkv. Query i stands at position
/// Sk - Sq + i. A fully masked row gives zeros. The mask broadcasts to [B,Hq,Sq,Sk].
struct Attention {
  static constexpr std::string_view kName = "attention";
  enum class Mask : std::uint8_t { none, causal, boolean, additive } mask = Mask::none;
  float scale = 1.0f;
  std::int64_t window = 0;  // with `causal`: only the last `window` positions are seen; 0 is all
  bool sequence_first = false;
  bool operator==(const Attention&) const = default;
  void fields(auto&& f) const {
    f("mask", mask), f("scale", scale), f("window", window), f("sequence_first", sequence_first);
  }
};
std::string_view to_string(Attention::Mask mask) noexcept;

/// Causal attention of a batch of tokens over KV states that are addressed through block tables.
///   q f32 [T, Hq, D]; k, v states [R, Hkv, D] (f32, f16 or q8_0); block_table i32 [S, B];
///   seq i32 [T]: the token's row of the table, -1 for an idle token; pos i32 [T]; len i32 [S]:
///   valid positions of each sequence -> f32 [T, Hq, D].
/// Position p of sequence s is in row block_table[s][p / block_size] * block_size + p % block_size.
/// Token t sees positions p < len[s], p <= pos[t], and with a window p > pos[t] - window. An idle
/// token, or one that sees nothing, yields zeros.
struct Attend {
  static constexpr std::string_view kName = "attend";
  float scale = 1.0f;
  std::int64_t block_size = 32;
  std::int64_t window = 0;  // 0 is all
  bool operator==(const Attend&) const = default;
  void fields(auto&& f) const {
    f("scale", scale), f("block_size", block_size), f("window", window);
  }
};

using Op = std::variant<Constant, Parameter, Input, StateRef,                           //
                        Reshape, Transpose, Slice, Broadcast, Squeeze, ExpandDims,      //
                        AsStrided, Depends, Contiguous, Repack, Cast, Reinterpret,      //
                        Concatenate, SliceUpdate, GatherRows, WriteRows, Feed,          //
                        Arange, Unary, Binary, Compare, Select, GatedMultiply, Reduce,  //
                        Softmax, RmsNorm, AddRmsNorm, LayerNorm, Matmul, Linear, Rope,  //
                        RopeTable, RopeWriteRows, Attention, Attend>;

inline constexpr std::size_t kOpCount = std::variant_size_v<Op>;

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
/// `axis` of operand `of`, times `multiplier`, divided by `divisor` (and one more if `inclusive`).
/// Executors check them on the host where the operand is an input; kernels guard what they compute.
struct IndexBound {
  std::size_t operand;
  std::int64_t minimum;  // -1 where negative marks what is idle
  std::size_t of;
  std::size_t axis = 0;
  std::int64_t multiplier = 1, divisor = 1;
  bool inclusive = false;
};
std::vector<IndexBound> index_bounds(const Op& op);

/// The state operand that the op replaces (its output 0 is the next version), if it writes one.
inline bool writes_state(const Op& op) noexcept {
  return std::holds_alternative<WriteRows>(op) || std::holds_alternative<RopeWriteRows>(op) ||
         std::holds_alternative<Feed>(op);
}

/// Whether each output row (axis 0) depends on the same row of operand `operand` only, so that a
/// run which needs only the first rows may leave out the others. False for weights, states and
/// tables.
bool is_row_operand(const Op& op, std::size_t operand, std::span<const TensorSpec> inputs);

}  // namespace heddle
