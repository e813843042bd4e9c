// Matrix products and attention.
#include <cmath>

#include "support/reference.h"

namespace heddle::test {

namespace {

Number at(const Values& x, const Dims& index) {
  return x.real[flat_index(x.spec.shape, index)];
}

Values matmul(const Values& a, const Values& b) {
  const TensorSpec specs[] = {a.spec, b.spec};
  Values out(infer(Matmul{}, specs)[0]);
  const std::int64_t inner = a.spec.shape.back();
  std::size_t next = 0;
  for_each_index(out.spec.shape, [&](const Dims& index) {
    Dims ia = index, ib = index;
    const std::size_t rows = index.size() - 2, columns = index.size() - 1;
    std::complex<Number> sum = 0;
    for (std::int64_t k = 0; k < inner; ++k) {
      ia[columns] = k;
      ib[rows] = k;
      const std::size_t x = broadcast_index(a.spec.shape, ia);
      const std::size_t y = broadcast_index(b.spec.shape, ib);
      if (out.imaginary.empty()) {
        sum += a.real[x] * b.real[y];
      } else {
        sum += std::complex(a.real[x], a.imaginary[x]) * std::complex(b.real[y], b.imaginary[y]);
      }
    }
    out.real[next] = sum.real();
    if (!out.imaginary.empty()) out.imaginary[next] = sum.imag();
    ++next;
  });
  return out;
}

std::vector<Values> linear(const std::vector<Values>& in) {
  std::vector<Values> outputs;
  const Values& x = in[0];
  const auto inner = static_cast<std::size_t>(x.spec.shape.back());
  for (std::size_t w = 1; w < in.size(); ++w) {
    Shape shape = x.spec.shape;
    shape[shape.size() - 1] = in[w].spec.shape[0];
    Values out({DType::f32, shape});
    const auto width = static_cast<std::size_t>(shape.back());
    for (std::size_t i = 0; i < out.real.size(); ++i) {
      const std::size_t row = i / width, column = i % width;
      for (std::size_t k = 0; k < inner; ++k) {
        out.real[i] += x.real[row * inner + k] * in[w].real[column * inner + k];
      }
    }
    outputs.push_back(std::move(out));
  }
  return outputs;
}

Values grouped_linear(const Values& x, const Values& weights, const Values& expert) {
  const std::int64_t width = weights.spec.shape[1], depth = x.spec.shape[1];
  Values out({DType::f32, {x.spec.shape[0], width}});
  for_each_index(out.spec.shape, [&](const Dims& index) {
    const auto e = static_cast<std::int64_t>(expert.real[static_cast<std::size_t>(index[0])]);
    Number& sum = out.real[flat_index(out.spec.shape, index)];
    for (std::int64_t k = 0; e >= 0 && k < depth; ++k) {
      sum += at(x, {index[0], k}) * at(weights, {e, index[1], k});
    }
  });
  return out;
}

std::vector<Values> selective_scan(const SelectiveScan& op, const std::vector<Values>& in) {
  const Shape& shape = in[0].spec.shape;
  const std::int64_t per_group = shape[2] / in[3].spec.shape[2], width = in[2].spec.shape[1];
  Values y(in[0].spec), state = in.back();
  for_each_index({shape[0], shape[2]}, [&](const Dims& index) {
    const std::int64_t batch = index[0], i = index[1], g = i / per_group;
    for (std::int64_t t = 0; t < shape[1]; ++t) {
      const Number x = at(in[0], {batch, t, i}), dt = at(in[1], {batch, t, i});
      Number sum = op.has_d ? in[5].real[static_cast<std::size_t>(i)] * x : 0;
      for (std::int64_t n = 0; n < width; ++n) {
        Number& h = state.real[flat_index(state.spec.shape, {batch, i, n})];
        h = std::exp(dt * at(in[2], {i, n})) * h + dt * x * at(in[3], {batch, t, g, n});
        sum += h * at(in[4], {batch, t, g, n});
      }
      y.real[flat_index(shape, {batch, t, i})] = sum;
    }
  });
  return {y, state};
}

/// softmax(scores) weighs values; scores of -inf take no part, and none at all gives zeros.
class Weighing {
 public:
  void add(Number score, std::vector<Number> value) {
    scores_.push_back(score);
    values_.push_back(std::move(value));
  }
  std::vector<Number> mean(std::size_t width) const {
    std::vector<Number> result(width, 0);
    Number max = -INFINITY, sum = 0;
    for (const Number s : scores_) max = std::fmax(max, s);
    if (std::isinf(max) && max < 0) return result;
    for (const Number s : scores_) sum += std::exp(s - max);
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      const Number weight = std::exp(scores_[i] - max) / sum;
      for (std::size_t d = 0; d < width; ++d) result[d] += weight * values_[i][d];
    }
    return result;
  }

 private:
  std::vector<Number> scores_;
  std::vector<std::vector<Number>> values_;
};

/// The mask's part of a score: 0 or -inf, or what an additive mask says.
Number mask_term(const Attention& op, const std::vector<Values>& in, const Dims& score_index,
                 std::int64_t query_position) {
  using enum Attention::Mask;
  const std::int64_t key = score_index[3];
  switch (op.mask) {
    case none:
      return 0;
    case causal:
      return key <= query_position && (op.window == 0 || key > query_position - op.window)
                 ? Number{0}
                 : -INFINITY;
    case boolean:
      return in[3].real[broadcast_index(in[3].spec.shape, score_index)] != 0 ? Number{0}
                                                                             : -INFINITY;
    case additive:
      return in[3].real[broadcast_index(in[3].spec.shape, score_index)];
  }
  return 0;
}

Values attention(const Attention& op, const std::vector<Values>& in) {
  const auto place = [&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
    return op.sequence_first ? Dims{b, s, h, d} : Dims{b, h, s, d};
  };
  const std::size_t head_axis = op.sequence_first ? 2 : 1,
                    sequence_axis = op.sequence_first ? 1 : 2;
  const Shape &q = in[0].spec.shape, &k = in[1].spec.shape;
  Shape shape = q;
  shape[3] = in[2].spec.shape[3];
  Values out({in[0].spec.dtype, shape});
  const std::int64_t group = q[head_axis] / k[head_axis], keys = k[sequence_axis];
  for_each_index({q[0], q[head_axis], q[sequence_axis]}, [&](const Dims& row) {
    const std::int64_t b = row[0], h = row[1], s = row[2];
    Weighing weighing;
    for (std::int64_t j = 0; j < keys; ++j) {
      Number score = 0;
      for (std::int64_t d = 0; d < q[3]; ++d) {
        score += at(in[0], place(b, h, s, d)) * at(in[1], place(b, h / group, j, d));
      }
      score = score * static_cast<Number>(op.scale) +
              mask_term(op, in, {b, h, s, j}, keys - q[sequence_axis] + s);
      std::vector<Number> value;
      for (std::int64_t d = 0; d < shape[3]; ++d)
        value.push_back(at(in[2], place(b, h / group, j, d)));
      weighing.add(score, std::move(value));
    }
    if (op.has_sinks) {
      weighing.add(in.back().real[static_cast<std::size_t>(h)],
                   std::vector<Number>(static_cast<std::size_t>(shape[3]), 0));
    }
    const std::vector<Number> mean = weighing.mean(static_cast<std::size_t>(shape[3]));
    for (std::int64_t d = 0; d < shape[3]; ++d) {
      out.real[flat_index(shape, place(b, h, s, d))] = mean[static_cast<std::size_t>(d)];
    }
  });
  return out;
}

/// What one token sees of one head.
std::vector<Number> attend_head(const Attend& op, const std::vector<Values>& in, std::int64_t t,
                                std::int64_t h) {
  const Shape &q = in[0].spec.shape, &k = in[1].spec.shape;
  const std::int64_t kv_head = h / (q[1] / k[1]), width = q[2];
  const auto sequence = static_cast<std::int64_t>(in[4].real[static_cast<std::size_t>(t)]);
  const auto position = static_cast<std::int64_t>(in[5].real[static_cast<std::size_t>(t)]);
  Weighing weighing;
  if (sequence < 0) return weighing.mean(static_cast<std::size_t>(width));
  const auto valid = static_cast<std::int64_t>(in[6].real[static_cast<std::size_t>(sequence)]);
  for (std::int64_t p = 0; p < valid && p <= position; ++p) {
    if (op.window > 0 && p <= position - op.window) continue;
    const auto block = static_cast<std::int64_t>(at(in[3], {sequence, p / op.block_size}));
    const std::int64_t row = block * op.block_size + p % op.block_size;
    Number score = 0;
    std::vector<Number> value;
    for (std::int64_t d = 0; d < width; ++d) {
      score += at(in[0], {t, h, d}) * at(in[1], {row, kv_head, d});
      value.push_back(at(in[2], {row, kv_head, d}));
    }
    weighing.add(score * static_cast<Number>(op.scale), std::move(value));
  }
  return weighing.mean(static_cast<std::size_t>(width));
}

Values attend(const Attend& op, const std::vector<Values>& in) {
  Values out(in[0].spec);
  const Shape& shape = out.spec.shape;
  for (std::int64_t t = 0; t < shape[0]; ++t) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      const std::vector<Number> head = attend_head(op, in, t, h);
      std::copy(head.begin(), head.end(),
                out.real.begin() + static_cast<std::ptrdiff_t>(flat_index(shape, {t, h, 0})));
    }
  }
  return out;
}

}  // namespace

std::vector<Values> reference_products(const Op& op, const std::vector<Values>& in) {
  if (std::holds_alternative<Matmul>(op)) return {matmul(in[0], in[1])};
  if (std::holds_alternative<Linear>(op)) return linear(in);
  if (std::holds_alternative<GroupedLinear>(op)) return {grouped_linear(in[0], in[1], in[2])};
  if (const auto* o = std::get_if<SelectiveScan>(&op)) return selective_scan(*o, in);
  if (const auto* o = std::get_if<Attention>(&op)) return {attention(*o, in)};
  if (const auto* o = std::get_if<Attend>(&op)) return {attend(*o, in)};
  return {};
}

}  // namespace heddle::test
