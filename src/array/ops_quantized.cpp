// MLX's quantisation by groups, and products with chosen matrices.
#include "heddle/ops_quantized.h"

#include <algorithm>

#include "array/ops_common.h"

namespace heddle {

namespace {

// What the scales of nvfp4 stand for: codes up to 6 and scales up to 448, of a whole tensor.
constexpr float kGlobalRange = 448.0f * 6.0f;

template <class... Args>
void must(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  require(condition, ErrorCode::invalid_argument, format, std::forward<Args>(args)...);
}

// ---- Modes

QuantMode mode_from(const std::string& name) {
  using enum QuantMode;
  for (const QuantMode mode : {affine, mxfp4, mxfp8, nvfp4}) {
    if (name == to_string(mode)) return mode;
  }
  fail(ErrorCode::invalid_argument, "mode \"{}\"; it must be affine, mxfp4, mxfp8 or nvfp4", name);
}

GroupFormat format_of(const std::string& mode, std::optional<int> group_size,
                      std::optional<int> bits) {
  GroupFormat format{mode_from(mode), 64, 4};
  if (format.mode == QuantMode::nvfp4) format.group_size = 16;
  if (format.mode == QuantMode::mxfp4 || format.mode == QuantMode::mxfp8) format.group_size = 32;
  if (format.mode == QuantMode::mxfp8) format.bits = 8;
  if (group_size) format.group_size = *group_size;
  if (bits) format.bits = *bits;
  return format;
}

bool is_affine(const GroupFormat& format) {
  return format.mode == QuantMode::affine;
}

/// The factor that a global scale means, f32 [] or of the shape given.
std::optional<Array> global_factor(const GroupFormat& format, const std::optional<Array>& scale,
                                   const char* what) {
  if (!scale) return std::nullopt;
  must(format.mode == QuantMode::nvfp4, "{} is given; only nvfp4 has one, not {}", what,
       to_string(format.mode));
  must(scale->size() == 1 && scale->dtype() == DType::f32, "{} is {}; it must be one f32", what,
       scale->spec());
  return divide(reshape(*scale, {}), kGlobalRange);
}

/// Codes, scales and, of affine, biases.
std::vector<Array> group_operands(const GroupFormat& format, const Array& w, const Array& scales,
                                  const std::optional<Array>& biases) {
  if (!is_affine(format)) {
    must(!biases, "biases are given; {} has none", to_string(format.mode));
    return {w, scales};
  }
  must(biases.has_value(), "affine groups have biases; none are given");
  const DType dtype = promote_types(scales.dtype(), biases->dtype());
  return {w, astype(scales, dtype), astype(*biases, dtype)};
}

/// The type of a product: that in which x, scales and biases meet, and x's without biases.
DType product_dtype(const Array& x, const std::vector<Array>& groups) {
  return groups.size() == 3 ? promote_types(x.dtype(), groups[1].dtype()) : x.dtype();
}

void check_matrix(const Array& a, const char* what) {
  must(a.ndim() >= 2, "{} is {}; it must have 2 dimensions at least", what, a.spec());
}

// ---- Chosen matrices

/// [B, M, K] for [..., M, K]
Array flat_batch(const Array& a) {
  if (a.ndim() == 3) return a;
  if (a.ndim() == 2) return expand_dims(a, 0);
  std::int64_t batch = 1;
  for (std::size_t i = 0; i + 2 < a.ndim(); ++i) batch *= a.shape()[i];
  return reshape(a, {batch, a.shape(-2), a.shape(-1)});
}

Array indices_or_all(const std::optional<Array>& indices, const Array& matrices, const char* what) {
  if (indices) {
    must(is_integer(indices->dtype()), "{} are {}; they must be of integers", what,
         indices->spec());
    return astype(*indices, DType::u32);
  }
  Shape batch = matrices.shape();
  batch.erase(batch.size() - 1);
  batch.erase(batch.size() - 1);
  const Array all = heddle::apply(Arange{0, 1, elements(batch), DType::u32}, {});
  return reshape(all, batch);
}

struct Chosen {
  Array lhs, rhs;
};

Chosen chosen_matrices(const std::optional<Array>& lhs, const Array& a,
                       const std::optional<Array>& rhs, const Array& b) {
  const Array left = indices_or_all(lhs, a, "lhs_indices");
  const Array right = indices_or_all(rhs, b, "rhs_indices");
  const Shape shape = broadcast_shapes(left.shape(), right.shape());
  return {contiguous(broadcast_to(left, shape)), contiguous(broadcast_to(right, shape))};
}

Array gather_groups(const GroupFormat& format, bool transpose, const Array& x,
                    const std::vector<Array>& groups, const std::optional<Array>& lhs_indices,
                    const std::optional<Array>& rhs_indices, DType dtype) {
  check_matrix(x, "x");
  check_matrix(groups[0], "w");
  const Chosen chosen = chosen_matrices(lhs_indices, x, rhs_indices, groups[0]);
  std::vector<Array> inputs{flat_batch(astype(x, dtype))};
  for (const Array& group : groups) {
    check_matrix(group, "each of w, scales and biases");
    inputs.push_back(flat_batch(group));
  }
  inputs.push_back(chosen.lhs);
  inputs.push_back(chosen.rhs);
  return heddle::apply(GroupMatmul{format, transpose, true}, std::move(inputs));
}

Array group_matmul(const GroupFormat& format, bool transpose, const Array& x,
                   const std::vector<Array>& groups, DType dtype) {
  std::vector<Array> inputs{astype(x, dtype)};
  inputs.insert(inputs.end(), groups.begin(), groups.end());
  return heddle::apply(GroupMatmul{format, transpose, false}, std::move(inputs));
}

// ---- Activations that are quantised on the way

/// x as quantised and read again, in f32. Of nvfp4 relative to `factor`, which is left out.
Array rounded(const GroupFormat& format, const Array& x, const std::optional<Array>& factor) {
  const Array values = astype(x, DType::f32);
  const Array scaled = factor ? divide(values, *factor) : values;
  const std::vector<Array> groups = apply_multi(GroupQuantize{format}, {scaled});
  return heddle::apply(GroupDequantize{format, DType::f32}, groups);
}

struct QuantizedOperands {
  Array x;               // rounded
  std::vector<Array> w;  // codes and scales
};

void check_activations(const GroupFormat& format, const Array& x, const Array& w) {
  must(!is_affine(format), "affine; x can be quantised in mxfp4, mxfp8 and nvfp4");
  for (const auto& [operand, what] : {std::pair{&x, "x"}, {&w, "w"}}) {
    const DType dtype = operand->dtype();
    const bool codes = operand == &w && dtype == DType::u32;
    must(codes || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16,
         "{} is {}; it must be f32, f16 or bf16{}", what, operand->spec(),
         operand == &w ? ", or codes in u32" : "");
  }
}

/// `factor_w` is one number, or one for each matrix, and is not applied to codes.
QuantizedOperands quantized_operands(const GroupFormat& format, const Array& x, const Array& w,
                                     const std::optional<Array>& scales,
                                     const std::optional<Array>& factor_x,
                                     const std::optional<Array>& factor_w) {
  check_activations(format, x, w);
  must(factor_x.has_value() == factor_w.has_value(),
       "a global scale of {} alone; give both or neither", factor_x ? "x" : "w");
  std::vector<Array> groups;
  if (w.dtype() == DType::u32) {
    must(scales.has_value(), "w is quantised ({}) and has no scales", w.spec());
    groups = {w, *scales};
  } else {
    must(!scales, "scales are given, but w is {}: not quantised", w.spec());
    const Array values = astype(w, DType::f32);
    groups = apply_multi(GroupQuantize{format}, {factor_w ? divide(values, *factor_w) : values});
  }
  return {rounded(format, x, factor_x), groups};
}

}  // namespace

std::vector<Array> quantize(const Arg& w, std::optional<int> group_size, std::optional<int> bits,
                            const std::string& mode, const std::optional<Array>& global_scale) {
  return within("quantize", w, [&]() -> std::vector<Array> {
    const GroupFormat format = format_of(mode, group_size, bits);
    check_matrix(w, "w");
    const std::optional<Array> factor = global_factor(format, global_scale, "global_scale");
    const Array values = factor ? divide(astype(w, DType::f32), *factor) : w.array();
    return apply_multi(GroupQuantize{format}, {values});
  });
}

Array dequantize(const Arg& w, const Array& scales, const std::optional<Array>& biases,
                 std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                 const std::optional<Array>& global_scale, std::optional<DType> dtype) {
  return within("dequantize", w, [&]() -> Array {
    const GroupFormat format = format_of(mode, group_size, bits);
    check_matrix(w, "w");
    const std::vector<Array> groups = group_operands(format, w, scales, biases);
    const DType result = dtype.value_or(is_affine(format) ? groups[1].dtype() : DType::bf16);
    const std::optional<Array> factor = global_factor(format, global_scale, "global_scale");
    const Array values =
        heddle::apply(GroupDequantize{format, factor ? DType::f32 : result}, groups);
    return factor ? astype(multiply(values, *factor), result) : values;
  });
}

Array quantized_matmul(const Arg& x, const Array& w, const Array& scales,
                       const std::optional<Array>& biases, bool transpose,
                       std::optional<int> group_size, std::optional<int> bits,
                       const std::string& mode) {
  return within("quantized_matmul", x, [&]() -> Array {
    const GroupFormat format = format_of(mode, group_size, bits);
    const std::vector<Array> groups = group_operands(format, w, scales, biases);
    return group_matmul(format, transpose, x, groups, product_dtype(x, groups));
  });
}

Array qqmm(const Arg& x, const Array& w, const std::optional<Array>& w_scales,
           std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
           const std::optional<Array>& global_scale_x, const std::optional<Array>& global_scale_w) {
  return within("qqmm", x, [&]() -> Array {
    const GroupFormat format = format_of(mode, group_size, bits);
    must(w.ndim() == 2, "w is {}; it must be a matrix", w.spec());
    must(x.ndim() >= 1, "x is {}; it must have a dimension at least", x.spec());
    const auto factor_x = global_factor(format, global_scale_x, "global_scale_x");
    const auto factor_w = global_factor(format, global_scale_w, "global_scale_w");
    const QuantizedOperands q = quantized_operands(format, x, w, w_scales, factor_x, factor_w);
    Array product = group_matmul(format, true, q.x, q.w, DType::f32);
    if (factor_x) product = multiply(product, multiply(*factor_x, *factor_w));
    return astype(product, x.dtype());
  });
}

Array gather_mm(const Arg& a, const Arg& b, const std::optional<Array>& lhs_indices,
                const std::optional<Array>& rhs_indices, bool) {
  return within("gather_mm", a, [&]() -> Array {
    if (!lhs_indices && !rhs_indices) return matmul(a, b);
    must(a.ndim() > 0 && b.ndim() > 0, "{} and {}; each must have a dimension at least", a.spec(),
         b.spec());
    const DType dtype = promote_types(a.dtype(), b.dtype());
    const Array left = a.ndim() == 1 ? expand_dims(a, 0) : a.array();
    const Array right = b.ndim() == 1 ? expand_dims(b, 1) : b.array();
    const Chosen chosen = chosen_matrices(lhs_indices, left, rhs_indices, right);
    Array product =
        heddle::apply(GatherMatmul{}, {flat_batch(astype(left, dtype)),
                                       flat_batch(astype(right, dtype)), chosen.lhs, chosen.rhs});
    if (b.ndim() == 1) product = squeeze(product, Dims{-1});
    if (a.ndim() == 1) product = squeeze(product, Dims{b.ndim() == 1 ? -1 : -2});
    return product;
  });
}

Array gather_qmm(const Arg& x, const Array& w, const Array& scales,
                 const std::optional<Array>& biases, const std::optional<Array>& lhs_indices,
                 const std::optional<Array>& rhs_indices, bool transpose,
                 std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                 bool) {
  return within("gather_qmm", x, [&]() -> Array {
    const GroupFormat format = format_of(mode, group_size, bits);
    const std::vector<Array> groups = group_operands(format, w, scales, biases);
    const DType dtype = product_dtype(x, groups);
    if (!lhs_indices && !rhs_indices) return group_matmul(format, transpose, x, groups, dtype);
    return gather_groups(format, transpose, x, groups, lhs_indices, rhs_indices, dtype);
  });
}

Array gather_qqmm(const Arg& x, const Array& w, const std::optional<Array>& w_scales,
                  const std::optional<Array>& lhs_indices, const std::optional<Array>& rhs_indices,
                  std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                  const std::optional<Array>& global_scale_x,
                  const std::optional<Array>& global_scale_w, bool) {
  return within("gather_qqmm", x, [&]() -> Array {
    const GroupFormat format = format_of(mode, group_size, bits);
    check_matrix(x, "x");
    check_matrix(w, "w");
    const auto factor_x = global_factor(format, global_scale_x, "global_scale_x");
    // One number, or one for each matrix: [B..., 1, 1] beside w.
    std::optional<Array> factor_w;
    const bool for_each = global_scale_w && global_scale_w->size() != 1;
    if (for_each) {
      must(format.mode == QuantMode::nvfp4 && global_scale_w->dtype() == DType::f32 &&
               global_scale_w->size() ==
                   elements(w.shape()) / std::max<std::int64_t>(1, w.shape(-1) * w.shape(-2)),
           "global_scale_w is {}; it must be f32, of nvfp4, and one number or one for each matrix "
           "of w {}",
           global_scale_w->spec(), w.spec());
      Shape beside = w.shape();
      beside[beside.size() - 1] = beside[beside.size() - 2] = 1;
      factor_w = divide(reshape(*global_scale_w, beside), kGlobalRange);
    } else {
      factor_w = global_factor(format, global_scale_w, "global_scale_w");
    }
    const QuantizedOperands q = quantized_operands(format, x, w, w_scales, factor_x, factor_w);
    const Chosen chosen = chosen_matrices(lhs_indices, x, rhs_indices, w);
    Array product = gather_groups(format, true, q.x, q.w, chosen.lhs, chosen.rhs, DType::f32);
    if (factor_x) {
      Array of_w = *factor_w;
      if (for_each) {
        of_w = expand_dims(take(flatten(of_w), chosen.rhs), Dims{-2, -1});
      }
      product = multiply(product, multiply(*factor_x, of_w));
    }
    return astype(product, x.dtype());
  });
}

// ---- Blocks that masks hide

namespace {

/// A mask of blocks as one of elements: [..., rows, columns], for `given`.
Array mask_of_elements(const Array& mask, std::int64_t block, const Array& a, const Array& given,
                       const char* what) {
  const std::int64_t rows = a.shape(-2), columns = a.shape(-1);
  const std::int64_t tall = (rows + block - 1) / block, wide = (columns + block - 1) / block;
  must(mask.ndim() >= 2 && mask.ndim() + 2 <= kMaxRank, "{} is {}; it must have 2 to {} dimensions",
       what, mask.spec(), kMaxRank - 2);
  Shape batch = mask.shape();
  const bool fits = (batch[batch.size() - 2] == tall || batch[batch.size() - 2] == 1) &&
                    (batch.back() == wide || batch.back() == 1);
  must(fits, "{} is {}; for {} in blocks of {} it must be [..., {}, {}]", what, mask.spec(),
       given.spec(), block, tall, wide);
  batch.erase(batch.size() - 1);
  batch.erase(batch.size() - 1);
  const auto with = [&](std::initializer_list<std::int64_t> last) {
    Shape shape = batch;
    for (const std::int64_t extent : last) shape.push_back(extent);
    return shape;
  };
  const Array blocks = broadcast_to(mask, with({tall, wide}));
  const Array apart = reshape(blocks, with({tall, 1, wide, 1}));
  const Array each = reshape(broadcast_to(apart, with({tall, block, wide, block})),
                             with({tall * block, wide * block}));
  const Dims start(batch.size() + 2, 0);
  return slice(each, start, with({rows, columns}));
}

Array masked(const Array& a, const std::optional<Array>& mask, int block, const Array& given,
             const char* what) {
  if (!mask) return a;
  const Array each = mask_of_elements(*mask, block, a, given, what);
  if (mask->dtype() == DType::bool_) return where(each, a, zeros({}, a.dtype()));
  return multiply(a, astype(each, a.dtype()));
}

}  // namespace

Array block_masked_mm(const Arg& a, const Arg& b, int block_size,
                      const std::optional<Array>& mask_out, const std::optional<Array>& mask_lhs,
                      const std::optional<Array>& mask_rhs) {
  return within("block_masked_mm", a, [&]() -> Array {
    if (!mask_out && !mask_lhs && !mask_rhs) return matmul(a, b);
    must(block_size == 32 || block_size == 64, "blocks of {}; they must be of 32 or 64",
         block_size);
    must(a.ndim() > 0 && b.ndim() > 0, "{} and {}; each must have a dimension at least", a.spec(),
         b.spec());
    const DType dtype = promote_types(a.dtype(), b.dtype());
    must(is_floating(dtype), "{} and {}; they must meet in a floating type", a.spec(), b.spec());
    for (const auto* mask : {&mask_out, &mask_lhs, &mask_rhs}) {
      if (!*mask) continue;
      must((*mask)->dtype() != DType::complex64 && !is_block((*mask)->dtype()),
           "a mask is {}; it must be bool or real", (*mask)->spec());
    }
    const auto expanded = [&](const std::optional<Array>& mask, bool first, int axis) {
      return mask && first ? std::optional<Array>(expand_dims(*mask, axis)) : mask;
    };
    const bool row = a.ndim() == 1, column = b.ndim() == 1;
    const Array left = astype(row ? expand_dims(a, 0) : a.array(), dtype);
    const Array right = astype(column ? expand_dims(b, 1) : b.array(), dtype);
    const Array product =
        matmul(masked(left, expanded(mask_lhs, row, -2), block_size, a, "mask_lhs"),
               masked(right, expanded(mask_rhs, column, -1), block_size, b, "mask_rhs"));
    std::optional<Array> of_result = expanded(expanded(mask_out, column, -1), row, -2);
    Array result = masked(product, of_result, block_size, product, "mask_out");
    if (column) result = squeeze(result, Dims{-1});
    if (row) result = squeeze(result, Dims{column ? -1 : -2});
    return result;
  });
}

Array segmented_mm(const Arg& a, const Arg& b, const Arg& segments) {
  return within("segmented_mm", a, [&]() -> Array {
    must(is_integer(segments.dtype()), "the segments are {}; they must be of integers",
         segments.spec());
    const DType dtype = promote_types(a.dtype(), b.dtype());
    return heddle::apply(SegmentedMatmul{},
                         {astype(a, dtype), astype(b, dtype), astype(segments, DType::u32)});
  });
}

// ---- e4m3

// Of f64 by way of f32, which holds every code.
Array to_fp8(const Arg& x) {
  return within("to_fp8", x, [&]() -> Array {
    const bool wide = x.dtype() == DType::f64;
    return heddle::apply(Fp8{false, DType::u8}, {wide ? astype(x, DType::f32) : x.array()});
  });
}

Array from_fp8(const Arg& x, DType dtype) {
  return within("from_fp8", x, [&]() -> Array {
    const bool wide = dtype == DType::f64;
    const Array values = heddle::apply(Fp8{true, wide ? DType::f32 : dtype}, {x});
    return wide ? astype(values, DType::f64) : values;
  });
}

}  // namespace heddle
