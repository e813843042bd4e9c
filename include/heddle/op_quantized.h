// MLX's quantisation by groups, and products that choose their matrices.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle {

enum class QuantMode : std::uint8_t { affine, mxfp4, mxfp8, nvfp4 };
std::string_view to_string(QuantMode mode) noexcept;

/// How groups of neighbours along a matrix's rows are quantised.
///   affine: `bits` of 2, 3, 4, 5, 6, 8, groups of 32, 64 or 128: w = scale * code + bias, with
///   scales and biases of the values' dtype.  mxfp4: e2m1, 32, scales e8m0.  mxfp8: e4m3, 32, e8m0.
///   nvfp4: e2m1, 16, scales e4m3.  (OCP Microscaling Formats 1.0.)
/// Codes of a row are packed without gaps, the first in the lowest bits, and held in u32.
struct GroupFormat {
  QuantMode mode = QuantMode::affine;
  std::int64_t group_size = 64, bits = 4;
  bool operator==(const GroupFormat&) const = default;
  void fields(auto&& f) const { f("mode", mode), f("group_size", group_size), f("bits", bits); }
};

/// w [..., K] (f32, f16 or bf16) -> codes u32 [..., K*bits/32], scales [..., K/group_size] (affine:
/// of w's dtype; else u8), and of affine biases like the scales.
///   affine: of a group's least and largest value the one farther from zero, the edge, has a code
///   of its own and is exact, and so is zero. Codes are chosen with scales and biases in f32.
///   mxfp4, mxfp8: the scale is the power of two nearest (in its logarithm) to the largest
///   magnitude over the largest code's, 6 or 448. nvfp4: that ratio itself, as e4m3.
///   Codes of these are the nearest, ties to even, and beyond the largest it.
struct GroupQuantize {
  static constexpr std::string_view kName = "group_quantize";
  GroupFormat format;
  bool operator==(const GroupQuantize&) const = default;
  void fields(auto&& f) const { format.fields(f); }
};

/// codes, scales, [biases] -> w of `dtype` (f32, f16 or bf16)
struct GroupDequantize {
  static constexpr std::string_view kName = "group_dequantize";
  GroupFormat format;
  DType dtype = DType::f32;
  bool operator==(const GroupDequantize&) const = default;
  void fields(auto&& f) const { format.fields(f), f("dtype", dtype); }
};

/// x (f32, f16 or bf16), codes, scales, [biases] -> x w^T (with `transpose`, where w is [..., N,
/// K]) or x w (where it is [..., K, N]), of x's dtype, summed in f32.
///   x [..., K] with one matrix w: [..., N].  x [..., M, K] with several: batch axes broadcast.
///   With `gathers`, x [A, M, K], w of [B, ...] and after its operands x_indices and w_indices, u32
///   of one shape [I...]: [I..., M, N]. Those that share a matrix and lie side by side share its
///   reading.
struct GroupMatmul {
  static constexpr std::string_view kName = "group_matmul";
  GroupFormat format;
  bool transpose = true, gathers = false;
  bool operator==(const GroupMatmul&) const = default;
  void fields(auto&& f) const {
    format.fields(f), f("transpose", transpose), f("gathers", gathers);
  }
};

/// a [A, M, K], b [B, K, N] of one floating dtype, a_indices and b_indices u32 of one shape [I...]
/// -> [I..., M, N]. Products with one matrix b that lie side by side share its reading.
struct GatherMatmul {
  static constexpr std::string_view kName = "gather_matmul";
  bool operator==(const GatherMatmul&) const = default;
  void fields(auto&&) const {}
};

/// a [M, K], b [K, N] of one floating dtype, segments u32 [S..., 2] -> [S..., M, N]: for each
/// segment (first, last) a[:, first:last] b[first:last, :]
struct SegmentedMatmul {
  static constexpr std::string_view kName = "segmented_matmul";
  bool operator==(const SegmentedMatmul&) const = default;
  void fields(auto&&) const {}
};

/// encode: x (f32, f16 or bf16) -> u8, the nearest e4m3, ties to even; beyond the range, and for
/// NaN, the largest: 448.  decode: u8 -> `dtype` (f32, f16 or bf16), 0x7f as 480. As in MLX.
struct Fp8 {
  static constexpr std::string_view kName = "fp8";
  bool decode = false;
  DType dtype = DType::u8;
  bool operator==(const Fp8&) const = default;
  void fields(auto&& f) const { f("decode", decode), f("dtype", dtype); }
};

}  // namespace heddle
