// Functions for language models.
#include <algorithm>
#include <cmath>
#include <limits>

#include "array/ops_common.h"

namespace heddle {

namespace {

/// Positions, rows and sequence numbers of any integer type, as the ops want them.
Array as_indices(const Array& indices) {
  return is_integer(indices.dtype()) ? astype(indices, DType::i32) : indices;
}

/// `a` is `what`, which has no imaginary part.
Array as_f32(const Array& a, const char* what) {
  require(a.dtype() != DType::complex64, ErrorCode::invalid_argument, "{} is {}; it must be real",
          what, a.spec());
  return astype(a, DType::f32);
}

DType promote_all(std::initializer_list<const Array*> arrays) {
  DType dtype = (*arrays.begin())->dtype();
  for (const Array* a : arrays) dtype = promote_types(dtype, a->dtype());
  return dtype;
}

std::vector<Array> norm_inputs(const Array& x, const std::optional<Array>& weight,
                               const std::optional<Array>& bias) {
  DType dtype = x.dtype();
  if (weight) dtype = promote_types(dtype, weight->dtype());
  if (bias) dtype = promote_types(dtype, bias->dtype());
  std::vector<Array> inputs = {astype(x, dtype)};
  if (weight) inputs.push_back(astype(*weight, dtype));
  if (bias) inputs.push_back(astype(*bias, dtype));
  return inputs;
}

}  // namespace

Array gated_multiply(const Arg& gate, const Arg& up, UnaryKind activation) {
  return within("gated_multiply", gate, [&]() -> Array {
    const DType dtype = at_least_float(promote_types(gate.dtype(), up.dtype()));
    return heddle::apply(GatedMultiply{activation}, {astype(gate, dtype), astype(up, dtype)});
  });
}

Array rope(const Arg& x, const Arg& positions, const RopeAngles& angles,
           const std::optional<Array>& factors) {
  return within("rope", x, [&]() -> Array {
    Rope op{angles, false};
    op.angles.has_factors = factors.has_value();
    std::vector<Array> inputs = {x, as_indices(positions)};
    if (factors) inputs.push_back(as_f32(*factors, "factors"));
    return heddle::apply(op, std::move(inputs));
  });
}

Array rope_table(const Arg& x, const Arg& cos, const Arg& sin, const std::optional<Array>& index,
                 RopeStyle style) {
  return within("rope_table", x, [&]() -> Array {
    std::vector<Array> inputs = {x, as_f32(cos, "cos"), as_f32(sin, "sin")};
    if (index) inputs.push_back(as_indices(*index));
    return heddle::apply(RopeTable{style, index.has_value()}, std::move(inputs));
  });
}

Array write_rows(Array state, const Arg& x, const Arg& rows) {
  return within("write_rows", x, [&]() -> Array {
    std::vector<Array> inputs;
    inputs.reserve(3);
    inputs.push_back(std::move(state));
    inputs.push_back(x);
    inputs.push_back(as_indices(rows));
    return heddle::apply(WriteRows{}, std::move(inputs));
  });
}

Array attend(const Arg& q, const Arg& k, const Arg& v, const Arg& block_table, const Arg& seq,
             const Arg& pos, const Arg& len, const Attend& params) {
  return within("attend", q, [&]() -> Array {
    return heddle::apply(params, {as_f32(q, "q"), k, v, as_indices(block_table), as_indices(seq),
                                  as_indices(pos), as_indices(len)});
  });
}

Array attention(const Arg& q, const Arg& k, const Arg& v, const Attention& params,
                const std::optional<Array>& mask) {
  return within("attention", q, [&]() -> Array {
    const DType dtype = promote_all({&q.array(), &k.array(), &v.array()});
    std::vector<Array> inputs = {astype(q, dtype), astype(k, dtype), astype(v, dtype)};
    if (mask) {
      require(mask->dtype() != DType::complex64, ErrorCode::invalid_argument,
              "the mask is {}; it must be bool or real", mask->spec());
      const bool fits = mask->dtype() == DType::bool_ || mask->dtype() == DType::f32;
      inputs.push_back(fits ? *mask : astype(*mask, dtype));
    }
    return heddle::apply(params, std::move(inputs));
  });
}

std::pair<Array, Array> selective_scan(const Arg& x, const Arg& dt, const Arg& a, const Arg& b,
                                       const Arg& c, const std::optional<Array>& d,
                                       const Arg& state) {
  return within("selective_scan", x, [&]() -> std::pair<Array, Array> {
    const auto grouped = [](const Array& g, const char* what) {
      const Array values = as_f32(g, what);
      return g.ndim() == 3 ? expand_dims(values, 2) : values;
    };
    std::vector<Array> inputs = {as_f32(x, "x"), as_f32(dt, "dt"), as_f32(a, "a"), grouped(b, "b"),
                                 grouped(c, "c")};
    if (d) inputs.push_back(as_f32(*d, "d"));
    inputs.push_back(as_f32(state, "the state"));
    const std::vector<Array> results = apply_multi(SelectiveScan{d.has_value()}, std::move(inputs));
    return {results[0], results[1]};
  });
}

namespace fast {

Array rms_norm(const Arg& x, const std::optional<Array>& weight, float eps,
               const std::optional<Array>& bias) {
  return within("rms_norm", x, [&]() -> Array {
    return heddle::apply(RmsNorm{eps, weight.has_value(), bias.has_value()},
                         norm_inputs(x, weight, bias));
  });
}

Array layer_norm(const Arg& x, const std::optional<Array>& weight, const std::optional<Array>& bias,
                 float eps) {
  return within("layer_norm", x, [&]() -> Array {
    return heddle::apply(LayerNorm{eps, weight.has_value(), bias.has_value()},
                         norm_inputs(x, weight, bias));
  });
}

Array channel_norm(const Arg& x, int axis, const std::optional<Array>& weight,
                   const std::optional<Array>& bias, float eps) {
  return within("channel_norm", x, [&]() -> Array {
    const std::size_t at = normalize_axis(axis, x.ndim(), "channel_norm");
    return heddle::apply(
        ChannelNorm{static_cast<std::int64_t>(at), eps, weight.has_value(), bias.has_value()},
        norm_inputs(x, weight, bias));
  });
}

Array group_norm(const Arg& x, int groups, const std::optional<Array>& weight,
                 const std::optional<Array>& bias, float eps) {
  return within("group_norm", x, [&]() -> Array {
    return heddle::apply(GroupNorm{groups, eps, weight.has_value(), bias.has_value()},
                         norm_inputs(x, weight, bias));
  });
}

Array rope(const Arg& x, int dims, bool traditional, std::optional<float> base, float scale,
           int offset, const std::optional<Array>& freqs) {
  return within("rope", x, [&]() -> Array {
    require(x.ndim() >= 2, ErrorCode::invalid_argument, "rope: x is {}; it must be [..., T, D]",
            x.spec());
    require(base.has_value() != freqs.has_value(), ErrorCode::invalid_argument,
            "rope: give either a base or freqs");

    const int rank = static_cast<int>(x.ndim());
    const Array by_time = moveaxis(x, -2, 0);  // [T, ..., D]
    const std::int64_t length = by_time.shape()[0];
    const std::int64_t width = by_time.shape()[rank - 1];
    std::int64_t heads = 1;
    for (int i = 1; i + 1 < rank; ++i) heads *= by_time.shape()[i];
    const RopeStyle style = traditional ? RopeStyle::interleaved : RopeStyle::split_half;
    // With base 1, the factors that divide the frequencies are the periods themselves.
    const RopeAngles angles{style, dims, base.value_or(1.0f), scale, freqs.has_value()};
    require(dims > 0 && dims <= width && dims % 2 == 0, ErrorCode::invalid_argument,
            "{} of {} features of x {} turn; the number must be even, positive and no larger", dims,
            width, x.spec());
    const std::int64_t last = std::int64_t{offset} + std::max<std::int64_t>(length, 1) - 1;
    require(last <= std::numeric_limits<std::int32_t>::max(), ErrorCode::invalid_argument,
            "positions {} to {} of x {} pass what i32 holds", offset, last, x.spec());
    const double start = offset;
    const Array positions = heddle::apply(Arange{start, 1, length, DType::i32}, {});
    const Array turned =
        heddle::rope(reshape(by_time, {length, heads, width}), positions, angles, freqs);
    return moveaxis(reshape(turned, by_time.shape()), 0, -2);
  });
}

Array scaled_dot_product_attention(const Arg& q, const Arg& k, const Arg& v,
                                   std::optional<float> scale, const std::string& mask_mode,
                                   const std::optional<Array>& mask) {
  return within("scaled_dot_product_attention", q, [&]() -> Array {
    constexpr const char* kName = "scaled_dot_product_attention";
    require(q.ndim() == 4, ErrorCode::invalid_argument, "{}: q is {}; it must be [B, H, S, D]",
            kName, q.spec());
    require(mask_mode.empty() || mask_mode == "causal" || mask_mode == "array",
            ErrorCode::invalid_argument, "{}: mask mode \"{}\"; it must be \"\", causal or array",
            kName, mask_mode);
    require(!(mask && mask_mode == "causal") && (mask || mask_mode != "array"),
            ErrorCode::invalid_argument, "{}: mask mode \"{}\" {} a mask", kName, mask_mode,
            mask ? "does not go with" : "needs");
    Attention params;
    if (mask_mode == "causal") params.mask = Attention::Mask::causal;
    if (mask) {
      const bool boolean = mask->dtype() == DType::bool_;
      params.mask = boolean ? Attention::Mask::boolean : Attention::Mask::additive;
    }
    params.scale = scale.value_or(1.0f / std::sqrt(static_cast<float>(q.shape(-1))));
    return attention(q, k, v, params, mask);
  });
}

}  // namespace fast
}  // namespace heddle
