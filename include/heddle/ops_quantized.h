// MLX's quantisation by groups, and products with chosen matrices. See ops.h for what all functions
// have in common.
//
// Modes, with the group sizes and bits they take (the first is the default): "affine" (64, 32, 128;
// 4, 2, 3, 5, 6, 8), "mxfp4" (32; 4), "mxfp8" (32; 8), "nvfp4" (16; 4). What lies quantised is as
// MLX writes it: see GroupFormat and GroupQuantize. Values are f32, f16 or bf16.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "heddle/array.h"

namespace heddle {

/// f32 values of a block-quantised (GGUF) array.
Array dequantize(const Arg& a);

/// w [..., M, K] -> codes u32 [..., M, K*bits/32], scales [..., M, K/group_size], and of "affine"
/// biases. `global_scale` (f32, one number; of "nvfp4" only) is the largest magnitude that the
/// scales then relate to: values are divided by global_scale / (448 * 6).
std::vector<Array> quantize(const Arg& w, std::optional<int> group_size = std::nullopt,
                            std::optional<int> bits = std::nullopt,
                            const std::string& mode = "affine",
                            const std::optional<Array>& global_scale = std::nullopt);
/// The values again, as `dtype`: without it that of scales and biases, and bf16 of other modes.
Array dequantize(const Arg& w, const Array& scales,
                 const std::optional<Array>& biases = std::nullopt,
                 std::optional<int> group_size = std::nullopt,
                 std::optional<int> bits = std::nullopt, const std::string& mode = "affine",
                 const std::optional<Array>& global_scale = std::nullopt,
                 std::optional<DType> dtype = std::nullopt);
/// x w^T (or, without `transpose`, x w), with x exact and sums in f32; of the type in which x,
/// scales and biases meet, and x's in other modes. Batch axes broadcast.
Array quantized_matmul(const Arg& x, const Array& w, const Array& scales,
                       const std::optional<Array>& biases = std::nullopt, bool transpose = true,
                       std::optional<int> group_size = std::nullopt,
                       std::optional<int> bits = std::nullopt, const std::string& mode = "affine");
/// x w^T with x [..., K] quantised on the way, and w [N, K] too where it comes without scales. Not
/// "affine". Both global scales, or neither. Of x's type.
Array qqmm(const Arg& x, const Array& w, const std::optional<Array>& w_scales = std::nullopt,
           std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
           const std::string& mode = "nvfp4",
           const std::optional<Array>& global_scale_x = std::nullopt,
           const std::optional<Array>& global_scale_w = std::nullopt);

// ---- Matrices chosen by indices into the flattened batch axes of the left and of the right
// operand; the indices broadcast. Without one, those of all matrices in order, and without any, the
// plain product. Indices that lie outside fail when evaluated. `sorted_indices` is for MLX's sake:
// neighbours that choose one matrix share its reading in any case.

Array gather_mm(const Arg& a, const Arg& b, const std::optional<Array>& lhs_indices = std::nullopt,
                const std::optional<Array>& rhs_indices = std::nullopt,
                bool sorted_indices = false);
Array gather_qmm(const Arg& x, const Array& w, const Array& scales,
                 const std::optional<Array>& biases = std::nullopt,
                 const std::optional<Array>& lhs_indices = std::nullopt,
                 const std::optional<Array>& rhs_indices = std::nullopt, bool transpose = true,
                 std::optional<int> group_size = std::nullopt,
                 std::optional<int> bits = std::nullopt, const std::string& mode = "affine",
                 bool sorted_indices = false);
/// As qqmm. `global_scale_w` may hold a number for each matrix.
Array gather_qqmm(const Arg& x, const Array& w, const std::optional<Array>& w_scales = std::nullopt,
                  const std::optional<Array>& lhs_indices = std::nullopt,
                  const std::optional<Array>& rhs_indices = std::nullopt,
                  std::optional<int> group_size = std::nullopt,
                  std::optional<int> bits = std::nullopt, const std::string& mode = "nvfp4",
                  const std::optional<Array>& global_scale_x = std::nullopt,
                  const std::optional<Array>& global_scale_w = std::nullopt,
                  bool sorted_indices = false);
/// matmul where blocks of block_size (32 or 64) by block_size of the operands and of the result are
/// multiplied by masks: of the result [..., M/bs, N/bs], of a [..., M/bs, K/bs], of b
/// [..., K/bs, N/bs], all rounded up. What a boolean mask hides is 0, whatever it was.
Array block_masked_mm(const Arg& a, const Arg& b, int block_size,
                      const std::optional<Array>& mask_out = std::nullopt,
                      const std::optional<Array>& mask_lhs = std::nullopt,
                      const std::optional<Array>& mask_rhs = std::nullopt);
/// a [M, K], b [K, N], segments [..., 2] -> [..., M, N]: a[:, first:last] b[first:last, :] for each
/// (first, last). Segments that are not within [0, K] in order fail when evaluated.
Array segmented_mm(const Arg& a, const Arg& b, const Arg& segments);

// ---- e4m3 floats of 8 bits
/// The nearest, ties to even; 448 beyond the range and for NaN. u8.
Array to_fp8(const Arg& x);
Array from_fp8(const Arg& x, DType dtype);

}  // namespace heddle
