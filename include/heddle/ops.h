// Functions on arrays. Names, argument order, promotion and defaults follow MLX's C++ API where it
// has the function, NumPy where it does not. All throw invalid_argument, naming the function and
// the shapes or dtypes at fault, when called; nothing is computed until it is needed. An Arg is an
// array or a scalar, and the line of the call, which errors name.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "heddle/array.h"
#include "heddle/ops_elementwise.h"
#include "heddle/ops_index.h"
#include "heddle/ops_llm.h"
#include "heddle/ops_order.h"
#include "heddle/ops_product.h"
#include "heddle/ops_quantized.h"
#include "heddle/ops_reduce.h"
#include "heddle/ops_shape.h"

namespace heddle {

// ---- Parts
/// `src` with src[start:stop:strides] replaced by `update`, which is cast to src's dtype and
/// broadcast. In src's memory when this was the only handle.
Array slice_update(const Arg& src, const Arg& update, const Dims& start, const Dims& stop);
Array slice_update(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                   const Dims& strides);

/// f32 values of a block-quantised array.
Array dequantize(const Arg& a);

// ---- Over spatial axes: inputs are [N, spatial..., C] with one to three of them. An empty Dims
// stands for ones (paddings: zeros), a Dims of one entry for the same on every axis.
/// Weights [O, spatial..., C / groups]; in the floating dtype that both promote to. Paddings may be
/// negative, which crops; `flip` reads the weights backwards. See the op Conv.
Array conv_general(const Arg& input, const Arg& weight, const Dims& stride = {},
                   const Dims& padding_lo = {}, const Dims& padding_hi = {},
                   const Dims& kernel_dilation = {}, const Dims& input_dilation = {},
                   int groups = 1, bool flip = false);
/// One padding for both ends.
Array conv_general(const Arg& input, const Arg& weight, const Dims& stride, const Dims& padding,
                   const Dims& kernel_dilation, const Dims& input_dilation, int groups,
                   bool flip = false);
Array conv1d(const Arg& input, const Arg& weight, int stride = 1, int padding = 0, int dilation = 1,
             int groups = 1);
Array conv2d(const Arg& input, const Arg& weight, const std::pair<int, int>& stride = {1, 1},
             const std::pair<int, int>& padding = {0, 0},
             const std::pair<int, int>& dilation = {1, 1}, int groups = 1);
Array conv3d(const Arg& input, const Arg& weight,
             const std::tuple<int, int, int>& stride = {1, 1, 1},
             const std::tuple<int, int, int>& padding = {0, 0, 0},
             const std::tuple<int, int, int>& dilation = {1, 1, 1}, int groups = 1);
/// The transposes of these: input_dilation is `stride`, and weights are read backwards.
/// `output_padding` adds outputs at the end.
Array conv_transpose1d(const Arg& input, const Arg& weight, int stride = 1, int padding = 0,
                       int dilation = 1, int output_padding = 0, int groups = 1);
Array conv_transpose2d(const Arg& input, const Arg& weight,
                       const std::pair<int, int>& stride = {1, 1},
                       const std::pair<int, int>& padding = {0, 0},
                       const std::pair<int, int>& dilation = {1, 1},
                       const std::pair<int, int>& output_padding = {0, 0}, int groups = 1);
Array conv_transpose3d(const Arg& input, const Arg& weight,
                       const std::tuple<int, int, int>& stride = {1, 1, 1},
                       const std::tuple<int, int, int>& padding = {0, 0, 0},
                       const std::tuple<int, int, int>& dilation = {1, 1, 1},
                       const std::tuple<int, int, int>& output_padding = {0, 0, 0}, int groups = 1);
/// [N, out..., window... * C]: what each window reads, taps in row-major order, channels innermost.
Array im2col(const Arg& a, const Dims& window, const Dims& stride = {}, const Dims& padding = {},
             const Dims& dilation = {});
/// The largest element or the mean of each window; without a stride, windows lie side by side.
/// Paddings are smaller than the window. Means count the padding's zeros if `count_padding`.
Array max_pool(const Arg& a, const Dims& window, const Dims& stride = {}, const Dims& padding = {});
Array mean_pool(const Arg& a, const Dims& window, const Dims& stride = {}, const Dims& padding = {},
                bool count_padding = true);
/// To `size` elements along the spatial axes. Pixels have an extent, or with `align_corners` the
/// outermost stay where they are. Linear resizing of integers is f32. See the op Resize.
Array resize(const Arg& a, const Dims& size, ResizeKind kind = ResizeKind::nearest,
             bool align_corners = false);

// ---- Products of rows and weights
/// x w^T for weights [out, in] of any float or block type, in f32; several weights share one
/// reading (and one rounding) of x.
Array linear(const Arg& x, const Arg& weight);
std::vector<Array> linear(const Arg& x, const std::vector<Array>& weights);
/// Rows of x [T, in] times weights[experts[t]]^T of weights [E, out, in], in f32: a mixture's
/// experts. An expert of -1 gives zeros; others outside [0, E) fail when evaluated. Quickest where
/// rows of one expert lie side by side.
Array grouped_linear(const Arg& x, const Arg& weights, const Arg& experts);

// ---- Language models
Array gated_multiply(const Arg& gate, const Arg& up, UnaryKind activation = UnaryKind::silu);
/// x [T, H, D] turned by the angles at positions [T].
Array rope(const Arg& x, const Arg& positions, const RopeAngles& angles,
           const std::optional<Array>& factors = std::nullopt);
/// x [T, H, D] turned by rows of tables cos, sin [P, dims/2]: row index[t], or row t without
/// `index`.
Array rope_table(const Arg& x, const Arg& cos, const Arg& sin, const std::optional<Array>& index,
                 RopeStyle style = RopeStyle::split_half);
/// The state's next version, with x[t] in row rows[t]; negative rows are left out, others beyond
/// the state fail when evaluated. Takes the place of `state`, in its memory when this was the only
/// handle: pass it with std::move.
Array write_rows(Array state, const Arg& x, const Arg& rows);
/// See the op Attend. Positions, sequences and rows outside the table and the states fail when
/// evaluated.
Array attend(const Arg& q, const Arg& k, const Arg& v, const Arg& block_table, const Arg& seq,
             const Arg& pos, const Arg& len, const Attend& params);

/// A selective state space (Mamba), in f32: x and dt [B, L, D], a [D, N], b and c [B, L, N] or in
/// groups [B, L, G, N], d [D], state [B, D, N]. Gives y [B, L, D] and the state after the last
/// step. See the op SelectiveScan.
std::pair<Array, Array> selective_scan(const Arg& x, const Arg& dt, const Arg& a, const Arg& b,
                                       const Arg& c, const std::optional<Array>& d,
                                       const Arg& state);

namespace fast {
/// Over the last axis. The result is of the type in which x, weight and bias meet, as in MLX.
Array rms_norm(const Arg& x, const std::optional<Array>& weight, float eps,
               const std::optional<Array>& bias = std::nullopt);
Array layer_norm(const Arg& x, const std::optional<Array>& weight, const std::optional<Array>& bias,
                 float eps);
/// layer_norm over `axis`, which weight and bias lie along.
Array channel_norm(const Arg& x, int axis, const std::optional<Array>& weight,
                   const std::optional<Array>& bias, float eps);
/// x [N, ..., C]: for each n, `groups` groups of neighbouring channels are normalised, over all
/// positions.
Array group_norm(const Arg& x, int groups, const std::optional<Array>& weight,
                 const std::optional<Array>& bias, float eps);
/// x [..., T, D] turned at positions offset, offset + 1, ... along T. `traditional` pairs features
/// (2i, 2i+1), else (i, i + dims/2). Pair i turns by position * scale / base^(2i/dims) or, given
/// `freqs` [dims/2] instead of `base`, by position * scale / freqs[i] (MLX's meaning: periods, not
/// frequencies).
Array rope(const Arg& x, int dims, bool traditional, std::optional<float> base, float scale,
           int offset, const std::optional<Array>& freqs = std::nullopt);
/// q [B, Hq, Sq, D], k and v [B, Hkv, Sk, D]. Without `scale`, D^-0.5. `mask_mode` is "", "causal"
/// (query i sees keys up to Sk - Sq + i) or, with a mask, "array"; `mask` broadcasts to
/// [B, Hq, Sq, Sk] and is boolean (true is seen) or additive.
Array scaled_dot_product_attention(const Arg& q, const Arg& k, const Arg& v,
                                   std::optional<float> scale = std::nullopt,
                                   const std::string& mask_mode = "",
                                   const std::optional<Array>& mask = std::nullopt);
}  // namespace fast

/// As scaled_dot_product_attention, with every choice that the op has.
Array attention(const Arg& q, const Arg& k, const Arg& v, const Attention& params,
                const std::optional<Array>& mask = std::nullopt);

}  // namespace heddle
