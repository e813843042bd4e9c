#include "support/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "heddle/half.h"
#include "support/reference_random.h"
#include "tensor/block_panels.h"
#include "tensor/blocks.h"

namespace heddle::test {

Values::Values(TensorSpec s) : spec(std::move(s)) {
  real.resize(static_cast<std::size_t>(elements(spec.shape)));
  if (spec.dtype == DType::complex64) imaginary.resize(real.size());
}

std::size_t flat_index(const Shape& shape, const Dims& index) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return static_cast<std::size_t>(flat);
}

std::size_t broadcast_index(const Shape& shape, const Dims& index) {
  std::int64_t flat = 0;
  const std::size_t lead = index.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    flat = flat * shape[i] + (shape[i] == 1 ? 0 : index[lead + i]);
  }
  return static_cast<std::size_t>(flat);
}

// ---- Decoding

std::int64_t element_offset(const OperandSpec& operand, const Dims& index) {
  if (operand.layout.kind == LayoutKind::panel16) {
    return (index[0] / 16 * operand.spec.shape[1] + index[1]) * 16 + index[0] % 16;
  }
  const Dims& strides = operand.layout.strides;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    // Backwards, index 0 is the far end.
    const std::int64_t from_lowest =
        strides[i] < 0 ? operand.spec.shape[i] - 1 - index[i] : index[i];
    offset += from_lowest * std::abs(strides[i]);
  }
  return offset;
}

namespace {

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

Number decode_plain(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::bool_:
      return read<std::uint8_t>(at) != 0;
    case DType::u8:
      return read<std::uint8_t>(at);
    case DType::u16:
      return read<std::uint16_t>(at);
    case DType::u32:
      return read<std::uint32_t>(at);
    case DType::u64:
      return read<std::uint64_t>(at);
    case DType::i8:
      return read<std::int8_t>(at);
    case DType::i16:
      return read<std::int16_t>(at);
    case DType::i32:
      return read<std::int32_t>(at);
    case DType::i64:
      return read<std::int64_t>(at);
    case DType::f16:
      return static_cast<float>(f16::from_bits(read<std::uint16_t>(at)));
    case DType::bf16:
      return static_cast<float>(bf16::from_bits(read<std::uint16_t>(at)));
    case DType::f64:
      return read<double>(at);
    default:
      return read<float>(at);
  }
}

Values decode_blocks(const OperandSpec& operand, const std::byte* data) {
  const TensorSpec& spec = operand.spec;
  Values values(spec);
  const DTypeInfo& type = info(spec.dtype);
  std::vector<float> row(static_cast<std::size_t>(spec.shape.back()));
  Shape rows = spec.shape;
  rows[rows.size() - 1] = 1;
  std::size_t next = 0;
  std::vector<std::byte> unpacked(row_bytes(spec.dtype, spec.shape.back()));
  for_each_index(rows, [&](const Dims& index) {
    const std::byte* from = unpacked.data();
    if (operand.layout.kind == LayoutKind::panel16) {
      const auto first = static_cast<std::size_t>(index[0] / 16 * 16);
      unpack_block_row(spec.dtype, data + first * unpacked.size(), index[0] % 16, 0,
                       spec.shape.back() / type.block_elements, unpacked.data());
    } else {
      from = data + element_offset(operand, index) / type.block_elements * type.block_bytes;
    }
    dequantize_row(spec.dtype, from, row.data(), spec.shape.back());
    for (const float x : row) values.real[next++] = static_cast<Number>(x);
  });
  return values;
}

}  // namespace

Values decode(const OperandSpec& operand, const std::byte* data) {
  const DType dtype = operand.spec.dtype;
  if (is_block(dtype)) return decode_blocks(operand, data);
  Values values(operand.spec);
  const auto item = static_cast<std::int64_t>(item_size(dtype));
  std::size_t next = 0;
  for_each_index(operand.spec.shape, [&](const Dims& index) {
    const std::byte* at = data + element_offset(operand, index) * item;
    if (dtype == DType::complex64)
      values.imaginary[next] = static_cast<Number>(read<float>(at + 4));
    values.real[next++] = decode_plain(dtype, at);
  });
  return values;
}

// ---- The ops that only move values

namespace {

template <class T>
void write(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

/// The bytes of a number that the dtype holds exactly.
void encode_plain(DType dtype, Number value, std::byte* at) {
  switch (dtype) {
    case DType::bool_:
    case DType::u8:
      return write(at, static_cast<std::uint8_t>(value));
    case DType::u16:
      return write(at, static_cast<std::uint16_t>(value));
    case DType::u32:
      return write(at, static_cast<std::uint32_t>(value));
    case DType::u64:
      return write(at, static_cast<std::uint64_t>(value));
    case DType::i8:
      return write(at, static_cast<std::int8_t>(value));
    case DType::i16:
      return write(at, static_cast<std::int16_t>(value));
    case DType::i32:
      return write(at, static_cast<std::int32_t>(value));
    case DType::i64:
      return write(at, static_cast<std::int64_t>(value));
    case DType::f16:
      return write(at, f16(static_cast<float>(value)).bits);
    case DType::bf16:
      return write(at, bf16(static_cast<float>(value)).bits);
    case DType::f64:
      return write(at, static_cast<double>(value));
    default:
      return write(at, static_cast<float>(value));
  }
}

Values reinterpret(const Reinterpret& op, const Values& x) {
  const std::size_t item = item_size(x.spec.dtype);
  std::vector<std::byte> bytes(x.real.size() * item);
  for (std::size_t i = 0; i < x.real.size(); ++i) {
    encode_plain(x.spec.dtype, x.real[i], &bytes[i * item]);
    if (!x.imaginary.empty()) encode_plain(DType::f32, x.imaginary[i], &bytes[i * item + 4]);
  }
  Shape shape = x.spec.shape;
  if (!shape.empty()) {
    std::int64_t& last = shape[shape.size() - 1];
    last = last * static_cast<std::int64_t>(item) / static_cast<std::int64_t>(item_size(op.dtype));
  }
  return decode(OperandSpec::contiguous({op.dtype, shape}), bytes.data());
}

void copy_value(const Values& from, std::size_t i, Values& to, std::size_t j) {
  to.real[j] = from.real[i];
  if (!to.imaginary.empty()) to.imaginary[j] = from.imaginary[i];
}

Values concatenate(const Concatenate& op, const std::vector<Values>& inputs) {
  const auto axis = static_cast<std::size_t>(op.axis);
  TensorSpec spec = inputs[0].spec;
  for (std::size_t i = 1; i < inputs.size(); ++i) spec.shape[axis] += inputs[i].spec.shape[axis];
  Values out(spec);
  std::int64_t begin = 0;
  for (const Values& x : inputs) {
    for_each_index(x.spec.shape, [&](const Dims& index) {
      Dims to = index;
      to[axis] += begin;
      copy_value(x, flat_index(x.spec.shape, index), out, flat_index(spec.shape, to));
    });
    begin += x.spec.shape[axis];
  }
  return out;
}

Values slice_update(const SliceUpdate& op, const Values& base, const Values& update) {
  Values out = base;
  for_each_index(update.spec.shape, [&](const Dims& index) {
    Dims to = index;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = op.start[i] + index[i] * op.step[i];
    copy_value(update, flat_index(update.spec.shape, index), out, flat_index(base.spec.shape, to));
  });
  return out;
}

Values arange(const Arange& op) {
  Values out({op.dtype, {op.size}});
  for (std::int64_t i = 0; i < op.size; ++i) {
    const double value = op.start + op.step * static_cast<double>(i);
    out.real[static_cast<std::size_t>(i)] = is_floating(op.dtype) ? value : std::trunc(value);
  }
  return out;
}

Values select(const Values& condition, const Values& a, const Values& b) {
  Shape shape =
      broadcast_shapes(broadcast_shapes(condition.spec.shape, a.spec.shape), b.spec.shape);
  Values out({a.spec.dtype, shape});
  for_each_index(shape, [&](const Dims& index) {
    const bool first = condition.real[broadcast_index(condition.spec.shape, index)] != 0;
    const Values& from = first ? a : b;
    copy_value(from, broadcast_index(from.spec.shape, index), out, flat_index(shape, index));
  });
  return out;
}

Values gated_multiply(const GatedMultiply& op, const Values& gate, const Values& up) {
  Values out(gate.spec);
  for (std::size_t i = 0; i < out.real.size(); ++i) {
    out.real[i] = reference_activation(op.activation, gate.real[i]) * up.real[i];
  }
  return out;
}

/// Of the whole of each row, or of what a causal row sees.
Values softmax(const Values& x, bool causal) {
  Values out(x.spec);
  const Shape& shape = x.spec.shape;
  const auto width = static_cast<std::size_t>(shape.back());
  for (std::size_t begin = 0; begin < x.real.size(); begin += width) {
    std::size_t n = width;
    if (causal) {
      const std::int64_t queries = shape[shape.size() - 2];
      const std::int64_t query = static_cast<std::int64_t>(begin / width) % queries;
      n = static_cast<std::size_t>(std::max<std::int64_t>(0, shape.back() - queries + query + 1));
    }
    Number max = -INFINITY, sum = 0;
    for (std::size_t i = 0; i < n; ++i) max = std::fmax(max, x.real[begin + i]);
    const Number shift = std::isinf(max) && max < 0 ? 0 : max;
    for (std::size_t i = 0; i < n; ++i) sum += std::exp(x.real[begin + i] - shift);
    for (std::size_t i = 0; i < n; ++i) {
      out.real[begin + i] = sum == 0 ? 0 : std::exp(x.real[begin + i] - shift) / sum;
    }
  }
  return out;
}

/// What norms share: `centred` subtracts the mean first.
Values normalize(const Values& x, bool centred, Number eps, const Values* weight,
                 const Values* bias) {
  Values out(x.spec);
  const auto n = static_cast<std::size_t>(x.spec.shape.back());
  for (std::size_t begin = 0; n > 0 && begin < x.real.size(); begin += n) {
    Number mean = 0, square = 0;
    for (std::size_t i = 0; centred && i < n; ++i)
      mean += x.real[begin + i] / static_cast<Number>(n);
    for (std::size_t i = 0; i < n; ++i) {
      const Number d = x.real[begin + i] - mean;
      square += d * d / static_cast<Number>(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      Number y = (x.real[begin + i] - mean) / std::sqrt(square + eps);
      if (weight) y *= weight->real[i];
      if (bias) y += bias->real[i];
      out.real[begin + i] = y;
    }
  }
  return out;
}

template <class Norm>
std::vector<Values> norm(const Norm& op, const std::vector<Values>& inputs) {
  constexpr bool kAdds = std::is_same_v<Norm, AddRmsNorm>;
  std::vector<Values> outputs;
  Values x = inputs[0];
  if (kAdds) {
    for (std::size_t i = 0; i < x.real.size(); ++i) x.real[i] += inputs[1].real[i];
    outputs.push_back(x);
  }
  std::size_t next = kAdds ? 2 : 1;
  const Values* weight = op.has_weight ? &inputs[next++] : nullptr;
  const Values* bias = op.has_bias ? &inputs[next] : nullptr;
  constexpr bool kCentred = std::is_same_v<Norm, LayerNorm>;
  outputs.push_back(normalize(x, kCentred, static_cast<Number>(op.eps), weight, bias));
  return outputs;
}

Values fused(const Fused& op, const std::vector<Values>& in) {
  std::vector<Values> values = in;
  for (const ElementStep& step : op.program->steps) {
    std::vector<Values> operands;
    for (std::size_t i = 0; i < operand_count(step); ++i)
      operands.push_back(values[step.operands[i]]);
    const Op part = std::visit([](const auto& o) { return Op(o); }, step.op);
    values.push_back(reference(part, operands).front());
  }
  return values.back();
}

}  // namespace

Values reference_rms_norm(const Values& x, Number eps, const Values* weight) {
  return normalize(x, false, eps, weight, nullptr);
}

std::vector<Values> reference(const Op& op, const std::vector<Values>& in) {
  if (std::holds_alternative<Contiguous>(op) || std::holds_alternative<Repack>(op)) return {in[0]};
  if (const auto* o = std::get_if<SliceUpdate>(&op)) return {slice_update(*o, in[0], in[1])};
  if (const auto* o = std::get_if<Reinterpret>(&op)) return {reinterpret(*o, in[0])};
  if (const auto* o = std::get_if<Cast>(&op)) return {reference_cast(*o, in[0])};
  if (const auto* o = std::get_if<Concatenate>(&op)) return {concatenate(*o, in)};
  if (const auto* o = std::get_if<Arange>(&op)) return {arange(*o)};
  if (const auto* o = std::get_if<Unary>(&op)) return {reference_unary(*o, in[0])};
  if (const auto* o = std::get_if<Binary>(&op)) return {reference_binary(*o, in[0], in[1])};
  if (const auto* o = std::get_if<Compare>(&op)) return {reference_compare(*o, in[0], in[1])};
  if (std::holds_alternative<Select>(op)) return {select(in[0], in[1], in[2])};
  if (const auto* o = std::get_if<GatedMultiply>(&op)) return {gated_multiply(*o, in[0], in[1])};
  if (const auto* o = std::get_if<Fused>(&op)) return {fused(*o, in)};
  if (const auto* o = std::get_if<Reduce>(&op)) return {reference_reduce(*o, in[0])};
  if (std::holds_alternative<Softmax>(op)) return {softmax(in[0], false)};
  if (std::holds_alternative<CausalSoftmax>(op)) return {softmax(in[0], true)};
  if (const auto* o = std::get_if<RmsNorm>(&op)) return norm(*o, in);
  if (const auto* o = std::get_if<AddRmsNorm>(&op)) return norm(*o, in);
  if (const auto* o = std::get_if<LayerNorm>(&op)) return norm(*o, in);
  if (std::vector<Values> lines = reference_axis(op, in); !lines.empty()) return lines;
  if (std::vector<Values> ordered = reference_order(op, in); !ordered.empty()) return ordered;
  if (std::vector<Values> spatial = reference_spatial(op, in); !spatial.empty()) return spatial;
  if (std::vector<Values> rows = reference_rows(op, in); !rows.empty()) return rows;
  if (std::vector<Values> products = reference_products(op, in); !products.empty()) return products;
  if (std::vector<Values> linalg = reference_linalg(op, in); !linalg.empty()) return linalg;
  if (std::vector<Values> random = reference_random(op, in); !random.empty()) return random;
  if (std::vector<Values> groups = reference_quantized(op, in); !groups.empty()) return groups;
  throw std::logic_error("reference: no meaning for " + to_string(op));
}

}  // namespace heddle::test
