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

/// What norm_rope takes besides x: [weight], positions, [factors].
void add_norm_rope(std::vector<Array>& inputs, const std::optional<Array>& weight, DType dtype,
                   const Array& positions, const std::optional<Array>& factors) {
  if (weight) {
    const bool fits = weight->dtype() == dtype || weight->dtype() == DType::f32;
    inputs.push_back(fits ? *weight : as_f32(*weight, "the weight"));
  }
  inputs.push_back(as_indices(positions));
  if (factors) inputs.push_back(as_f32(*factors, "factors"));
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

Array norm_rope(const Arg& x, const std::optional<Array>& weight, float eps, const Arg& positions,
                const RopeAngles& angles, const std::optional<Array>& factors) {
  return within("norm_rope", x, [&]() -> Array {
    NormRope op{eps, weight.has_value(), angles};
    op.angles.has_factors = factors.has_value();
    std::vector<Array> inputs = {x};
    add_norm_rope(inputs, weight, x.dtype(), positions, factors);
    return heddle::apply(op, std::move(inputs));
  });
}

Array norm_rope_write_rows(Array state, const Arg& x, const Arg& rows,
                           const std::optional<Array>& weight, float eps, const Arg& positions,
                           const RopeAngles& angles, const std::optional<Array>& factors) {
  return within("norm_rope_write_rows", x, [&]() -> Array {
    NormRopeWriteRows op{eps, weight.has_value(), angles};
    op.angles.has_factors = factors.has_value();
    std::vector<Array> inputs;
    inputs.reserve(6);
    inputs.push_back(std::move(state));
    inputs.push_back(x);
    inputs.push_back(as_indices(rows));
    add_norm_rope(inputs, weight, x.dtype(), positions, factors);
    return heddle::apply(op, std::move(inputs));
  });
}

Array causal_softmax(const Arg& a) {
  return within("causal_softmax", a, [&]() -> Array {
    return heddle::apply(CausalSoftmax{}, {astype(a, at_least_float(a.dtype()))});
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
                const std::optional<Array>& mask, const std::optional<Array>& sinks) {
  return within("attention", q, [&]() -> Array {
    const DType dtype = promote_all({&q.array(), &k.array(), &v.array()});
    std::vector<Array> inputs = {astype(q, dtype), astype(k, dtype), astype(v, dtype)};
    if (mask) {
      require(mask->dtype() != DType::complex64, ErrorCode::invalid_argument,
              "the mask is {}; it must be bool or real", mask->spec());
      const bool fits = mask->dtype() == DType::bool_ || mask->dtype() == DType::f32;
      inputs.push_back(fits ? *mask : astype(*mask, dtype));
    }
    Attention op = params;
    op.has_sinks = sinks.has_value();
    if (sinks) {
      const bool fits = sinks->dtype() == dtype || sinks->dtype() == DType::f32;
      inputs.push_back(fits ? *sinks : as_f32(*sinks, "the vector of sinks"));
    }
    return heddle::apply(op, std::move(inputs));
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

namespace {

/// x [B, ..., T, D] with heads of one length: what rope(x, ...) has to know of it.
struct Rotated {
  std::int64_t batch, heads, length, width;
};

Rotated rotated(const Array& x, int dims) {
  require(x.ndim() >= 2, ErrorCode::invalid_argument, "rope: x is {}; it must be [..., T, D]",
          x.spec());
  Rotated r{x.ndim() > 2 ? x.shape(0) : 1, 1, x.shape(-2), x.shape(-1)};
  for (std::size_t i = 1; i + 2 < x.ndim(); ++i) r.heads *= x.shape()[i];
  require(dims > 0 && dims <= r.width && dims % 2 == 0, ErrorCode::invalid_argument,
          "{} of {} features of x {} turn; the number must be even, positive and no larger", dims,
          r.width, x.spec());
  return r;
}

RopeAngles angles_of(int dims, bool traditional, std::optional<float> base, float scale,
                     const std::optional<Array>& freqs) {
  require(base.has_value() != freqs.has_value(), ErrorCode::invalid_argument,
          "rope: give either a base or freqs");
  const RopeStyle style = traditional ? RopeStyle::interleaved : RopeStyle::split_half;
  // With base 1, the factors that divide the frequencies are the periods themselves.
  return {style, dims, base.value_or(1.0f), scale, freqs.has_value()};
}

/// Each batch entry has positions of its own: [B, T].
Array turn_by_batch(const Array& x, const Rotated& r, const Array& positions,
                    const RopeAngles& angles, const std::optional<Array>& freqs) {
  const Array by_time = moveaxis(x, -2, 1);  // [B, T, ..., D]
  const Array flat = reshape(by_time, {r.batch * r.length, r.heads, r.width});
  const Array turned = heddle::rope(flat, flatten(positions), angles, freqs);
  return moveaxis(reshape(turned, by_time.shape()), 1, -2);
}

/// All turn alike: positions [T]. Times stay within their batch entry, where projections put them:
/// nothing is moved, and rows lie close together.
Array turn_by_time(const Array& x, const Rotated& r, const Array& positions,
                   const RopeAngles& angles, const std::optional<Array>& freqs) {
  if (x.ndim() > 2) {
    const Array all = broadcast_to(expand_dims(positions, 0), {r.batch, r.length});
    return turn_by_batch(x, r, all, angles, freqs);
  }
  const Array flat = reshape(x, {r.length, 1, r.width});
  return reshape(heddle::rope(flat, positions, angles, freqs), x.shape());
}

}  // namespace

Array rope(const Arg& x, int dims, bool traditional, std::optional<float> base, float scale,
           int offset, const std::optional<Array>& freqs) {
  return within("rope", x, [&]() -> Array {
    const Rotated r = rotated(x, dims);
    const RopeAngles angles = angles_of(dims, traditional, base, scale, freqs);
    const std::int64_t last = std::int64_t{offset} + std::max<std::int64_t>(r.length, 1) - 1;
    require(last <= std::numeric_limits<std::int32_t>::max(), ErrorCode::invalid_argument,
            "positions {} to {} of x {} pass what i32 holds", offset, last, x.spec());
    const double start = offset;
    const Array positions = heddle::apply(Arange{start, 1, r.length, DType::i32}, {});
    return turn_by_time(x, r, positions, angles, freqs);
  });
}

Array rope(const Arg& x, int dims, bool traditional, std::optional<float> base, float scale,
           const Array& offset, const std::optional<Array>& freqs) {
  return within("rope", x, [&]() -> Array {
    const Rotated r = rotated(x, dims);
    const RopeAngles angles = angles_of(dims, traditional, base, scale, freqs);
    require(is_integer(offset.dtype()), ErrorCode::invalid_argument,
            "rope: the offset is {}; it must be of integers", offset.spec());
    require(
        offset.ndim() <= 1 && (offset.size() == 1 || (x.ndim() > 2 && offset.size() == r.batch)),
        ErrorCode::invalid_argument, "rope: the offset is {}; for x {} it must be one, or [{}]",
        offset.spec(), x.spec(), r.batch);
    const Array time = heddle::apply(Arange{0, 1, r.length, DType::i32}, {});
    const Array first = astype(offset, DType::i32);
    if (offset.size() == 1) {
      return turn_by_time(x, r, add(time, reshape(first, {1})), angles, freqs);
    }
    return turn_by_batch(x, r, add(expand_dims(first, 1), time), angles, freqs);
  });
}

Array scaled_dot_product_attention(const Arg& q, const Arg& k, const Arg& v,
                                   std::optional<float> scale, const std::string& mask_mode,
                                   const std::optional<Array>& mask,
                                   const std::optional<Array>& sinks) {
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
    const DType dtype = promote_all({&q.array(), &k.array(), &v.array()});
    for (const auto& [extra, what] :
         {std::pair{&mask, "the mask"}, {&sinks, "the vector of sinks"}}) {
      require(!*extra || promote_types((*extra)->dtype(), dtype) == dtype,
              ErrorCode::invalid_argument, "{}: {} is {}; its type must promote to {}", kName, what,
              *extra ? to_string((*extra)->spec()) : "", to_string(dtype));
    }
    Attention params;
    if (mask_mode == "causal") params.mask = Attention::Mask::causal;
    if (mask) {
      const bool boolean = mask->dtype() == DType::bool_;
      params.mask = boolean ? Attention::Mask::boolean : Attention::Mask::additive;
    }
    params.scale = scale.value_or(1.0f / std::sqrt(static_cast<float>(q.shape(-1))));
    return attention(q, k, v, params, mask, sinks);
  });
}

}  // namespace fast
}  // namespace heddle
