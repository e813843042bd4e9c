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
#include "heddle/ops_shape.h"

namespace heddle {

// ---- Creation
Array arange(double start, double stop, double step = 1.0, DType dtype = DType::f32,
             std::source_location where = std::source_location::current());
Array arange(double stop, DType dtype = DType::f32,
             std::source_location where = std::source_location::current());
Array full(const Shape& shape, const Arg& value);
Array full(const Shape& shape, const Arg& value, DType dtype);
Array zeros(const Shape& shape, DType dtype = DType::f32,
            std::source_location where = std::source_location::current());
Array ones(const Shape& shape, DType dtype = DType::f32,
           std::source_location where = std::source_location::current());
Array zeros_like(const Arg& a);
Array ones_like(const Arg& a);

// ---- Shape. Negative axes count from the end; one extent of reshape may be -1.
Array reshape(const Arg& a, const Shape& shape);
Array flatten(const Arg& a, int start_axis = 0, int end_axis = -1);
Array transpose(const Arg& a);
Array transpose(const Arg& a, const Dims& axes);
Array swapaxes(const Arg& a, int axis1, int axis2);
Array moveaxis(const Arg& a, int source, int destination);
Array squeeze(const Arg& a);
Array squeeze(const Arg& a, const Dims& axes);
Array expand_dims(const Arg& a, const Dims& axes);
Array expand_dims(const Arg& a, int axis);
Array broadcast_to(const Arg& a, const Shape& shape);
/// a[start:stop:strides]; negative bounds count from the end and are clamped, as in Python. A
/// negative stride walks backwards; a stop below -extent then includes element 0.
Array slice(const Arg& a, const Dims& start, const Dims& stop);
Array slice(const Arg& a, const Dims& start, const Dims& stop, const Dims& strides);
/// `src` with src[start:stop:strides] replaced by `update`, which is cast to src's dtype and
/// broadcast. In src's memory when this was the only handle.
Array slice_update(const Arg& src, const Arg& update, const Dims& start, const Dims& stop);
Array slice_update(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                   const Dims& strides);
/// Element (i, j, ...) is element offset + i*strides[0] + j*strides[1] + ... of `a`, flattened; all
/// must be there. Strides may be negative or 0.
Array as_strided(const Arg& a, const Shape& shape, const Dims& strides, std::int64_t offset);
Array contiguous(const Arg& a);
Array copy(const Arg& a);
/// `inputs`, which come into being only after all of `dependencies` have: what those needed and
/// nobody holds is free again before what reads the results takes memory. Errors of dependencies
/// are errors of the results, but for those of work that is still in flight on a device. In a
/// graph, whose order is that of building, just `inputs`.
std::vector<Array> depends(const std::vector<Array>& inputs, const std::vector<Array>& dependencies,
                           std::source_location where = std::source_location::current());
Array concatenate(const std::vector<Array>& arrays, int axis = 0,
                  std::source_location where = std::source_location::current());
std::vector<Array> split(const Arg& a, int num_splits, int axis = 0);
/// a[:indices[0]], a[indices[0]:indices[1]], ... along `axis`.
std::vector<Array> split(const Arg& a, const std::vector<std::int64_t>& indices, int axis = 0);
Array stack(const std::vector<Array>& arrays, int axis = 0,
            std::source_location where = std::source_location::current());
Array repeat(const Arg& a, int repeats, int axis);

// ---- Types
Array astype(const Arg& a, DType dtype);
/// The bytes of `a` as another dtype; the last axis scales by the ratio of item sizes, and must
/// come out whole. A scalar only becomes what is as large. Neither to nor from block types; only
/// bool becomes bool.
Array view(const Arg& a, DType dtype);
/// f32 values of a block-quantised array.
Array dequantize(const Arg& a);

// ---- Element-wise, unary. Integer arguments of transcendental functions become f32.
Array abs(const Arg& a);
Array negative(const Arg& a);
Array operator-(const Arg& a);
Array sign(const Arg& a);
Array square(const Arg& a);
Array sqrt(const Arg& a);
Array rsqrt(const Arg& a);
Array reciprocal(const Arg& a);
Array exp(const Arg& a);
Array expm1(const Arg& a);
Array log(const Arg& a);
Array log2(const Arg& a);
Array log10(const Arg& a);
Array log1p(const Arg& a);
Array sin(const Arg& a);
Array cos(const Arg& a);
Array tan(const Arg& a);
Array sinh(const Arg& a);
Array cosh(const Arg& a);
Array tanh(const Arg& a);
Array arcsin(const Arg& a);
Array arccos(const Arg& a);
Array arctan(const Arg& a);
Array sigmoid(const Arg& a);
Array silu(const Arg& a);
Array gelu(const Arg& a);
Array gelu_tanh(const Arg& a);
Array relu(const Arg& a);
Array erf(const Arg& a);
Array floor(const Arg& a);
Array ceil(const Arg& a);
Array round(const Arg& a);
Array logical_not(const Arg& a);
Array isnan(const Arg& a);
Array isinf(const Arg& a);
Array isfinite(const Arg& a);
Array clip(const Arg& a, const std::optional<Array>& minimum, const std::optional<Array>& maximum);

// ---- Element-wise, binary
Array add(const Arg& a, const Arg& b);
Array subtract(const Arg& a, const Arg& b);
Array multiply(const Arg& a, const Arg& b);
Array divide(const Arg& a, const Arg& b);  // of integers: f32
Array floor_divide(const Arg& a, const Arg& b);
Array remainder(const Arg& a, const Arg& b);
Array power(const Arg& a, const Arg& b);
Array maximum(const Arg& a, const Arg& b);
Array minimum(const Arg& a, const Arg& b);
Array logaddexp(const Arg& a, const Arg& b);
Array arctan2(const Arg& a, const Arg& b);
Array logical_and(const Arg& a, const Arg& b);
Array logical_or(const Arg& a, const Arg& b);
Array bitwise_and(const Arg& a, const Arg& b);
Array bitwise_or(const Arg& a, const Arg& b);
Array bitwise_xor(const Arg& a, const Arg& b);
Array left_shift(const Arg& a, const Arg& b);
Array right_shift(const Arg& a, const Arg& b);
Array equal(const Arg& a, const Arg& b);
Array not_equal(const Arg& a, const Arg& b);
Array less(const Arg& a, const Arg& b);
Array less_equal(const Arg& a, const Arg& b);
Array greater(const Arg& a, const Arg& b);
Array greater_equal(const Arg& a, const Arg& b);
Array operator+(const Arg& a, const Arg& b);
Array operator-(const Arg& a, const Arg& b);
Array operator*(const Arg& a, const Arg& b);
Array operator/(const Arg& a, const Arg& b);
Array operator%(const Arg& a, const Arg& b);
Array operator==(const Arg& a, const Arg& b);
Array operator!=(const Arg& a, const Arg& b);
Array operator<(const Arg& a, const Arg& b);
Array operator<=(const Arg& a, const Arg& b);
Array operator>(const Arg& a, const Arg& b);
Array operator>=(const Arg& a, const Arg& b);
Array where(const Arg& condition, const Arg& x, const Arg& y);

// ---- Reductions. Without axes, over all of them. Sums and products of bool and small integers are
// i32, means of integers f32. softmax of integers is f32.
Array sum(const Arg& a, bool keepdims = false);
Array sum(const Arg& a, int axis, bool keepdims = false);
Array sum(const Arg& a, const Dims& axes, bool keepdims = false);
Array mean(const Arg& a, bool keepdims = false);
Array mean(const Arg& a, int axis, bool keepdims = false);
Array mean(const Arg& a, const Dims& axes, bool keepdims = false);
Array max(const Arg& a, bool keepdims = false);
Array max(const Arg& a, int axis, bool keepdims = false);
Array max(const Arg& a, const Dims& axes, bool keepdims = false);
Array min(const Arg& a, bool keepdims = false);
Array min(const Arg& a, int axis, bool keepdims = false);
Array min(const Arg& a, const Dims& axes, bool keepdims = false);
Array prod(const Arg& a, bool keepdims = false);
Array prod(const Arg& a, int axis, bool keepdims = false);
Array prod(const Arg& a, const Dims& axes, bool keepdims = false);
Array softmax(const Arg& a, int axis = -1);

// ---- Scans along an axis, or of all elements in row-major order. As in MLX, cumsum of bool is
// i32, all else keeps its dtype; logcumsumexp of integers is f32. From the end with `reverse`;
// without the element itself unless `inclusive`.
Array cumsum(const Arg& a, bool reverse = false, bool inclusive = true);
Array cumsum(const Arg& a, int axis, bool reverse = false, bool inclusive = true);
Array cumprod(const Arg& a, bool reverse = false, bool inclusive = true);
Array cumprod(const Arg& a, int axis, bool reverse = false, bool inclusive = true);
Array cummax(const Arg& a, bool reverse = false, bool inclusive = true);
Array cummax(const Arg& a, int axis, bool reverse = false, bool inclusive = true);
Array cummin(const Arg& a, bool reverse = false, bool inclusive = true);
Array cummin(const Arg& a, int axis, bool reverse = false, bool inclusive = true);
Array logcumsumexp(const Arg& a, bool reverse = false, bool inclusive = true);
Array logcumsumexp(const Arg& a, int axis, bool reverse = false, bool inclusive = true);

// ---- Padding and turning round
/// `low_pad_size[i]` elements before and `high_pad_size[i]` behind on axis axes[i]; `mode` is
/// "constant" (pad_value, cast to a's dtype) or "edge" (the nearest element).
Array pad(const Arg& a, const Dims& axes, const Shape& low_pad_size, const Shape& high_pad_size,
          const Arg& pad_value = Array(0), const std::string& mode = "constant");
/// (before, behind) for each axis.
Array pad(const Arg& a, const std::vector<std::pair<int, int>>& pad_width,
          const Arg& pad_value = Array(0), const std::string& mode = "constant");
/// The same on every axis.
Array pad(const Arg& a, const std::pair<int, int>& pad_width, const Arg& pad_value = Array(0),
          const std::string& mode = "constant");
Array pad(const Arg& a, int pad_width, const Arg& pad_value = Array(0),
          const std::string& mode = "constant");
/// Axes backwards: all of them, or those named.
Array flip(const Arg& a);
Array flip(const Arg& a, int axis);
Array flip(const Arg& a, const Dims& axes);

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

// ---- Products
Array matmul(const Arg& a, const Arg& b);
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
