// Ops that move data without computing on it, but for conversions and what scatters combine.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle {

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
/// and packed tables are dequantised. Ids outside [0, R) are an error, unless they `wrap`: then
/// negative ones from -R on count from the end.
struct GatherRows {
  static constexpr std::string_view kName = "gather_rows";
  DType dtype = DType::f32;
  bool wrap = false;
  bool operator==(const GatherRows&) const = default;
  void fields(auto&& f) const { f("dtype", dtype), f("wrap", wrap); }
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

// ---- Along an axis. `indices` are of any integer dtype, in [-extent, extent) of x's axis, where
// negative ones count from the end; others are an error. A line is the elements along `axis` with
// all other indices fixed.

/// x, indices (of x's rank, and x's extents but along `axis`) -> like `indices`, of x's dtype, a
/// plain one: out[i, j, k] = x[i, indices[i, j, k], k] (for axis 1 of three).
struct GatherAxis {
  static constexpr std::string_view kName = "gather_axis";
  std::int64_t axis = 0;
  bool operator==(const GatherAxis&) const = default;
  void fields(auto&& f) const { f("axis", axis); }
};

enum class ScatterKind : std::uint8_t { none, sum, prod, max, min };
std::string_view to_string(ScatterKind kind) noexcept;

/// x, indices as for GatherAxis, updates (x's dtype, indices' shape) -> x, with the updates of each
/// line applied one after another, in the order of the line, at line[indices[j]]:
///   none: line[i] = u;  sum: line[i] + u;  prod: line[i] * u;  max, min: NaN if either is.
/// So the last of several updates of one element stays under `none`. Half types compute in f32 and
/// are rounded after each update; integers wrap. The sum of bools is or, their product and. Of
/// plain dtypes; complex64 has no max or min.
struct ScatterAxis {
  static constexpr std::string_view kName = "scatter_axis";
  std::int64_t axis = 0;
  ScatterKind kind = ScatterKind::none;
  bool operator==(const ScatterAxis&) const = default;
  void fields(auto&& f) const { f("axis", axis), f("kind", kind); }
};

/// constant: x, value (a scalar of x's dtype) -> x with low[i] values before and high[i] values
/// behind on axis i.  edge: x -> the same with the nearest element of x. Paddings are not negative;
/// `edge` pads no axis of extent 0. Of plain dtypes.
struct Pad {
  static constexpr std::string_view kName = "pad";
  enum class Mode : std::uint8_t { constant, edge } mode = Mode::constant;
  Dims low, high;  // one for each axis
  bool operator==(const Pad&) const = default;
  void fields(auto&& f) const { f("mode", mode), f("low", low), f("high", high); }
};
std::string_view to_string(Pad::Mode mode) noexcept;

}  // namespace heddle
