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

}  // namespace heddle
