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

/// w [..., K] -> codes u32 [..., K*bits/32], scales [..., K/group_size], and of affine biases
struct GroupQuantize {
  static constexpr std::string_view kName = "group_quantize";
  GroupFormat format;
  bool operator==(const GroupQuantize&) const = default;
  void fields(auto&& f) const { format.fields(f); }
};

/// codes, scales, [biases] -> w of `dtype`
struct GroupDequantize {
  static constexpr std::string_view kName = "group_dequantize";
  GroupFormat format;
  DType dtype = DType::f32;
  bool operator==(const GroupDequantize&) const = default;
  void fields(auto&& f) const { format.fields(f), f("dtype", dtype); }
};

/// x [..., M, K], codes [..., N, K*bits/32] (with `transpose`; else [..., K, N*bits/32]), scales,
/// [biases], and with `gathers` x_indices and w_indices (into the flattened leading axes of x and
/// w, which broadcast) -> x w^T (or x w) [..., M, N] of x's dtype
struct GroupMatmul {
  static constexpr std::string_view kName = "group_matmul";
  GroupFormat format;
  bool transpose = true, gathers = false;
  bool operator==(const GroupMatmul&) const = default;
  void fields(auto&& f) const {
    format.fields(f), f("transpose", transpose), f("gathers", gathers);
  }
};

/// a [..., M, K], b [..., K, N], indices of a's and of b's flattened leading axes, of one shape
/// [I...] -> [I..., M, N]
struct GatherMatmul {
  static constexpr std::string_view kName = "gather_matmul";
  bool operator==(const GatherMatmul&) const = default;
  void fields(auto&&) const {}
};

/// a [M, K], b [K, N], segments [S..., 2] -> [S..., M, N]: a[:, s0:s1] b[s0:s1, :]
struct SegmentedMatmul {
  static constexpr std::string_view kName = "segmented_matmul";
  bool operator==(const SegmentedMatmul&) const = default;
  void fields(auto&&) const {}
};

/// encode: x floating -> u8, the nearest e4m3 (ties to even, beyond the range the largest).
/// decode: u8 -> `dtype`.
struct Fp8 {
  static constexpr std::string_view kName = "fp8";
  bool decode = false;
  DType dtype = DType::u8;
  bool operator==(const Fp8&) const = default;
  void fields(auto&& f) const { f("decode", decode), f("dtype", dtype); }
};

}  // namespace heddle
