// Rotary embeddings: rope, rope_table, rope_write_rows and, of heads that are normalised first,
// norm_rope and norm_rope_write_rows; for f32, f16 and bf16.
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "device/cpu/parallel.h"
#include "device/cpu/row_ops.h"
#include "device/cpu/rows.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kMostFeatures = 1024;  // of a head: what the stack holds

// ---- Angles

/// Pairs whose angles are computed side by side.
constexpr std::int64_t kAtOnce = 16;

/// sin and cos of kAtOnce angles up to 1e8: quarter turns are taken off in double, so that what
/// remains is exact to 1e-8, and the rest is Taylor's series in float on [-pi/4, pi/4], whose first
/// omitted terms are below 3e-9.
void sin_cos(const double* angles, float* sin, float* cos) {
  constexpr double kRound = 0x1.8p52;  // adding it leaves a whole number in the low bits
  float rest[kAtOnce];
  std::int32_t turns[kAtOnce];
  for (std::int64_t i = 0; i < kAtOnce; ++i) {
    const double rounded = angles[i] * (2.0 / M_PI) + kRound;
    rest[i] = static_cast<float>(angles[i] - (rounded - kRound) * (M_PI / 2.0));
    turns[i] = static_cast<std::int32_t>(std::bit_cast<std::int64_t>(rounded));
  }
  for (std::int64_t i = 0; i < kAtOnce; ++i) {
    const float r = rest[i], s = r * r;
    const float sin_r =
        r + r * s * (-1.0f / 6 + s * (1.0f / 120 + s * (-1.0f / 5040 + s * (1.0f / 362880))));
    const float cos_r =
        1.0f + s * (-0.5f + s * (1.0f / 24 +
                                 s * (-1.0f / 720 + s * (1.0f / 40320 + s * (-1.0f / 3628800)))));
    const bool swap = (turns[i] & 1) != 0;
    const float sin_sign = (turns[i] & 2) != 0 ? -1.0f : 1.0f;
    const float cos_sign = ((turns[i] + 1) & 2) != 0 ? -1.0f : 1.0f;
    sin[i] = sin_sign * (swap ? cos_r : sin_r);
    cos[i] = cos_sign * (swap ? sin_r : cos_r);
  }
}

/// Cosines and sines of one token's pairs.
struct Turns {
  alignas(64) float cos[kMostFeatures / 2];
  alignas(64) float sin[kMostFeatures / 2];
};

/// Radians that each pair turns by from a position to the next; zeros up to a multiple of kAtOnce.
std::vector<double> frequencies(const RopeAngles& angles) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < angles.dims / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(angles.dims);
    result.push_back(static_cast<double>(angles.scale) *
                     std::pow(static_cast<double>(angles.base), exponent));
  }
  while (result.size() % kAtOnce != 0) result.push_back(0);
  return result;
}

struct Angles {
  std::vector<double> frequency;
  std::int64_t pairs = 0;
  BlockSource factors;
  bool has_factors = false;

  void at(std::int32_t position, const std::byte* factor_data, Turns& turns) const {
    BlockBuffer scratch;
    const float* factor = has_factors ? factors.floats(factor_data, 0, pairs, scratch) : nullptr;
    for (std::int64_t first = 0; first < pairs; first += kAtOnce) {
      double angles[kAtOnce];
      for (std::int64_t i = 0; i < kAtOnce; ++i) angles[i] = position * frequency.data()[first + i];
      for (std::int64_t i = 0; factor && i < std::min(kAtOnce, pairs - first); ++i) {
        angles[i] /= factor[first + i];
      }
      sin_cos(angles, turns.sin + first, turns.cos + first);
    }
  }
};

// ---- Heads

/// What happens to a head before it is turned: a bias for each feature of each head is added, or it
/// is normalised, as rms_norm does it, with a weight for each feature or none.
struct Preparation {
  enum class Kind { none, bias, norm } kind = Kind::none;
  BlockSource parameter;  // the bias or the weight
  bool has_parameter = false;
  float eps = 0;
  const RowOps* ops = &row_ops();

  void add_bias(const std::byte* data, std::int64_t h, std::int64_t features, float* head) const {
    BlockBuffer scratch;
    for (std::int64_t i = 0; i < features; i += kBlock) {
      const std::int64_t n = std::min(kBlock, features - i);
      const float* b = parameter.floats(data, h * features + i, n, scratch);
      for (std::int64_t k = 0; k < n; ++k) head[i + k] += b[k];
    }
  }
  void normalize(const std::byte* data, std::int64_t features, float* head) const {
    BlockBuffer scratch;
    Pairwise<float> squares;
    for (std::int64_t i = 0; i < features; i += kBlock) {
      squares.add(ops->sum_squares(head + i, std::min(kBlock, features - i)));
    }
    const float mean_square = squares.total() / static_cast<float>(features);
    const float scale = 1.0f / std::sqrt(mean_square + eps);
    for (std::int64_t i = 0; i < features; i += kBlock) {
      const std::int64_t n = std::min(kBlock, features - i);
      const float* weight = has_parameter ? parameter.floats(data, i, n, scratch) : nullptr;
      ops->normalize(head + i, 0.0f, scale, weight, nullptr, head + i, n);
    }
  }
};

/// How a head of features is read and turned.
struct Heads {
  BlockSource x;
  Preparation preparation;
  RopeStyle style = RopeStyle::split_half;
  std::int64_t heads = 0, features = 0, pairs = 0;

  /// Head `h` of token `t`, prepared, as floats in `out`, which may be where x lies.
  void load(const std::byte* x_data, const std::byte* parameter, std::int64_t t, std::int64_t h,
            float* out) const {
    BlockBuffer scratch;
    for (std::int64_t i = 0; i < features; i += kBlock) {
      const std::int64_t n = std::min(kBlock, features - i);
      const float* from = x.floats(x_data, (t * heads + h) * features + i, n, scratch);
      if (from != out + i) std::memcpy(out + i, from, static_cast<std::size_t>(n) * sizeof(float));
    }
    if (preparation.kind == Preparation::Kind::bias) {
      preparation.add_bias(parameter, h, features, out);
    } else if (preparation.kind == Preparation::Kind::norm) {
      preparation.normalize(parameter, features, out);
    }
  }

  void turn(const Turns& turns, float* head) const {
    const std::int64_t apart = style == RopeStyle::interleaved ? 1 : pairs;
    const std::int64_t step = style == RopeStyle::interleaved ? 2 : 1;
    for (std::int64_t i = 0; i < pairs; ++i) {
      float &a = head[i * step], &b = head[i * step + apart];
      const float turned_a = a * turns.cos[i] - b * turns.sin[i];
      b = a * turns.sin[i] + b * turns.cos[i];
      a = turned_a;
    }
  }
};

Heads make_heads(const OperandSpec& x, RopeStyle style, std::int64_t pairs) {
  Heads heads;
  heads.x = BlockSource(x);
  heads.style = style;
  heads.heads = x.spec.shape[1];
  heads.features = x.spec.shape[2];
  heads.pairs = pairs;
  return heads;
}

std::string refusal(const PrepareArgs& args, std::size_t x) {
  for (const OperandSpec& input : args.inputs) {
    if (input.layout.kind != LayoutKind::strided) {
      return fmt::format("{}: operands must be strided, one is {}", name(args.op),
                         to_string(input));
    }
  }
  const TensorSpec& spec = args.inputs[x].spec;
  if (!is_float_like(spec.dtype)) {
    return fmt::format("{}: x must be f32, f16 or bf16, not {}", name(args.op), to_string(spec));
  }
  if (spec.shape[2] > kMostFeatures) {
    return fmt::format("{}: heads of {} features; at most {}", name(args.op), spec.shape[2],
                       kMostFeatures);
  }
  return {};
}

// ---- Rope and rope_table: the turned x as an output

/// Runs find_turns(launch, token, turns) and turns all heads of each token by what it found.
template <class FindTurns>
Run turn_tokens(const Heads& heads, const PrepareArgs& args, FindTurns find_turns) {
  const BlockSink sink(args.outputs[0].spec.dtype);
  const std::int64_t tokens = args.inputs[0].spec.shape[0];
  return [=](const Launch& launch) {
    const std::byte* parameter = heads.preparation.has_parameter ? launch.inputs[1].data : nullptr;
    std::byte* out = launch.outputs[0].data;
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      Turns turns;
      alignas(64) float scratch[kMostFeatures];
      for (std::int64_t t = begin; t < end; ++t) {
        find_turns(launch, t, turns);
        for (std::int64_t h = 0; h < heads.heads; ++h) {
          const std::int64_t at = (t * heads.heads + h) * heads.features;
          float* head = sink.in_place() ? reinterpret_cast<float*>(out) + at : scratch;
          heads.load(launch.inputs[0].data, parameter, t, h, head);
          heads.turn(turns, head);
          sink.store(head, out, at, heads.features);
        }
      }
    };
    parallel(launch.team, rows_that_count(tokens, launch.extent),
             row_grain(heads.heads * heads.features), body);
  };
}

KernelTraits turn_traits(const PrepareArgs& args) {
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = true;
  allow_in_place(traits, 0, args.outputs[0], args.inputs.first(1));
  return traits;
}

Preparation preparation_of(const PrepareArgs& args, std::size_t parameter, Preparation::Kind kind,
                           bool has_parameter, float eps) {
  Preparation preparation;
  preparation.kind = kind;
  preparation.has_parameter = has_parameter;
  preparation.eps = eps;
  if (has_parameter) preparation.parameter = BlockSource(args.inputs[parameter]);
  return preparation;
}
Preparation add_bias(const PrepareArgs& args, std::size_t bias, bool has_bias) {
  using Kind = Preparation::Kind;
  return preparation_of(args, bias, has_bias ? Kind::bias : Kind::none, has_bias, 0);
}
Preparation normalize(const PrepareArgs& args, std::size_t weight, bool has_weight, float eps) {
  return preparation_of(args, weight, Preparation::Kind::norm, has_weight, eps);
}

Prepared prepare_angles(const PrepareArgs& args, const RopeAngles& by,
                        const Preparation& preparation) {
  Heads heads = make_heads(args.inputs[0], by.style, by.dims / 2);
  heads.preparation = preparation;
  std::size_t next = 1 + std::size_t{preparation.has_parameter};
  const std::size_t position = next++;
  Angles angles{frequencies(by), by.dims / 2, {}, by.has_factors};
  if (by.has_factors) angles.factors = BlockSource(args.inputs[next]);
  const auto find_turns = [=, index = BlockSource(args.inputs[position])](
                              const Launch& launch, std::int64_t t, Turns& turns) {
    const std::byte* factors = angles.has_factors ? launch.inputs[position + 1].data : nullptr;
    angles.at(index_at(index, launch.inputs[position], t), factors, turns);
  };
  return make_kernel(turn_traits(args), turn_tokens(heads, args, find_turns));
}

Prepared prepare_table(const PrepareArgs& args, const RopeTable& op) {
  const std::int64_t rows = args.inputs[1].spec.shape[0], pairs = args.inputs[1].spec.shape[1];
  const BlockSource cos(args.inputs[1]), sin(args.inputs[2]);
  const BlockSource index = op.by_position ? BlockSource(args.inputs[3]) : BlockSource();
  const auto find_turns = [=, by_position = op.by_position](const Launch& launch, std::int64_t t,
                                                            Turns& turns) {
    const std::int64_t row = by_position ? index_at(index, launch.inputs[3], t) : t;
    require(row >= 0 && row < rows, ErrorCode::invalid_argument,
            "rope_table: index {} of token {} is outside [0, {})", row, t, rows);
    BlockBuffer scratch;
    const auto bytes = static_cast<std::size_t>(pairs) * sizeof(float);
    std::memcpy(turns.cos, cos.load(launch.inputs[1].data, row * pairs, pairs, scratch), bytes);
    std::memcpy(turns.sin, sin.load(launch.inputs[2].data, row * pairs, pairs, scratch), bytes);
  };
  const Heads heads = make_heads(args.inputs[0], op.style, pairs);
  return make_kernel(turn_traits(args), turn_tokens(heads, args, find_turns));
}

// ---- The same into a state

struct WriteTurned {
  Heads heads;
  Angles angles;
  StateRows rows;
  BlockSource row, position;
  bool rope = true;
  std::size_t position_operand = 0;

  void token(const Launch& launch, std::int64_t t, Turns& turns) const {
    const std::int32_t number = index_at(row, launch.inputs[2], t);
    if (number < 0) return;
    std::byte* to = rows.at(launch.outputs[0], number);
    if (rope) {
      const std::byte* factors =
          angles.has_factors ? launch.inputs[position_operand + 1].data : nullptr;
      angles.at(index_at(position, launch.inputs[position_operand], t), factors, turns);
    }
    const std::byte* parameter = heads.preparation.has_parameter ? launch.inputs[3].data : nullptr;
    alignas(64) float head[kMostFeatures];
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      heads.load(launch.inputs[1].data, parameter, t, h, head);
      if (rope) heads.turn(turns, head);
      rows.store(head, to, h * heads.features, heads.features);
    }
  }
};

Prepared prepare_write(const PrepareArgs& args, bool rope, const RopeAngles& by,
                       const Preparation& preparation) {
  if (!is_contiguous(args.inputs[0])) {
    return refuse(fmt::format("{}: the state must be contiguous, not {}", name(args.op),
                              to_string(args.inputs[0])));
  }
  WriteTurned kernel{make_heads(args.inputs[1], by.style, rope ? by.dims / 2 : 0),
                     {},
                     StateRows(args.inputs[0]),
                     BlockSource(args.inputs[2]),
                     {},
                     rope};
  if (!kernel.rows.takes_floats()) {
    return refuse(fmt::format("{}: into {}", name(args.op), to_string(args.inputs[0])));
  }
  kernel.heads.preparation = preparation;
  if (rope) {
    std::size_t next = 3 + std::size_t{preparation.has_parameter};
    kernel.position_operand = next++;
    kernel.position = BlockSource(args.inputs[kernel.position_operand]);
    kernel.angles = {frequencies(by), by.dims / 2, {}, by.has_factors};
    if (by.has_factors) kernel.angles.factors = BlockSource(args.inputs[next]);
  }
  KernelTraits traits = state_traits(args);
  traits.honours_extent = true;
  auto run = [kernel, tokens = args.inputs[1].spec.shape[0]](const Launch& launch) {
    parallel(launch.team, rows_that_count(tokens, launch.extent),
             row_grain(kernel.heads.heads * kernel.heads.features),
             [&](std::int64_t begin, std::int64_t end) {
               Turns turns;
               for (std::int64_t t = begin; t < end; ++t) kernel.token(launch, t, turns);
             });
  };
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace

Prepared prepare_rope(const PrepareArgs& args) {
  const std::size_t x = writes_state(args.op) ? 1 : 0;
  if (std::string reason = refusal(args, x); !reason.empty()) return refuse(std::move(reason));
  if (const auto* op = std::get_if<RopeTable>(&args.op)) return prepare_table(args, *op);
  if (const auto* op = std::get_if<Rope>(&args.op)) {
    return prepare_angles(args, op->angles, add_bias(args, 1, op->has_bias));
  }
  if (const auto* op = std::get_if<NormRope>(&args.op)) {
    return prepare_angles(args, op->angles, normalize(args, 1, op->has_weight, op->eps));
  }
  if (const auto* op = std::get_if<NormRopeWriteRows>(&args.op)) {
    return prepare_write(args, true, op->angles, normalize(args, 3, op->has_weight, op->eps));
  }
  const auto& op = std::get<RopeWriteRows>(args.op);
  return prepare_write(args, op.rope, op.angles, add_bias(args, 3, op.has_bias));
}

}  // namespace heddle::cpu
