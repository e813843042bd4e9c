// Costs: what an op must move and compute at least, whatever the kernel.
#include <algorithm>
#include <cmath>

#include "base/overloaded.h"
#include "heddle/op.h"

namespace heddle {

namespace {

using Inputs = std::span<const TensorSpec>;

double count(const TensorSpec& spec) {
  return static_cast<double>(elements(spec.shape));
}
double bytes(const TensorSpec& spec) {
  return static_cast<double>(byte_size(spec));
}

double bytes_of_all(Inputs specs) {
  double total = 0;
  for (const TensorSpec& spec : specs) total += bytes(spec);
  return total;
}

/// Bytes of `rows` rows (axis 0) of a tensor.
double bytes_of_rows(const TensorSpec& spec, double rows) {
  const double all = static_cast<double>(spec.shape[0]);
  return all > 0 ? bytes(spec) / all * rows : 0;
}

Cost whole(Inputs in, Inputs out, double operations) {
  return {bytes_of_all(in) + bytes_of_all(out), operations};
}

// Operations for one element: multiplications and additions each count as one, a function as one.
constexpr double kSoftmaxOperations = 4;    // subtract, exp, add, scale
constexpr double kRmsNormOperations = 4;    // square, add, scale, weight
constexpr double kLayerNormOperations = 7;  // and mean, difference, bias
constexpr double kStateOperations = 7;      // exp, its product, two of the input, three sums
constexpr double kThreefryOperations = 36;  // for a word: half of twenty rounds and five additions
constexpr double kQuantizeOperations = 6;   // least, largest, and to a code
constexpr double kRopeOperations = 3;       // four products and two sums a pair

double norm_operations(Inputs in, double each) {
  return each * count(in[0]);
}

/// Bytes that a write of rows moves: what it is given but the state, and the rows in the state.
double row_write_bytes(Inputs in) {
  return bytes_of_all(in.subspan(1)) + bytes_of_rows(in[0], static_cast<double>(in[1].shape[0]));
}

/// Pairs of a query and a key that see each other, for one head.
double visible_pairs(const Attention& op, double queries, double keys) {
  if (op.mask != Attention::Mask::causal) return queries * keys;
  // Query i sees keys - queries + i + 1 of them.
  const double most = op.window > 0 ? std::min<double>(op.window, keys) : keys;
  const double first = std::clamp(keys - queries + 1, 0.0, most);
  return queries * (first + most) / 2;
}

Cost attention_cost(const Attention& op, Inputs in, Inputs out) {
  const Shape& q = in[0].shape;
  const std::size_t heads = op.sequence_first ? 2 : 1;
  const std::size_t length = op.sequence_first ? 1 : 2;
  const double pairs =
      visible_pairs(op, static_cast<double>(q[length]), static_cast<double>(in[1].shape[length])) *
      static_cast<double>(q[0] * q[heads]);
  const double widths = static_cast<double>(q[3] + in[2].shape[3]);
  return whole(in, out, pairs * (2 * widths + kSoftmaxOperations));
}

/// How long sequences are is data; this takes them as long as table and states allow.
Cost attend_cost(const Attend& op, Inputs in, Inputs out) {
  const double rows = static_cast<double>(in[1].shape[0]);
  const double context =
      std::min(rows, static_cast<double>(in[3].shape[1]) * static_cast<double>(op.block_size));
  const double seen = op.window > 0 ? std::min<double>(context, op.window) : context;
  const double sequences = static_cast<double>(in[3].shape[0]);
  const double read = std::min(rows, seen * sequences);
  const Shape& q = in[0].shape;
  const double pairs = static_cast<double>(q[0] * q[1]) * seen;
  return {bytes(in[0]) + bytes_of_rows(in[1], read) + bytes_of_rows(in[2], read) +
              bytes_of_all(in.subspan(3)) + bytes_of_all(out),
          pairs * (4 * static_cast<double>(q[2]) + kSoftmaxOperations)};
}

/// Of a scatter of the last operand by those between. The base is taken for dead, and not copied.
Cost scatter_cost(ScatterKind kind, Inputs in) {
  const TensorSpec& updates = in.back();
  const bool combines = kind != ScatterKind::none;
  return {bytes_of_all(in.subspan(1, in.size() - 2)) + (combines ? 3 : 2) * bytes(updates),
          combines ? count(updates) : 0.0};
}

/// How often `n` is halved, at least once.
double log2_of(std::int64_t n) {
  return std::log2(static_cast<double>(std::max<std::int64_t>(n, 2)));
}

/// How often each output element of a linear resize is added to.
double resize_operations(const Resize& op) {
  return op.kind == ResizeKind::nearest ? 0 : 2 * std::exp2(static_cast<double>(op.size.size()));
}

double pool_operations(const Pool& op) {
  double taps = 1;
  for (const std::int64_t extent : op.windows->window) taps *= static_cast<double>(extent);
  return taps;
}

/// Operations of one matrix, for matrices that are alike: the usual counts of LAPACK's working
/// notes, and for what iterates about as many as it takes.
double factor_operations(const Factor& op, Inputs in) {
  const Shape& shape = in[0].shape;
  const auto m = static_cast<double>(shape[shape.size() - 2]);
  const auto n = static_cast<double>(shape.back());
  const double k = std::min(m, n), most = std::max(m, n);
  switch (op.kind) {
    case FactorKind::cholesky:
    case FactorKind::triangular_inverse:
      return n * n * n / 3;
    case FactorKind::inverse:
      return 2 * n * n * n;
    case FactorKind::lu:
      return k * k * (most - k / 3);
    case FactorKind::qr:
      return 4 * k * k * (most - k / 3);
    case FactorKind::svd:
      return op.vectors ? 12 * most * most * k : 4 * most * k * k;
    case FactorKind::eigh:
      return (op.vectors ? 9 : 4.0 / 3) * n * n * n;
    case FactorKind::eig:
      return (op.vectors ? 25 : 10) * n * n * n;
  }
  return 0;
}

double matrices(const TensorSpec& spec) {
  double product = 1;
  for (std::size_t i = 0; i + 2 < spec.shape.size(); ++i) {
    product *= static_cast<double>(spec.shape[i]);
  }
  return product;
}

double solve_operations(const Solve& op, Inputs in) {
  const auto n = static_cast<double>(in[0].shape.back());
  const double factoring = op.triangular ? 0 : 2 * n * n * n / 3;
  const double substitutions = op.triangular ? 1 : 2;
  return matrices(in[0]) * factoring + substitutions * n * count(in[1]);
}

/// Five for each element and doubling, of the complex line or half of them for a real one.
double fft_operations(const Fft& op, Inputs in, Inputs out) {
  const double n = static_cast<double>(op.n);
  const bool real = op.kind == FftKind::real_forward || op.kind == FftKind::real_inverse;
  const TensorSpec& whole = op.kind == FftKind::real_inverse ? out[0] : in[0];
  return (real ? 2.5 : 5) * count(whole) * std::log2(std::max(n, 2.0));
}

double hadamard_operations(Inputs in) {
  const std::int64_t n = in[0].shape.back(), m = hadamard_order(n);
  const double steps = std::log2(static_cast<double>(n / m)) + (m > 1 ? static_cast<double>(m) : 0);
  return count(in[0]) * (steps + 1);
}

/// Experts that tokens choose are data; this takes as many as there are tokens.
Cost grouped_linear_cost(Inputs in, Inputs out) {
  const auto tokens = static_cast<double>(in[0].shape[0]);
  const double experts = std::min(tokens, static_cast<double>(in[1].shape[0]));
  return {bytes(in[0]) + bytes_of_rows(in[1], experts) + bytes(in[2]) + bytes(out[0]),
          2 * count(out[0]) * static_cast<double>(in[0].shape[1])};
}

/// The same for matrices that indices choose.
Cost gather_matmul_cost(Inputs in, Inputs out) {
  const double products = count(in[2]);
  const double read = std::min(products, static_cast<double>(in[0].shape[0]));
  const double matrices = std::min(products, static_cast<double>(in[1].shape[0]));
  return {bytes_of_rows(in[0], read) + bytes_of_rows(in[1], matrices) +
              bytes_of_all(in.subspan(2)) + bytes(out[0]),
          2 * count(out[0]) * static_cast<double>(in[0].shape[2])};
}

Cost group_matmul_cost(const GroupMatmul& op, Inputs in, Inputs out) {
  const double operations = 2 * count(out[0]) * static_cast<double>(in[0].shape.back());
  if (!op.gathers) return whole(in, out, operations);
  const std::size_t indices = in.size() - 2;
  const double products = count(in[indices]);
  double moved = bytes_of_all(in.subspan(indices)) + bytes(out[0]);
  for (const TensorSpec& spec : in.first(indices)) {
    moved += bytes_of_rows(spec, std::min(products, static_cast<double>(spec.shape[0])));
  }
  return {moved, operations};
}

}  // namespace

Cost cost(const Op& op, Inputs in, Inputs out) {
  if (is_leaf(op) || is_view(op)) return {};
  return std::visit(
      Overloaded{
          [&](const GatherRows&) -> Cost {
            const double rows = count(in[1]);
            return {bytes(in[1]) + bytes_of_rows(in[0], rows) + bytes(out[0]), 0};
          },
          [&](const WriteRows&) -> Cost {
            return {row_write_bytes(in), 0};
          },
          [&](const RopeWriteRows& o) -> Cost {
            const double each = (o.rope ? kRopeOperations : 0) + o.has_bias;
            return {row_write_bytes(in), each * count(in[1])};
          },
          [&](const Feed& o) -> Cost {
            const double moved = o.kind == Feed::Kind::row ? bytes(in[0]) : bytes(in[1]);
            return {2 * moved + bytes_of_all(in.subspan(2)), 0};
          },
          [&](const SliceUpdate&) -> Cost {
            // The base is taken for dead, and so not copied.
            return {2 * bytes(in[1]), 0};
          },
          [&](const GatherAxis&) -> Cost {
            return {bytes(in[1]) + 2 * bytes(out[0]), 0};
          },
          [&](const ScatterAxis& o) { return scatter_cost(o.kind, in); },
          [&](const Gather&) -> Cost {
            return {bytes_of_all(in.subspan(1)) + 2 * bytes(out[0]), 0};
          },
          [&](const Scatter& o) { return scatter_cost(o.kind, in); },
          [&](const Sort&) { return whole(in, out, count(in[0]) * log2_of(in[0].shape.back())); },
          [&](const SearchSorted&) {
            return whole(in, out, count(in[1]) * log2_of(in[0].shape[0] + 1));
          },
          [&](const Pad&) { return whole(in, out, 0); },
          [&](const Contiguous&) { return whole(in, out, 0); },
          [&](const Reinterpret&) { return whole(in, out, 0); },
          [&](const Repack&) { return whole(in, out, 0); },
          [&](const Concatenate&) { return whole(in, out, 0); },
          [&](const Fused& o) {
            return whole(in, out, static_cast<double>(o.program->steps.size()) * count(out[0]));
          },
          [&](const Reduce&) { return whole(in, out, count(in[0])); },
          [&](const ArgReduce&) { return whole(in, out, count(in[0])); },
          [&](const TopK&) { return whole(in, out, count(in[0])); },
          [&](const GatedMultiply&) { return whole(in, out, 2 * count(out[0])); },
          [&](const GroupMatmul& o) { return group_matmul_cost(o, in, out); },
          [&](const GatherMatmul&) { return gather_matmul_cost(in, out); },
          [&](const SegmentedMatmul&) {
            // Where segments lie is data; this takes them to share the inner axis.
            const double pairs = count(in[0]) * static_cast<double>(in[1].shape[1]);
            return whole(in, out, 2 * pairs);
          },
          [&](const GroupQuantize&) { return whole(in, out, kQuantizeOperations * count(in[0])); },
          [&](const GroupDequantize&) { return whole(in, out, 2 * count(out[0])); },
          [&](const NormRope&) {
            return whole(in, out, (kRmsNormOperations + kRopeOperations) * count(in[0]));
          },
          [&](const NormRopeWriteRows&) -> Cost {
            return {row_write_bytes(in), (kRmsNormOperations + kRopeOperations) * count(in[1])};
          },
          [&](const CausalSoftmax&) {
            return whole(in, out, norm_operations(in, kSoftmaxOperations));
          },
          [&](const Softmax&) { return whole(in, out, norm_operations(in, kSoftmaxOperations)); },
          [&](const RmsNorm&) { return whole(in, out, norm_operations(in, kRmsNormOperations)); },
          [&](const AddRmsNorm&) {
            return whole(in, out, norm_operations(in, 1 + kRmsNormOperations));
          },
          [&](const LayerNorm&) {
            return whole(in, out, norm_operations(in, kLayerNormOperations));
          },
          [&](const ChannelNorm&) {
            return whole(in, out, norm_operations(in, kLayerNormOperations));
          },
          [&](const GroupNorm&) {
            return whole(in, out, norm_operations(in, kLayerNormOperations));
          },
          [&](const Matmul&) {
            return whole(in, out, 2 * count(out[0]) * static_cast<double>(in[0].shape.back()));
          },
          [&](const Linear&) {
            double operations = 0;
            for (const TensorSpec& o : out) {
              operations += 2 * count(o) * static_cast<double>(in[0].shape.back());
            }
            return whole(in, out, operations);
          },
          [&](const GroupedLinear&) { return grouped_linear_cost(in, out); },
          [&](const Factor& o) {
            return whole(in, out, matrices(in[0]) * factor_operations(o, in));
          },
          [&](const Solve& o) { return whole(in, out, solve_operations(o, in)); },
          [&](const Fft& o) { return whole(in, out, fft_operations(o, in, out)); },
          [&](const Hadamard&) { return whole(in, out, hadamard_operations(in)); },
          [&](const Conv&) {
            const double taps =
                in[1].shape[0] == 0 ? 0 : count(in[1]) / static_cast<double>(in[1].shape[0]);
            return whole(in, out, 2 * count(out[0]) * taps);
          },
          [&](const Im2col&) { return whole(in, out, 0); },
          [&](const Pool& o) { return whole(in, out, count(out[0]) * pool_operations(o)); },
          [&](const Resize& o) { return whole(in, out, count(out[0]) * resize_operations(o)); },
          [&](const RandomBits& o) {
            return whole(in, out,
                         kThreefryOperations / 4 * static_cast<double>(o.width) * count(out[0]));
          },
          [&](const SelectiveScan&) {
            return whole(in, out,
                         kStateOperations * count(in[0]) * static_cast<double>(in[2].shape[1]));
          },
          [&](const Rope& o) {
            return whole(in, out, (kRopeOperations + o.has_bias) * count(in[0]));
          },
          [&](const RopeTable&) { return whole(in, out, kRopeOperations * count(in[0])); },
          [&](const Attention& o) { return attention_cost(o, in, out); },
          [&](const Attend& o) { return attend_cost(o, in, out); },
          [&](const auto&) { return whole(in, out, count(out[0])); },  // one for each element
      },
      op);
}

}  // namespace heddle
