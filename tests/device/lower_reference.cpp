#include "device/lower_reference.h"
#include "base/overloaded.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "device/lower.h"
#include "support/reference.h"

namespace heddle {

namespace {

using Inputs = std::span<const Reference>;
using Index = std::vector<std::int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class F>
void for_each_index(const Shape& shape, const F& f) {
  const std::int64_t count = elements(shape);
  for (std::int64_t i = 0; i < count; ++i) {
    Index index(shape.size());
    std::int64_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    f(index, static_cast<std::size_t>(i));
  }
}

/// The element at an index of a shape that `x` broadcasts to.
double at(const Reference& x, const Index& index) {
  const Shape& shape = x.spec.shape;
  const std::size_t lead = index.size() - shape.size();
  std::size_t flat = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t i = shape[d] == 1 ? 0 : index[lead + d];
    flat = flat * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(i);
  }
  return x.values[flat];
}

using Element = std::function<double(const Index&)>;

Reference make(const TensorSpec& spec, const Element& element) {
  Reference result{spec, std::vector<double>(static_cast<std::size_t>(elements(spec.shape)))};
  for_each_index(spec.shape, [&](const Index& index, std::size_t flat) {
    result.values[flat] = element(index);
  });
  return result;
}

double unary(UnaryKind kind, double x) {
  switch (kind) {
    case UnaryKind::square:
      return x * x;
    case UnaryKind::rsqrt:
      return 1 / std::sqrt(x);
    case UnaryKind::exp:
      return std::exp(x);
    case UnaryKind::cos:
      return std::cos(x);
    case UnaryKind::sin:
      return std::sin(x);
    case UnaryKind::silu:
      return x / (1 + std::exp(-x));
    case UnaryKind::relu:
      return std::max(x, 0.0);
    default:
      throw std::logic_error("no reference for " + std::string(to_string(kind)));
  }
}

double binary(BinaryKind kind, double a, double b) {
  switch (kind) {
    case BinaryKind::add:
      return a + b;
    case BinaryKind::subtract:
      return a - b;
    case BinaryKind::multiply:
      return a * b;
    case BinaryKind::divide:
      return a / b;
    case BinaryKind::maximum:
      return std::max(a, b);
    case BinaryKind::logical_and:
      return a != 0 && b != 0;
    default:
      throw std::logic_error("no reference for " + std::string(to_string(kind)));
  }
}

bool compare(CompareKind kind, double a, double b) {
  switch (kind) {
    case CompareKind::equal:
      return a == b;
    case CompareKind::not_equal:
      return a != b;
    case CompareKind::less:
      return a < b;
    case CompareKind::less_equal:
      return a <= b;
    case CompareKind::greater:
      return a > b;
    case CompareKind::greater_equal:
      return a >= b;
  }
  return false;
}

double convert(DType dtype, double x) {
  if (dtype == DType::bool_) return x != 0;
  return is_integer(dtype) ? std::trunc(x) : x;
}

Reference view(const Op& op, const Reference& x, const TensorSpec& out) {
  const ViewOf shown = view_of(op, OperandSpec::contiguous({DType::u8, x.spec.shape})).value();
  return make(out, [&](const Index& index) {
    std::int64_t from = shown.offset_bytes + first_element({out, shown.layout});
    for (std::size_t d = 0; d < index.size(); ++d) from += index[d] * shown.layout.strides[d];
    return x.values[static_cast<std::size_t>(from)];
  });
}

Reference reduce(const Reduce& op, const Reference& x, const TensorSpec& out) {
  using enum ReduceKind;
  const double start = op.kind == prod || op.kind == all ? 1
                       : op.kind == max                  ? -kInfinity
                       : op.kind == min                  ? kInfinity
                                                         : 0;
  Reference result = make(out, [&](const Index&) { return start; });
  double count = 1;
  for (const std::int64_t axis : op.axes) count *= static_cast<double>(x.spec.shape[axis]);
  for_each_index(x.spec.shape, [&](const Index& index, std::size_t flat) {
    std::size_t to = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (std::ranges::find(op.axes, static_cast<std::int64_t>(d)) != op.axes.end()) continue;
      to = to * static_cast<std::size_t>(x.spec.shape[d]) + static_cast<std::size_t>(index[d]);
    }
    double& into = result.values[to];
    const double value = x.values[flat];
    switch (op.kind) {
      case sum:
        into += value;
        break;
      case mean:
        into += value / count;
        break;
      case prod:
        into *= value;
        break;
      case max:
        into = std::max(into, value);
        break;
      case min:
        into = std::min(into, value);
        break;
      case any:
        into = into != 0 || value != 0;
        break;
      case all:
        into = into != 0 && value != 0;
        break;
    }
  });
  return result;
}

/// Every row along the last axis, changed in place by `f`.
Reference by_row(Reference x, const std::function<void(std::span<double>)>& f) {
  const auto width = static_cast<std::size_t>(x.spec.shape.back());
  for (std::size_t i = 0; width > 0 && i < x.values.size(); i += width) {
    f(std::span(x.values).subspan(i, width));
  }
  return x;
}

void softmax_row(std::span<double> row) {
  const double most = *std::ranges::max_element(row);
  double sum = 0;
  for (double& x : row) sum += x = most == -kInfinity ? 0 : std::exp(x - most);
  for (double& x : row) x = sum > 0 ? x / sum : 0;
}

Reference norm(const Reference& x, bool centred, double eps, const Reference* weight,
               const Reference* bias) {
  return by_row(x, [&](std::span<double> row) {
    const double n = static_cast<double>(row.size());
    double mean = 0, squares = 0;
    for (const double v : row) mean += centred ? v / n : 0;
    for (const double v : row) squares += (v - mean) * (v - mean) / n;
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = (row[i] - mean) / std::sqrt(squares + eps);
      if (weight) row[i] *= weight->values[i];
      if (bias) row[i] += bias->values[i];
    }
  });
}

Reference matmul(const Reference& a, const Reference& b, const TensorSpec& out) {
  return make(out, [&](const Index& index) {
    double sum = 0;
    Index left = index, right = index;
    for (std::int64_t k = 0; k < a.spec.shape.back(); ++k) {
      left.back() = k;
      right[right.size() - 2] = k;
      // Batches broadcast; the last two axes never do.
      const auto element = [](const Reference& x, const Index& i) {
        const std::size_t rank = x.spec.shape.size();
        std::size_t flat = 0;
        for (std::size_t d = 0; d < rank; ++d) {
          const bool repeated = d + 2 < rank && x.spec.shape[d] == 1;
          flat = flat * static_cast<std::size_t>(x.spec.shape[d]) +
                 static_cast<std::size_t>(repeated ? 0 : i[i.size() - rank + d]);
        }
        return x.values[flat];
      };
      sum += element(a, left) * element(b, right);
    }
    return sum;
  });
}

Reference linear(const Reference& x, const Reference& weight, const TensorSpec& out) {
  const auto width = static_cast<std::size_t>(x.spec.shape.back());
  const auto rows = static_cast<std::size_t>(weight.spec.shape[0]);
  Reference result = make(out, [](const Index&) { return 0.0; });
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    for (std::size_t k = 0; k < width; ++k) {
      result.values[i] += x.values[i / rows * width + k] * weight.values[i % rows * width + k];
    }
  }
  return result;
}

/// x [T, H, D], turned by angle(t, pair).
Reference turn(RopeStyle style, std::int64_t pairs, const Reference& x,
               const std::function<double(std::int64_t, std::int64_t)>& cos,
               const std::function<double(std::int64_t, std::int64_t)>& sin) {
  return make(x.spec, [&](const Index& index) {
    const std::int64_t i = index[2];
    if (i >= 2 * pairs) return at(x, index);
    const bool halves = style == RopeStyle::split_half;
    const std::int64_t pair = halves ? i % pairs : i / 2;
    const bool second = halves ? i >= pairs : i % 2 == 1;
    Index other = index;
    other[2] = halves ? (second ? i - pairs : i + pairs) : (second ? i - 1 : i + 1);
    const double c = cos(index[0], pair), s = sin(index[0], pair);
    return at(x, index) * c + (second ? 1 : -1) * at(x, other) * s;
  });
}

Reference with_bias(Reference x, const Reference& bias) {
  for (std::size_t i = 0; i < x.values.size(); ++i)
    x.values[i] += bias.values[i % bias.values.size()];
  return x;
}

Reference rope(const RopeAngles& a, bool has_bias, Inputs in) {
  const Reference x = has_bias ? with_bias(in[0], in[1]) : in[0];
  const Reference& pos = in[1 + std::size_t{has_bias}];
  const auto angle = [&](std::int64_t t, std::int64_t pair) {
    const double factor = a.has_factors ? in.back().values[static_cast<std::size_t>(pair)] : 1;
    return pos.values[static_cast<std::size_t>(t)] * a.scale *
           std::pow(static_cast<double>(a.base),
                    -2.0 * static_cast<double>(pair) / static_cast<double>(a.dims)) /
           factor;
  };
  return turn(
      a.style, a.dims / 2, x, [&](auto t, auto p) { return std::cos(angle(t, p)); },
      [&](auto t, auto p) { return std::sin(angle(t, p)); });
}

Reference rope_table(const RopeTable& op, Inputs in) {
  const auto entry = [&](const Reference& table) {
    return [&op, &table, in](std::int64_t t, std::int64_t pair) {
      const double row =
          op.by_position ? in[3].values[static_cast<std::size_t>(t)] : static_cast<double>(t);
      return at(table, {static_cast<std::int64_t>(row), pair});
    };
  };
  return turn(op.style, in[1].spec.shape[1], in[0], entry(in[1]), entry(in[2]));
}

Reference gather(bool wrap, Inputs in, const TensorSpec& out) {
  const std::size_t ids = in[1].spec.shape.size();
  return make(out, [&](const Index& index) {
    Index from(index.begin() + static_cast<std::ptrdiff_t>(ids), index.end());
    const auto rows = static_cast<double>(in[0].spec.shape[0]);
    double id = at(in[1], Index(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(ids)));
    if (wrap && id < 0) id += rows;
    if (id < 0 || id >= rows) throw std::out_of_range("id");
    from.insert(from.begin(), static_cast<std::int64_t>(id));
    return at(in[0], from);
  });
}

Reference slice_update(const SliceUpdate& op, Reference base, const Reference& update) {
  for_each_index(update.spec.shape, [&](const Index& index, std::size_t flat) {
    std::size_t to = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      to = to * static_cast<std::size_t>(base.spec.shape[d]) +
           static_cast<std::size_t>(op.start[d] + index[d] * op.step[d]);
    }
    base.values[to] = update.values[flat];
  });
  return base;
}

Reference write_rows(Reference state, const Reference& x, const Reference& row) {
  const std::size_t width = state.values.size() / static_cast<std::size_t>(state.spec.shape[0]);
  for (std::size_t t = 0; t < row.values.size(); ++t) {
    if (row.values[t] < 0) continue;
    for (std::size_t i = 0; i < width; ++i) {
      state.values[static_cast<std::size_t>(row.values[t]) * width + i] = x.values[t * width + i];
    }
  }
  return state;
}

Reference concatenate(const Concatenate& op, Inputs in, const TensorSpec& out) {
  const auto axis = static_cast<std::size_t>(op.axis);
  return make(out, [&](Index index) {
    for (const Reference& x : in) {
      if (index[axis] < x.spec.shape[axis]) {
        std::size_t flat = 0;
        for (std::size_t d = 0; d < index.size(); ++d) {
          flat =
              flat * static_cast<std::size_t>(x.spec.shape[d]) + static_cast<std::size_t>(index[d]);
        }
        return x.values[flat];
      }
      index[axis] -= x.spec.shape[axis];
    }
    throw std::out_of_range("concatenate");
  });
}

/// softmax(scores) v for one query, given what it sees.
struct Seen {
  std::vector<double> scores;
  std::vector<Index> values;  // where each one's row of v begins, but for the last index
};
double mix(Seen seen, const Reference& v, std::int64_t i) {
  if (seen.scores.empty()) return 0;
  softmax_row(seen.scores);
  double sum = 0;
  for (std::size_t k = 0; k < seen.scores.size(); ++k) {
    Index from = seen.values[k];
    from.push_back(i);
    sum += seen.scores[k] * at(v, from);
  }
  return sum;
}

Reference attention(const Attention& op, Inputs in, const TensorSpec& out) {
  using enum Attention::Mask;
  const std::size_t head_axis = op.sequence_first ? 2 : 1, sequence_axis = 3 - head_axis;
  const Shape &q = in[0].spec.shape, &k = in[1].spec.shape;
  const std::int64_t group = q[head_axis] / k[head_axis];
  const std::int64_t shift = k[sequence_axis] - q[sequence_axis];
  const auto place = [&](std::int64_t b, std::int64_t h, std::int64_t s) {
    return op.sequence_first ? Index{b, s, h} : Index{b, h, s};
  };
  return make(out, [&](const Index& index) {
    const std::int64_t h = index[head_axis], s = index[sequence_axis], position = s + shift;
    Seen seen;
    for (std::int64_t j = 0; j < k[sequence_axis]; ++j) {
      const Index pair{index[0], h, s, j};
      if (op.mask == causal && (j > position || (op.window && j <= position - op.window))) continue;
      if (op.mask == boolean && at(in[3], pair) == 0) continue;
      double score = 0;
      Index from_q = place(index[0], h, s), from_k = place(index[0], h / group, j);
      seen.values.push_back(from_k);
      from_q.push_back(0), from_k.push_back(0);
      for (; from_q[3] < q[3]; ++from_q[3], ++from_k[3])
        score += at(in[0], from_q) * at(in[1], from_k);
      seen.scores.push_back(score * op.scale + (op.mask == additive ? at(in[3], pair) : 0));
    }
    return mix(seen, in[2], index[3]);
  });
}

Reference attend(const Attend& op, Inputs in, const TensorSpec& out) {
  const std::int64_t group = in[0].spec.shape[1] / in[1].spec.shape[1];
  return make(out, [&](const Index& index) {
    const auto token = static_cast<std::size_t>(index[0]);
    const auto s = static_cast<std::int64_t>(in[4].values[token]);
    const auto pos = static_cast<std::int64_t>(in[5].values[token]);
    if (s < 0) return 0.0;
    Seen seen;
    const auto length = static_cast<std::int64_t>(in[6].values[static_cast<std::size_t>(s)]);
    for (std::int64_t p = 0; p < length && p <= pos; ++p) {
      if (op.window && p <= pos - op.window) continue;
      const double block = at(in[3], {s, p / op.block_size});
      const std::int64_t row = static_cast<std::int64_t>(block) * op.block_size + p % op.block_size;
      double score = 0;
      for (std::int64_t d = 0; d < in[0].spec.shape[2]; ++d) {
        score += at(in[0], {index[0], index[1], d}) * at(in[1], {row, index[1] / group, d});
      }
      seen.scores.push_back(score * op.scale);
      seen.values.push_back({row, index[1] / group});
    }
    return mix(seen, in[2], index[2]);
  });
}

std::vector<TensorSpec> specs_of(Inputs inputs) {
  std::vector<TensorSpec> specs;
  for (const Reference& input : inputs) specs.push_back(input.spec);
  return specs;
}

const Reference* optional_operand(Inputs in, std::size_t i, bool there) {
  return there ? &in[i] : nullptr;
}

/// As devices are tested against.
std::vector<Reference> by_common_reference(const Op& op, Inputs in) {
  std::vector<test::Values> operands;
  for (const Reference& x : in) {
    operands.emplace_back(x.spec);
    operands.back().real.assign(x.values.begin(), x.values.end());
  }
  std::vector<Reference> results;
  for (const test::Values& y : test::reference(op, operands)) {
    results.push_back({y.spec, {y.real.begin(), y.real.end()}});
  }
  return results;
}

}  // namespace

std::vector<Reference> reference(const Op& op, Inputs in) {
  const std::vector<TensorSpec> out = infer(op, specs_of(in));
  using Results = std::vector<Reference>;
  const auto element_wise = [&](const Element& element) { return Results{make(out[0], element)}; };
  if (is_view(op)) return {view(op, in[0], out[0])};
  return std::visit(
      Overloaded{
          [&](const Contiguous&) { return Results{in[0]}; },
          [&](const Cast& o) {
            return element_wise([&](const Index& i) { return convert(o.dtype, at(in[0], i)); });
          },
          [&](const Arange& o) {
            return element_wise(
                [&](const Index& i) { return o.start + static_cast<double>(i[0]) * o.step; });
          },
          [&](const Unary& o) {
            return element_wise([&](const Index& i) { return unary(o.kind, at(in[0], i)); });
          },
          [&](const Binary& o) {
            return element_wise(
                [&](const Index& i) { return binary(o.kind, at(in[0], i), at(in[1], i)); });
          },
          [&](const Compare& o) {
            return element_wise(
                [&](const Index& i) { return compare(o.kind, at(in[0], i), at(in[1], i)); });
          },
          [&](const Select&) {
            return element_wise(
                [&](const Index& i) { return at(in[0], i) != 0 ? at(in[1], i) : at(in[2], i); });
          },
          [&](const GatedMultiply& o) {
            return element_wise(
                [&](const Index& i) { return unary(o.activation, at(in[0], i)) * at(in[1], i); });
          },
          [&](const Reduce& o) { return Results{reduce(o, in[0], out[0])}; },
          [&](const Softmax&) { return Results{by_row(in[0], softmax_row)}; },
          [&](const RmsNorm& o) {
            return Results{norm(in[0], false, o.eps, optional_operand(in, 1, o.has_weight),
                                optional_operand(in, 1 + std::size_t{o.has_weight}, o.has_bias))};
          },
          [&](const LayerNorm& o) {
            return Results{norm(in[0], true, o.eps, optional_operand(in, 1, o.has_weight),
                                optional_operand(in, 1 + std::size_t{o.has_weight}, o.has_bias))};
          },
          [&](const AddRmsNorm& o) {
            const Reference sum =
                make(out[0], [&](const Index& i) { return at(in[0], i) + at(in[1], i); });
            return Results{sum,
                           norm(sum, false, o.eps, optional_operand(in, 2, o.has_weight),
                                optional_operand(in, 2 + std::size_t{o.has_weight}, o.has_bias))};
          },
          [&](const Matmul&) { return Results{matmul(in[0], in[1], out[0])}; },
          [&](const Linear&) {
            Results results;
            for (std::size_t i = 0; i < out.size(); ++i)
              results.push_back(linear(in[0], in[1 + i], out[i]));
            return results;
          },
          [&](const Concatenate& o) { return Results{concatenate(o, in, out[0])}; },
          [&](const GatherRows& o) { return Results{gather(o.wrap, in, out[0])}; },
          [&](const SliceUpdate& o) { return Results{slice_update(o, in[0], in[1])}; },
          [&](const WriteRows&) { return Results{write_rows(in[0], in[1], in[2])}; },
          [&](const Rope& o) { return Results{rope(o.angles, o.has_bias, in)}; },
          [&](const RopeTable& o) { return Results{rope_table(o, in)}; },
          [&](const RopeWriteRows& o) {
            Results operands{in[1]};
            for (const Reference& more : in.subspan(3)) operands.push_back(more);
            Reference x = in[1];
            if (o.rope)
              x = rope(o.angles, o.has_bias, operands);
            else if (o.has_bias)
              x = with_bias(x, in[3]);
            return Results{write_rows(in[0], x, in[2])};
          },
          [&](const Attention& o) {
            return o.has_sinks ? by_common_reference(op, in) : Results{attention(o, in, out[0])};
          },
          [&](const Attend& o) { return Results{attend(o, in, out[0])}; },
          [&](const auto&) { return by_common_reference(op, in); },
      },
      op);
}

std::vector<Reference> reference_lowered(const Op& op, Inputs inputs) {
  const std::optional<Lowered> lowered = is_view(op) ? std::nullopt : lower(op, specs_of(inputs));
  if (!lowered) return reference(op, inputs);
  std::vector<std::vector<Reference>> results;
  const auto value = [&](const LoweredStep::Source& source) {
    return source.from_input ? inputs[source.index] : results[source.index][source.output];
  };
  for (const LoweredStep& step : lowered->steps) {
    std::vector<Reference> operands;
    for (const LoweredStep::Source& source : step.sources) operands.push_back(value(source));
    results.push_back(reference_lowered(step.op, operands));
  }
  std::vector<Reference> outputs;
  for (const LoweredStep::Source& source : lowered->outputs) outputs.push_back(value(source));
  return outputs;
}

}  // namespace heddle
