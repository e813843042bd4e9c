// Gathering and scattering slices by arrays of indices.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/op_move.h"
#include "heddle/tensor.h"

namespace heddle {

// Indices are of any integer dtype, in [-extent, extent) of the axis they are for, where negative
// ones count from the end. A slice begins at them and must lie within x; others are an error.

/// x, one array of indices for each of `axes` (of one shape [I...]) -> [I..., slice_sizes...]:
/// out[i, s] is x at s + indices[i] on `axes`, at s elsewhere. slice_sizes has an entry for each
/// axis of x. Without axes, I is empty. Of plain dtypes.
struct Gather {
  static constexpr std::string_view kName = "gather";
  Dims axes;
  Shape slice_sizes;
  bool operator==(const Gather&) const = default;
  void fields(auto&& f) const { f("axes", axes), f("slice_sizes", slice_sizes); }
};

/// x, indices as for Gather, updates [I..., slice...] of x's dtype -> x with the updates applied to
/// the slices, one after another in the order of the indices; the kinds are ScatterAxis'.
struct Scatter {
  static constexpr std::string_view kName = "scatter";
  ScatterKind kind = ScatterKind::none;
  Dims axes;
  bool operator==(const Scatter&) const = default;
  void fields(auto&& f) const { f("kind", kind), f("axes", axes); }
};

}  // namespace heddle
