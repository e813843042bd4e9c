// rope, rope_table and rope_write_rows.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

constexpr std::int64_t kFewPairs = 64, kMostPairs = 512;  // that shaders have room for
constexpr std::int64_t kMostUnits = 0xffff'ffff;          // which shaders count in 32 bits
constexpr std::uint32_t kWantedLanes = 1024;              // before heads share a sine and cosine

/// What x, its bias and its target are, as all forms of the shader take them.
struct RopeParams {
  std::uint32_t tokens = 0, heads = 0, features = 0, head_groups = 1, table_rows = 0;
  std::int32_t x_strides[3] = {};
};
template <std::size_t kPairs>
struct AngleParams {
  RopeParams rope;
  std::array<std::array<std::uint32_t, 2>, kPairs> frequency{};  // low words first
};

// ---- Angles

/// Turns of each pair from a position to the next, and whole turns left out, in 2^-64 turns.
struct Frequencies {
  std::vector<std::uint64_t> fractions;
  std::string refusal;
};
Frequencies frequencies(std::string_view op, const RopeAngles& angles) {
  Frequencies result;
  for (std::int64_t i = 0; i < angles.dims / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(angles.dims);
    const double radians =
        static_cast<double>(angles.scale) * std::pow(static_cast<double>(angles.base), exponent);
    const long double turns =
        static_cast<long double>(radians) / (2 * std::numbers::pi_v<long double>);
    if (!std::isfinite(radians) || (angles.has_factors && !(turns >= 0 && turns < 1))) {
      result.refusal = fmt::format(
          "{}: pair {} turns by {} radians a position; it must be finite, and with factors less "
          "than "
          "a turn, forwards",
          op, i, radians);
      break;
    }
    const long double fraction = std::ldexp(turns - std::floor(turns), 64);
    // A fraction that rounds up to a whole turn is none.
    result.fractions.push_back(fraction < 0x1p64L ? static_cast<std::uint64_t>(fraction) : 0);
  }
  return result;
}

// ---- Operands

bool is_float_like(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// x [T, H, D], and everything else contiguous.
std::string refusal(const PrepareArgs& args, std::size_t x) {
  if (std::string packed = packed_refusal(args); !packed.empty()) return packed;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (i == x || is_contiguous(args.inputs[i])) continue;
    return fmt::format("{}: operand {} must be contiguous, not {}", name(args.op), i,
                       to_string(args.inputs[i]));
  }
  const OperandSpec& rows = args.inputs[x];
  if (!is_float_like(rows.spec.dtype)) {
    return fmt::format("{}: x must be f32, f16 or bf16, not {}", name(args.op),
                       to_string(rows.spec));
  }
  if (elements(rows.spec.shape) > kMostUnits) {
    return fmt::format("{}: x of {} elements; at most {}", name(args.op), elements(rows.spec.shape),
                       kMostUnits);
  }
  for (const std::int64_t stride : rows.layout.strides) {
    if (std::abs(stride) <= 0x7fff'ffff) continue;
    return fmt::format("{}: x's stride of {} elements; at most {}", name(args.op), stride,
                       0x7fff'ffff);
  }
  return {};
}

RopeParams params_of(const OperandSpec& x, std::int64_t pairs) {
  RopeParams params;
  params.tokens = static_cast<std::uint32_t>(x.spec.shape[0]);
  params.heads = static_cast<std::uint32_t>(x.spec.shape[1]);
  params.features = static_cast<std::uint32_t>(x.spec.shape[2]);
  for (std::size_t i = 0; i < 3; ++i) {
    params.x_strides[i] = static_cast<std::int32_t>(x.layout.strides[i]);
  }
  const std::uint64_t units = x.spec.shape[2] - pairs;
  const std::uint64_t lanes = units * params.tokens * params.heads;
  const auto shared =
      std::clamp<std::uint64_t>(lanes / kWantedLanes, 1, std::max(1u, params.heads));
  params.head_groups = static_cast<std::uint32_t>((params.heads + shared - 1) / shared);
  return params;
}

Address x_address(const PrepareArgs& args, std::size_t x) {
  const OperandSpec& operand = args.inputs[x];
  const auto first = static_cast<std::uint64_t>(first_element(operand));
  return input(x, first * item_size(operand.spec.dtype));
}

std::uint32_t code(DType dtype) {
  return static_cast<std::uint32_t>(dtype);
}

// ---- Kernels

/// Operands of the shader's forms that compute angles.
struct Turn {
  std::size_t x = 0;
  Address bias, position, factors, row;
  RopeStyle style = RopeStyle::split_half;
  std::vector<std::uint64_t> frequencies;
  DType target = DType::f32;
};

template <std::size_t kPairs>
void dispatch(KernelMaker& maker, KernelMaker::Launch launch, const RopeParams& rope,
              std::span<const std::uint64_t> frequencies) {
  AngleParams<kPairs> params{rope};
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    params.frequency[i] = {static_cast<std::uint32_t>(frequencies[i]),
                           static_cast<std::uint32_t>(frequencies[i] >> 32)};
  }
  maker.dispatch(std::move(launch), params);
}

void turn_tokens(KernelMaker& maker, const PrepareArgs& args, const Turn& turn) {
  const OperandSpec& x = args.inputs[turn.x];
  if (elements(x.spec.shape) == 0) return;
  const auto pairs = static_cast<std::int64_t>(turn.frequencies.size());
  const RopeParams params = params_of(x, pairs);
  const bool blocks = turn.target == DType::q8_0, few = pairs <= kFewPairs;
  KernelMaker::Launch launch;
  launch.shader = blocks ? (few ? "rope_q8_0" : "rope_q8_0_wide") : (few ? "rope" : "rope_wide");
  launch.group_size = blocks ? block_group(args.limits) : walk_group(args.limits);
  launch.constants = {code(x.spec.dtype), code(turn.target), static_cast<std::uint32_t>(pairs),
                      turn.style == RopeStyle::interleaved};
  const std::uint32_t units =
      blocks ? params.heads * params.features / 32
             : (params.features - static_cast<std::uint32_t>(pairs)) * params.head_groups;
  launch.grid = grid_of_rows(params.tokens, units, launch.group_size);
  launch.operands = {x_address(args, turn.x),
                     turn.bias,
                     turn.position,
                     turn.factors,
                     turn.row,
                     output(0),
                     extent()};
  if (few) {
    dispatch<kFewPairs>(maker, std::move(launch), params, turn.frequencies);
  } else {
    dispatch<kMostPairs>(maker, std::move(launch), params, turn.frequencies);
  }
}

std::string pairs_refusal(const PrepareArgs& args, std::int64_t pairs) {
  if (pairs <= kMostPairs) return {};
  return fmt::format("{}: {} pairs turn; at most {}", name(args.op), pairs, kMostPairs);
}

/// Aliases of the output over x, where it lies likewise.
void allow_in_place(KernelTraits& traits, const PrepareArgs& args) {
  if (is_contiguous(args.inputs[0])) traits.aliases.push_back({0, 0, false});
}

Prepared prepare_angles(const PrepareArgs& args, const Rope& op) {
  if (std::string why = pairs_refusal(args, op.angles.dims / 2); !why.empty()) return refuse(why);
  Frequencies angles = frequencies("rope", op.angles);
  if (!angles.refusal.empty()) return refuse(angles.refusal);
  Turn turn;
  std::size_t next = 1;
  if (op.has_bias) turn.bias = input(next++);
  turn.position = input(next++);
  if (op.angles.has_factors) turn.factors = input(next);
  turn.style = op.angles.style;
  turn.frequencies = std::move(angles.fractions);
  turn.target = args.outputs[0].spec.dtype;
  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  allow_in_place(maker.traits, args);
  turn_tokens(maker, args, turn);
  return maker.finish();
}

Prepared prepare_table(const PrepareArgs& args, const RopeTable& op) {
  const OperandSpec& x = args.inputs[0];
  const TensorSpec& table = args.inputs[1].spec;
  if (table.shape[0] > 0x7fff'ffff) {
    return refuse(
        fmt::format("rope_table: tables of {} rows; at most {}", table.shape[0], 0x7fff'ffff));
  }
  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  allow_in_place(maker.traits, args);
  if (elements(x.spec.shape) == 0) return maker.finish();
  const auto pairs = static_cast<std::uint32_t>(table.shape[1]);
  RopeParams params = params_of(x, pairs);
  params.table_rows = static_cast<std::uint32_t>(table.shape[0]);
  const std::uint32_t group = walk_group(args.limits);
  maker.dispatch(
      {"rope_table",
       group,
       {code(x.spec.dtype), code(x.spec.dtype), pairs, op.style == RopeStyle::interleaved},
       grid_of_rows(params.tokens, (params.features - pairs) * params.head_groups, group),
       {x_address(args, 0), op.by_position ? input(3) : nothing(), input(1), input(2), output(0),
        extent()}},
      params);
  return maker.finish();
}

std::string state_refusal(const PrepareArgs& args) {
  const DType dtype = args.inputs[0].spec.dtype;
  if (dtype != DType::q8_0 && !is_float_like(dtype)) {
    return fmt::format("rope_write_rows: into {}", to_string(args.inputs[0]));
  }
  if (std::string reason = block_refusal(args, dtype); !reason.empty()) return reason;
  return narrow_refusal(args, dtype);
}

Prepared prepare_write(const PrepareArgs& args, const RopeWriteRows& op) {
  if (std::string reason = state_refusal(args); !reason.empty()) return refuse(reason);
  Turn turn;
  turn.x = 1;
  turn.row = input(2);
  turn.target = args.inputs[0].spec.dtype;
  std::size_t next = 3;
  if (op.has_bias) turn.bias = input(next++);
  if (op.rope) {
    if (std::string why = pairs_refusal(args, op.angles.dims / 2); !why.empty()) return refuse(why);
    Frequencies angles = frequencies("rope_write_rows", op.angles);
    if (!angles.refusal.empty()) return refuse(angles.refusal);
    turn.position = input(next++);
    if (op.angles.has_factors) turn.factors = input(next);
    turn.style = op.angles.style;
    turn.frequencies = std::move(angles.fractions);
  }
  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  maker.traits.aliases.push_back({0, 0, true});
  turn_tokens(maker, args, turn);
  return maker.finish();
}

}  // namespace

Prepared prepare_rope(const PrepareArgs& args) {
  const auto* write = std::get_if<RopeWriteRows>(&args.op);
  if (std::string reason = refusal(args, write ? 1 : 0); !reason.empty()) return refuse(reason);
  if (write) return prepare_write(args, *write);
  if (std::string reason = narrow_refusal(args, args.outputs[0].spec.dtype); !reason.empty()) {
    return refuse(reason);
  }
  if (const auto* op = std::get_if<Rope>(&args.op)) return prepare_angles(args, *op);
  return prepare_table(args, std::get<RopeTable>(args.op));
}

}  // namespace heddle::vulkan
