// Rows chosen by data, and rotary embeddings.
#include <cmath>
#include <stdexcept>

#include "support/reference.h"

namespace heddle::test {

namespace {

std::size_t row_size(const Values& x) {
  std::size_t n = 1;
  for (std::size_t i = 1; i < x.spec.shape.size(); ++i)
    n *= static_cast<std::size_t>(x.spec.shape[i]);
  return n;
}

void copy_row(const Values& from, std::size_t i, Values& to, std::size_t j, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) {
    to.real[j * n + k] = from.real[i * n + k];
    if (!to.imaginary.empty()) to.imaginary[j * n + k] = from.imaginary[i * n + k];
  }
}

Values gather_rows(const GatherRows& op, const Values& table, const Values& ids) {
  Shape shape = ids.spec.shape;
  for (std::size_t i = 1; i < table.spec.shape.size(); ++i) shape.push_back(table.spec.shape[i]);
  Values out({op.dtype, shape});
  for (std::size_t t = 0; t < ids.real.size(); ++t) {
    Number id = ids.real[t];
    if (op.wrap && id < 0) id += static_cast<Number>(table.spec.shape[0]);
    copy_row(table, static_cast<std::size_t>(id), out, t, row_size(table));
  }
  return out;
}

Values write_rows(const Values& state, const Values& x, const Values& row) {
  Values out = state;
  for (std::size_t t = 0; t < row.real.size(); ++t) {
    if (row.real[t] < 0) continue;
    copy_row(x, t, out, static_cast<std::size_t>(row.real[t]), row_size(state));
  }
  return out;
}

Values feed(const Feed& op, const std::vector<Values>& in) {
  Values out = in[0];
  const Values& x = in[1];
  if (op.kind == Feed::Kind::whole) {
    out.real = x.real;
    out.imaginary = x.imaginary;
    return out;
  }
  const auto extent = static_cast<std::size_t>(in[2].real[0]);
  if (op.kind == Feed::Kind::row) {
    copy_row(x, extent, out, 0, row_size(x));
    return out;
  }
  for (std::size_t t = 0; t < extent; ++t) copy_row(x, t, out, t, row_size(x));
  return out;
}

// ---- Rotary embeddings

struct Turned {
  std::int64_t tokens, heads, features;
  explicit Turned(const Shape& shape) : tokens(shape[0]), heads(shape[1]), features(shape[2]) {}
};

void add_bias(Values& x, const Values& bias) {
  for (std::size_t i = 0; i < x.real.size(); ++i) x.real[i] += bias.real[i % bias.real.size()];
}

/// Turns pair `i` of every head of token `t`.
void turn_pair(Values& x, RopeStyle style, std::int64_t pairs, std::int64_t t, std::int64_t i,
               Number cos, Number sin) {
  const Turned shape(x.spec.shape);
  const bool interleaved = style == RopeStyle::interleaved;
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    const std::int64_t head = (t * shape.heads + h) * shape.features;
    Number& a = x.real[static_cast<std::size_t>(head + (interleaved ? 2 * i : i))];
    Number& b = x.real[static_cast<std::size_t>(head + (interleaved ? 2 * i + 1 : i + pairs))];
    const Number old = a;
    a = old * cos - b * sin;
    b = old * sin + b * cos;
  }
}

void turn(Values& x, const RopeAngles& angles, const Values& position, const Values* factors) {
  const std::int64_t pairs = angles.dims / 2;
  for (std::int64_t t = 0; t < x.spec.shape[0]; ++t) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      Number angle = position.real[static_cast<std::size_t>(t)] *
                     static_cast<Number>(angles.scale) *
                     std::pow(static_cast<Number>(angles.base),
                              -2 * static_cast<Number>(i) / static_cast<Number>(angles.dims));
      if (factors) angle /= factors->real[static_cast<std::size_t>(i)];
      turn_pair(x, angles.style, pairs, t, i, std::cos(angle), std::sin(angle));
    }
  }
}

Values rope(const Rope& op, const std::vector<Values>& in) {
  Values x = in[0];
  std::size_t next = 1;
  if (op.has_bias) add_bias(x, in[next++]);
  const Values& position = in[next++];
  turn(x, op.angles, position, op.angles.has_factors ? &in[next] : nullptr);
  return x;
}

Values rope_table(const RopeTable& op, const std::vector<Values>& in) {
  Values x = in[0];
  const std::int64_t pairs = in[1].spec.shape[1];
  for (std::int64_t t = 0; t < x.spec.shape[0]; ++t) {
    const Number row = op.by_position ? in[3].real[static_cast<std::size_t>(t)] : Number(t);
    for (std::int64_t i = 0; i < pairs; ++i) {
      const auto at = static_cast<std::size_t>(static_cast<std::int64_t>(row) * pairs + i);
      turn_pair(x, op.style, pairs, t, i, in[1].real[at], in[2].real[at]);
    }
  }
  return x;
}

Values rope_write_rows(const RopeWriteRows& op, const std::vector<Values>& in) {
  Values x = in[1];
  std::size_t next = 3;
  if (op.has_bias) add_bias(x, in[next++]);
  if (op.rope) {
    const Values& position = in[next++];
    turn(x, op.angles, position, op.angles.has_factors ? &in[next] : nullptr);
  }
  return write_rows(in[0], x, in[2]);
}

/// Operands `next` and later: [weight], positions, [factors].
Values norm_rope(const NormRope& op, const Values& x, const std::vector<Values>& in,
                 std::size_t next) {
  const Values* weight = op.has_weight ? &in[next++] : nullptr;
  Values out = reference_rms_norm(x, static_cast<Number>(op.eps), weight);
  const Values& position = in[next++];
  turn(out, op.angles, position, op.angles.has_factors ? &in[next] : nullptr);
  return out;
}

}  // namespace

std::vector<Values> reference_rows(const Op& op, const std::vector<Values>& in) {
  if (const auto* o = std::get_if<GatherRows>(&op)) return {gather_rows(*o, in[0], in[1])};
  if (std::holds_alternative<WriteRows>(op)) return {write_rows(in[0], in[1], in[2])};
  if (const auto* o = std::get_if<Feed>(&op)) return {feed(*o, in)};
  if (const auto* o = std::get_if<Rope>(&op)) return {rope(*o, in)};
  if (const auto* o = std::get_if<RopeTable>(&op)) return {rope_table(*o, in)};
  if (const auto* o = std::get_if<RopeWriteRows>(&op)) return {rope_write_rows(*o, in)};
  if (const auto* o = std::get_if<NormRope>(&op)) return {norm_rope(*o, in[0], in, 1)};
  if (const auto* o = std::get_if<NormRopeWriteRows>(&op)) {
    const NormRope norm{o->eps, o->has_weight, o->angles};
    return {write_rows(in[0], norm_rope(norm, in[1], in, 3), in[2])};
  }
  return {};
}

}  // namespace heddle::test
