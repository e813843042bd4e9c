// Quantised groups, products that choose their matrices, and floats of eight bits.
#include <algorithm>
#include <cmath>

#include "support/reference.h"

namespace heddle::test {

namespace {

Number at(const Values& x, const Dims& index) {
  return x.real[flat_index(x.spec.shape, index)];
}

// ---- Codes as OCP's papers define them

Number e4m3_value(unsigned code) {
  const int exponent = static_cast<int>(code >> 3 & 15u), mantissa = static_cast<int>(code & 7u);
  const Number size = exponent == 0 ? std::ldexp(Number(mantissa), -9)
                                    : std::ldexp(Number(8 + mantissa), exponent - 7 - 3);
  return code & 0x80u ? -size : size;
}

Number e2m1_value(unsigned code) {
  const int exponent = static_cast<int>(code >> 1 & 3u), mantissa = static_cast<int>(code & 1u);
  const Number size =
      exponent == 0 ? Number(mantissa) / 2 : std::ldexp(Number(2 + mantissa), exponent - 2);
  return code & 8u ? -size : size;
}

/// The code of the nearest value, of two as near the even one. `last` is the largest magnitude's
/// code, and `sign` the sign's.
template <class Value>
unsigned nearest_code(Number x, unsigned last, unsigned sign, Value value) {
  const bool negative = std::signbit(x);
  if (std::isnan(x)) return last == 7 ? (negative ? sign : 0) : last | (negative ? sign : 0);
  const Number size = std::fabs(x);
  unsigned best = 0;
  for (unsigned code = 1; code <= last; ++code) {
    const Number nearer = std::fabs(value(best) - size) - std::fabs(value(code) - size);
    if (nearer > 0 || (nearer == 0 && code % 2 == 0)) best = code;
  }
  if (size > value(last)) best = last;
  return best | (negative ? sign : 0);
}

unsigned e4m3_code(Number x) {
  return nearest_code(x, 0x7e, 0x80, e4m3_value);
}
unsigned e2m1_code(Number x) {
  return nearest_code(x, 7, 8, e2m1_value);
}

// ---- Groups

unsigned bit_of(const Values& codes, std::size_t row, std::size_t words, std::size_t bit) {
  const auto word = static_cast<std::uint32_t>(codes.real[row * words + bit / 32]);
  return word >> bit % 32 & 1u;
}

Number group_scale(const GroupFormat& f, Number stored) {
  if (f.mode == QuantMode::affine) return stored;
  if (f.mode == QuantMode::nvfp4) return e4m3_value(static_cast<unsigned>(stored));
  return std::ldexp(Number(1), static_cast<int>(stored) - 127);
}

/// The matrix that operands codes, scales and perhaps biases hold.
Values dequantized(const GroupFormat& f, const Values* in, DType dtype) {
  Shape shape = in[0].spec.shape;
  const auto words = static_cast<std::size_t>(shape.back());
  const auto groups = static_cast<std::size_t>(in[1].spec.shape.back());
  const auto size = static_cast<std::size_t>(f.group_size), bits = static_cast<std::size_t>(f.bits);
  const std::size_t width = groups * size;
  shape[shape.size() - 1] = static_cast<std::int64_t>(width);
  Values out({dtype, shape});
  for (std::size_t i = 0; i < out.real.size(); ++i) {
    const std::size_t row = i / width, k = i % width, group = row * groups + k / size;
    unsigned code = 0;
    for (std::size_t b = 0; b < bits; ++b) code |= bit_of(in[0], row, words, k * bits + b) << b;
    const Number scale = group_scale(f, in[1].real[group]);
    switch (f.mode) {
      case QuantMode::affine:
        out.real[i] = scale * Number(code) + in[2].real[group];
        break;
      case QuantMode::mxfp8:
        out.real[i] = scale * e4m3_value(code);
        break;
      case QuantMode::mxfp4:
      case QuantMode::nvfp4:
        out.real[i] = scale * e2m1_value(code);
        break;
    }
  }
  return out;
}

struct Group {
  std::vector<unsigned> codes;
  Number scale, bias;
};

/// The rule's own arithmetic is that of f32.
Group affine_group(const GroupFormat& f, const Number* w) {
  float least = INFINITY, largest = -INFINITY;
  for (std::int64_t i = 0; i < f.group_size; ++i) {
    least = std::fmin(least, static_cast<float>(w[i]));
    largest = std::fmax(largest, static_cast<float>(w[i]));
  }
  const auto steps = static_cast<float>((1u << f.bits) - 1u);
  float scale = std::fmax((largest - least) / steps, 1e-7f), bias = 0;
  float edge = largest;
  if (std::fabs(least) > std::fabs(largest)) {
    edge = least;
  } else {
    scale = -scale;
  }
  const float at_edge = std::rint(edge / scale);
  if (at_edge != 0) scale = edge / at_edge, bias = edge;
  Group group{{}, scale, bias};
  for (std::int64_t i = 0; i < f.group_size; ++i) {
    const float code = std::rint((static_cast<float>(w[i]) - bias) / scale);
    group.codes.push_back(static_cast<unsigned>(std::fmin(std::fmax(code, 0), steps)));
  }
  return group;
}

Group float_group(const GroupFormat& f, const Number* w) {
  const bool wide = f.mode == QuantMode::mxfp8;
  float largest = 0;
  for (std::int64_t i = 0; i < f.group_size; ++i) {
    largest = std::fmax(largest, std::fabs(static_cast<float>(w[i])));
  }
  const float ratio = largest / (wide ? 448.0f : 6.0f);
  Group group{{}, 127, 0};
  if (f.mode == QuantMode::nvfp4) {
    group.scale = e4m3_code(static_cast<Number>(ratio));
  } else if (ratio > 0) {
    const double exponent = std::rint(std::log2(static_cast<double>(ratio)));
    group.scale = std::clamp(exponent, -127.0, 127.0) + 127;
  }
  const Number scale = group_scale(f, group.scale);
  for (std::int64_t i = 0; i < f.group_size; ++i) {
    const auto scaled = scale == 0 ? 0.0f : static_cast<float>(w[i]) / static_cast<float>(scale);
    const auto x = static_cast<Number>(scaled);
    group.codes.push_back(wide ? e4m3_code(x) : e2m1_code(x));
  }
  return group;
}

std::vector<Values> quantized(const GroupFormat& f, const Values& w) {
  const TensorSpec specs[] = {w.spec};
  std::vector<Values> out;
  for (const TensorSpec& spec : infer(GroupQuantize{f}, specs)) out.emplace_back(spec);
  const auto width = static_cast<std::size_t>(w.spec.shape.back());
  const auto words = static_cast<std::size_t>(out[0].spec.shape.back());
  const auto size = static_cast<std::size_t>(f.group_size), bits = static_cast<std::size_t>(f.bits);
  for (std::size_t g = 0; g < out[1].real.size(); ++g) {
    const Group group = f.mode == QuantMode::affine ? affine_group(f, &w.real[g * size])
                                                    : float_group(f, &w.real[g * size]);
    out[1].real[g] = group.scale;
    if (out.size() > 2) out[2].real[g] = group.bias;
    const std::size_t row = g * size / width, first = g * size % width;
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t b = 0; b < bits; ++b) {
        const std::size_t bit = (first + i) * bits + b;
        out[0].real[row * words + bit / 32] +=
            Number(std::uint64_t{group.codes[i] >> b & 1u} << bit % 32);
      }
    }
  }
  return out;
}

// ---- Products

Values group_matmul(const GroupMatmul& op, const std::vector<Values>& in) {
  const std::size_t groups = op.format.mode == QuantMode::affine ? 3 : 2;
  std::vector<TensorSpec> specs;
  for (const Values& operand : in) specs.push_back(operand.spec);
  Values out(infer(op, specs)[0]);
  const Values w = dequantized(op.format, &in[1], DType::f32);
  const Shape &x = in[0].spec.shape, &shape = out.spec.shape;
  const std::size_t last = shape.size() - 1;
  for_each_index(shape, [&](const Dims& index) {
    Number& sum = out.real[flat_index(shape, index)];
    for (std::int64_t k = 0; k < x.back(); ++k) {
      const Dims of_matrix = op.transpose ? Dims{index[last], k} : Dims{k, index[last]};
      Dims ix = index, iw;
      ix[last] = k;
      if (op.gathers) {
        const Dims chosen(std::span(index.begin(), last - 1));
        ix = {static_cast<std::int64_t>(at(in[1 + groups], chosen)), index[last - 1], k};
        iw = {static_cast<std::int64_t>(at(in[2 + groups], chosen))};
      } else {
        for (std::size_t i = 0; w.spec.shape.size() > 2 && i + 1 < last; ++i)
          iw.push_back(index[i]);
      }
      iw.push_back(of_matrix[0]);
      iw.push_back(of_matrix[1]);
      if (w.spec.shape.size() == 2) iw = of_matrix;
      Dims own = iw;
      while (own.size() > w.spec.shape.size()) own.erase(0);
      sum += in[0].real[broadcast_index(x, ix)] * w.real[broadcast_index(w.spec.shape, own)];
    }
  });
  return out;
}

Values gather_matmul(const std::vector<Values>& in) {
  Shape shape = in[2].spec.shape;
  const std::size_t lead = shape.size();
  shape.push_back(in[0].spec.shape[1]);
  shape.push_back(in[1].spec.shape[2]);
  Values out({in[0].spec.dtype, shape});
  for_each_index(shape, [&](const Dims& index) {
    const Dims chosen(std::span(index.begin(), lead));
    const auto a = static_cast<std::int64_t>(at(in[2], chosen));
    const auto b = static_cast<std::int64_t>(at(in[3], chosen));
    Number& sum = out.real[flat_index(shape, index)];
    for (std::int64_t k = 0; k < in[0].spec.shape[2]; ++k) {
      sum += at(in[0], {a, index[lead], k}) * at(in[1], {b, k, index[lead + 1]});
    }
  });
  return out;
}

Values segmented_matmul(const std::vector<Values>& in) {
  Shape shape = in[2].spec.shape;
  const std::size_t lead = shape.size() - 1;
  shape[lead] = in[0].spec.shape[0];
  shape.push_back(in[1].spec.shape[1]);
  Values out({in[0].spec.dtype, shape});
  for_each_index(shape, [&](const Dims& index) {
    Dims bound(std::span(index.begin(), lead));
    bound.push_back(0);
    const auto first = static_cast<std::int64_t>(at(in[2], bound));
    bound[lead] = 1;
    const auto last = static_cast<std::int64_t>(at(in[2], bound));
    Number& sum = out.real[flat_index(shape, index)];
    for (std::int64_t k = first; k < last; ++k) {
      sum += at(in[0], {index[lead], k}) * at(in[1], {k, index[lead + 1]});
    }
  });
  return out;
}

Values fp8(const Fp8& op, const Values& x) {
  Values out({op.dtype, x.spec.shape});
  for (std::size_t i = 0; i < x.real.size(); ++i) {
    out.real[i] =
        op.decode ? e4m3_value(static_cast<unsigned>(x.real[i])) : Number(e4m3_code(x.real[i]));
  }
  return out;
}

}  // namespace

std::vector<Values> reference_quantized(const Op& op, const std::vector<Values>& in) {
  if (const auto* o = std::get_if<GroupQuantize>(&op)) return quantized(o->format, in[0]);
  if (const auto* o = std::get_if<GroupDequantize>(&op)) {
    return {dequantized(o->format, in.data(), o->dtype)};
  }
  if (const auto* o = std::get_if<GroupMatmul>(&op)) return {group_matmul(*o, in)};
  if (std::holds_alternative<GatherMatmul>(op)) return {gather_matmul(in)};
  if (std::holds_alternative<SegmentedMatmul>(op)) return {segmented_matmul(in)};
  if (const auto* o = std::get_if<Fp8>(&op)) return {fp8(*o, in[0])};
  return {};
}

}  // namespace heddle::test
