// Functions on arrays. Names, argument order, promotion and defaults follow MLX's C++ API where it
// has the function, NumPy where it does not. All throw invalid_argument, naming the function and
// the shapes or dtypes at fault, when called; nothing is computed until it is needed.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "heddle/array.h"

namespace heddle {

// ---- Creation
Array arange(double start, double stop, double step = 1.0, DType dtype = DType::f32);
Array arange(double stop, DType dtype = DType::f32);
Array full(const Shape& shape, const Array& value);
Array full(const Shape& shape, const Array& value, DType dtype);
Array zeros(const Shape& shape, DType dtype = DType::f32);
Array ones(const Shape& shape, DType dtype = DType::f32);
Array zeros_like(const Array& a);
Array ones_like(const Array& a);

// ---- Shape. Negative axes count from the end; one extent of reshape may be -1.
Array reshape(const Array& a, const Shape& shape);
Array flatten(const Array& a, int start_axis = 0, int end_axis = -1);
Array transpose(const Array& a);
Array transpose(const Array& a, const Dims& axes);
Array swapaxes(const Array& a, int axis1, int axis2);
Array moveaxis(const Array& a, int source, int destination);
Array squeeze(const Array& a);
Array squeeze(const Array& a, const Dims& axes);
Array expand_dims(const Array& a, const Dims& axes);
Array expand_dims(const Array& a, int axis);
Array broadcast_to(const Array& a, const Shape& shape);
/// a[start:stop:strides]; negative bounds count from the end and are clamped, as in Python. A
/// negative stride walks backwards; a stop below -extent then includes element 0.
Array slice(const Array& a, const Dims& start, const Dims& stop);
Array slice(const Array& a, const Dims& start, const Dims& stop, const Dims& strides);
/// `src` with src[start:stop:strides] replaced by `update`, which is cast to src's dtype and
/// broadcast. In src's memory when this was the only handle.
Array slice_update(const Array& src, const Array& update, const Dims& start, const Dims& stop);
Array slice_update(const Array& src, const Array& update, const Dims& start, const Dims& stop,
                   const Dims& strides);
/// Element (i, j, ...) is element offset + i*strides[0] + j*strides[1] + ... of `a`, flattened; all
/// must be there. Strides may be negative or 0.
Array as_strided(const Array& a, const Shape& shape, const Dims& strides, std::int64_t offset);
Array contiguous(const Array& a);
Array copy(const Array& a);
/// `inputs`, which come into being only after all of `dependencies` have: what those needed and
/// nobody holds is free again before what reads the results takes memory. In a graph, whose order
/// is that of building, just `inputs`.
std::vector<Array> depends(const std::vector<Array>& inputs,
                           const std::vector<Array>& dependencies);
Array concatenate(const std::vector<Array>& arrays, int axis = 0);
std::vector<Array> split(const Array& a, int num_splits, int axis = 0);
/// a[:indices[0]], a[indices[0]:indices[1]], ... along `axis`.
std::vector<Array> split(const Array& a, const std::vector<std::int64_t>& indices, int axis = 0);
Array stack(const std::vector<Array>& arrays, int axis = 0);
Array repeat(const Array& a, int repeats, int axis);
/// Elements of `a` along `axis` at `indices` (integers in [0, extent); others fail when evaluated).
/// Rows of block-quantised tables (axis 0) come out as f32.
Array take(const Array& a, const Array& indices, int axis = 0);

// ---- Types
Array astype(const Array& a, DType dtype);
/// The bytes of `a` as another dtype; the last axis scales by the ratio of item sizes, and must
/// come out whole. A scalar only becomes what is as large; no block types. As bool, bytes are 0
/// or 1.
Array view(const Array& a, DType dtype);
/// f32 values of a block-quantised array.
Array dequantize(const Array& a);

// ---- Element-wise, unary. Integer arguments of transcendental functions become f32.
Array abs(const Array& a);
Array negative(const Array& a);
Array operator-(const Array& a);
Array sign(const Array& a);
Array square(const Array& a);
Array sqrt(const Array& a);
Array rsqrt(const Array& a);
Array reciprocal(const Array& a);
Array exp(const Array& a);
Array expm1(const Array& a);
Array log(const Array& a);
Array log2(const Array& a);
Array log10(const Array& a);
Array log1p(const Array& a);
Array sin(const Array& a);
Array cos(const Array& a);
Array tan(const Array& a);
Array sinh(const Array& a);
Array cosh(const Array& a);
Array tanh(const Array& a);
Array arcsin(const Array& a);
Array arccos(const Array& a);
Array arctan(const Array& a);
Array sigmoid(const Array& a);
Array silu(const Array& a);
Array gelu(const Array& a);
Array gelu_tanh(const Array& a);
Array relu(const Array& a);
Array erf(const Array& a);
Array floor(const Array& a);
Array ceil(const Array& a);
Array round(const Array& a);
Array logical_not(const Array& a);
Array isnan(const Array& a);
Array isinf(const Array& a);
Array isfinite(const Array& a);
Array clip(const Array& a, const std::optional<Array>& minimum,
           const std::optional<Array>& maximum);

// ---- Element-wise, binary
Array add(const Array& a, const Array& b);
Array subtract(const Array& a, const Array& b);
Array multiply(const Array& a, const Array& b);
Array divide(const Array& a, const Array& b);  // of integers: f32
Array floor_divide(const Array& a, const Array& b);
Array remainder(const Array& a, const Array& b);
Array power(const Array& a, const Array& b);
Array maximum(const Array& a, const Array& b);
Array minimum(const Array& a, const Array& b);
Array logaddexp(const Array& a, const Array& b);
Array arctan2(const Array& a, const Array& b);
Array logical_and(const Array& a, const Array& b);
Array logical_or(const Array& a, const Array& b);
Array bitwise_and(const Array& a, const Array& b);
Array bitwise_or(const Array& a, const Array& b);
Array bitwise_xor(const Array& a, const Array& b);
Array left_shift(const Array& a, const Array& b);
Array right_shift(const Array& a, const Array& b);
Array equal(const Array& a, const Array& b);
Array not_equal(const Array& a, const Array& b);
Array less(const Array& a, const Array& b);
Array less_equal(const Array& a, const Array& b);
Array greater(const Array& a, const Array& b);
Array greater_equal(const Array& a, const Array& b);
Array operator+(const Array& a, const Array& b);
Array operator-(const Array& a, const Array& b);
Array operator*(const Array& a, const Array& b);
Array operator/(const Array& a, const Array& b);
Array operator%(const Array& a, const Array& b);
Array operator==(const Array& a, const Array& b);
Array operator!=(const Array& a, const Array& b);
Array operator<(const Array& a, const Array& b);
Array operator<=(const Array& a, const Array& b);
Array operator>(const Array& a, const Array& b);
Array operator>=(const Array& a, const Array& b);
Array where(const Array& condition, const Array& x, const Array& y);

// ---- Reductions. Without axes, over all of them. Sums and products of bool and small integers are
// i32, means of integers f32. softmax of integers is f32.
Array sum(const Array& a, bool keepdims = false);
Array sum(const Array& a, int axis, bool keepdims = false);
Array sum(const Array& a, const Dims& axes, bool keepdims = false);
Array mean(const Array& a, bool keepdims = false);
Array mean(const Array& a, int axis, bool keepdims = false);
Array mean(const Array& a, const Dims& axes, bool keepdims = false);
Array max(const Array& a, bool keepdims = false);
Array max(const Array& a, int axis, bool keepdims = false);
Array max(const Array& a, const Dims& axes, bool keepdims = false);
Array min(const Array& a, bool keepdims = false);
Array min(const Array& a, int axis, bool keepdims = false);
Array min(const Array& a, const Dims& axes, bool keepdims = false);
Array prod(const Array& a, bool keepdims = false);
Array prod(const Array& a, int axis, bool keepdims = false);
Array prod(const Array& a, const Dims& axes, bool keepdims = false);
Array softmax(const Array& a, int axis = -1);

// ---- Products
Array matmul(const Array& a, const Array& b);
/// x w^T for weights [out, in] of any float or block type, in f32; several weights share one
/// reading (and one rounding) of x.
Array linear(const Array& x, const Array& weight);
std::vector<Array> linear(const Array& x, const std::vector<Array>& weights);

// ---- Language models
Array gated_multiply(const Array& gate, const Array& up, UnaryKind activation = UnaryKind::silu);
/// x [T, H, D] turned by the angles at positions [T].
Array rope(const Array& x, const Array& positions, const RopeAngles& angles,
           const std::optional<Array>& factors = std::nullopt);
/// x [T, H, D] turned by rows of tables cos, sin [P, dims/2]: row index[t], or row t without
/// `index`.
Array rope_table(const Array& x, const Array& cos, const Array& sin,
                 const std::optional<Array>& index, RopeStyle style = RopeStyle::split_half);
/// The state's next version, with x[t] in row rows[t]; negative rows are left out, others beyond
/// the state fail when evaluated. Takes the place of `state`, in its memory when this was the only
/// handle: pass it with std::move.
Array write_rows(Array state, const Array& x, const Array& rows);
/// See the op Attend. Positions, sequences and rows outside the table and the states fail when
/// evaluated.
Array attend(const Array& q, const Array& k, const Array& v, const Array& block_table,
             const Array& seq, const Array& pos, const Array& len, const Attend& params);

namespace fast {
/// Over the last axis. The result is of the type in which x, weight and bias meet, as in MLX.
Array rms_norm(const Array& x, const std::optional<Array>& weight, float eps,
               const std::optional<Array>& bias = std::nullopt);
Array layer_norm(const Array& x, const std::optional<Array>& weight,
                 const std::optional<Array>& bias, float eps);
/// x [..., T, D] turned at positions offset, offset + 1, ... along T. `traditional` pairs features
/// (2i, 2i+1), else (i, i + dims/2). Pair i turns by position * scale / base^(2i/dims) or, given
/// `freqs` [dims/2] instead of `base`, by position * scale / freqs[i] (MLX's meaning: periods, not
/// frequencies).
Array rope(const Array& x, int dims, bool traditional, std::optional<float> base, float scale,
           int offset, const std::optional<Array>& freqs = std::nullopt);
/// q [B, Hq, Sq, D], k and v [B, Hkv, Sk, D]. Without `scale`, D^-0.5. `mask_mode` is "", "causal"
/// (query i sees keys up to Sk - Sq + i) or, with a mask, "array"; `mask` broadcasts to
/// [B, Hq, Sq, Sk] and is boolean (true is seen) or additive.
Array scaled_dot_product_attention(const Array& q, const Array& k, const Array& v,
                                   std::optional<float> scale = std::nullopt,
                                   const std::string& mask_mode = "",
                                   const std::optional<Array>& mask = std::nullopt);
}  // namespace fast

/// As scaled_dot_product_attention, with every choice that the op has.
Array attention(const Array& q, const Array& k, const Array& v, const Attention& params,
                const std::optional<Array>& mask = std::nullopt);

}  // namespace heddle
