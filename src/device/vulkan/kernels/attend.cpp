// Attend: a batch of tokens over KV states that are addressed through block tables.
#include <algorithm>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

#include "device/vulkan/kernel.h"
#include "device/vulkan/kernels/attention_tile.h"

namespace heddle::vulkan {

namespace {

// Workgroups may share the splits of batches of up to this many tokens; more tokens keep a device
// busy anyway, and their splits' sums would want much memory.
constexpr std::int64_t kFewTokens = 8;
constexpr std::int64_t kMostSplitGroups = 16;
// Batches of up to this many tokens are taken for tokens of different sequences, which have no keys
// to share.
constexpr std::int64_t kMostStrangers = 32;

struct AttendParams {
  std::uint32_t tokens, heads, kv_heads, sequences, table_width, rows_per_run, tiles_per_run,
      split_groups, splits, window;
  float scale;
};

std::uint32_t narrow(std::int64_t n) {
  return static_cast<std::uint32_t>(n);
}

struct Sizes {
  std::int64_t tokens, heads, features, kv_heads, sequences, table_width, positions;
  std::int64_t group() const { return kv_heads == 0 ? 0 : heads / kv_heads; }
  std::int64_t splits() const { return (positions + kSplitPositions - 1) / kSplitPositions; }
};

std::string problem_of(const PrepareArgs& args, const Attend& op, Sizes& sizes) {
  for (const OperandSpec& input : args.inputs) {
    if (!is_contiguous(input)) {
      return fmt::format("attend: operands must be contiguous, one is {}", to_string(input));
    }
  }
  const Shape &q = args.inputs[0].spec.shape, &k = args.inputs[1].spec.shape;
  const Shape& table = args.inputs[3].spec.shape;
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  sizes = {q[0], q[1], q[2], k[1], table[0], table[1], 0};
  if (op.block_size > kMost || (table[1] > 0 && op.block_size > kMost / table[1])) {
    return fmt::format("attend: {} blocks of {} rows to a sequence, at most {} in all", table[1],
                       op.block_size, kMost);
  }
  sizes.positions = table[1] * op.block_size;
  for (const std::int64_t count : {q[0] * std::max<std::int64_t>(1, q[1]), table[0], q[2]}) {
    if (count > kMost) {
      return fmt::format("attend: {} of q {} and {}, at most {}", count, to_string(args.inputs[0]),
                         to_string(args.inputs[3]), kMost);
    }
  }
  if (k[0] == 0) return fmt::format("attend: states without rows, {}", to_string(args.inputs[1]));
  return {};
}

/// Which workgroups there are, and what part of the rows each has: see attend.comp.
struct Sharing {
  AttentionTile tile;
  std::int64_t rows_per_run = 0, tiles_per_run = 0, runs = 1, split_groups = 0;
};

Sharing share_out(const Sizes& sizes, const Limits& limits) {
  const bool together = sizes.tokens > kMostStrangers;
  Sharing sharing;
  sharing.rows_per_run = together ? sizes.tokens * sizes.group() : sizes.group();
  sharing.runs = together ? 1 : sizes.tokens;
  sharing.tile = attention_tile(sizes.features, sizes.features, sharing.rows_per_run, limits);
  const std::int64_t rows = sharing.tile.rows();
  sharing.tiles_per_run = (sharing.rows_per_run + rows - 1) / rows;
  if (sizes.tokens <= kFewTokens && sizes.splits() > 1) {
    sharing.split_groups = std::min(sizes.splits(), kMostSplitGroups);
  }
  return sharing;
}

/// An extent leaves whole runs, or of one run the leading tokens.
Grid grid_of(const Sizes& sizes, const Sharing& sharing) {
  const std::int64_t each = sizes.kv_heads * std::max<std::int64_t>(1, sharing.split_groups);
  Grid grid;
  std::int64_t tokens_a_step = 1, groups_a_step = sharing.tiles_per_run * each;
  if (sharing.runs == 1 && sizes.tokens > 1) {
    const std::int64_t rows = sharing.tile.rows();
    tokens_a_step = rows / std::gcd(rows, sizes.group());
    groups_a_step = tokens_a_step * sizes.group() / rows * each;
  }
  grid.rows_per_step = narrow(tokens_a_step);
  grid.groups_per_step = narrow(groups_a_step);
  const std::int64_t steps = (sizes.tokens + tokens_a_step - 1) / tokens_a_step;
  grid.groups = static_cast<std::uint64_t>(steps * groups_a_step);
  return grid;
}

AttendParams params_of(const Attend& op, const Sizes& sizes, const Sharing& sharing) {
  return {.tokens = narrow(sizes.tokens),
          .heads = narrow(sizes.heads),
          .kv_heads = narrow(sizes.kv_heads),
          .sequences = narrow(sizes.sequences),
          .table_width = narrow(sizes.table_width),
          .rows_per_run = narrow(sharing.rows_per_run),
          .tiles_per_run = narrow(sharing.tiles_per_run),
          .split_groups = narrow(sharing.split_groups),
          .splits = narrow(sizes.splits()),
          .window = narrow(std::min(op.window, sizes.positions)),
          .scale = static_cast<float>(static_cast<double>(op.scale) * std::numbers::log2e)};
}

}  // namespace

Prepared prepare_attend(const PrepareArgs& args) {
  const auto& op = std::get<Attend>(args.op);
  Sizes sizes{};
  if (std::string problem = problem_of(args, op, sizes); !problem.empty()) return refuse(problem);
  const Sharing sharing = share_out(sizes, args.limits);
  const AttentionTile& tile = sharing.tile;
  if (!tile.problem.empty()) return refuse("attend: " + tile.problem);

  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  if (sizes.tokens * sizes.heads * sizes.features == 0) return maker.finish();
  const Grid grid = grid_of(sizes, sharing);
  if (grid.groups > ~std::uint32_t{0}) {
    return refuse(fmt::format("attend: {} workgroups, at most {}", grid.groups, ~std::uint32_t{0}));
  }
  const AttendParams params = params_of(op, sizes, sharing);
  const bool joins = sharing.split_groups > 0;
  if (joins) {
    const std::int64_t floats = sizes.tokens * sizes.heads * sizes.splits() * (sizes.features + 2);
    maker.traits.workspace_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  }
  std::vector<Address> operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) operands.push_back(input(i));
  for (const Address& more : {output(0), joins ? workspace() : nothing(), extent()}) {
    operands.push_back(more);
  }
  const std::uint32_t features = narrow(sizes.features);
  const std::uint32_t block_size = narrow(op.block_size);
  maker.dispatch(
      {.shader = "attend",
       .group_size = tile.group_size,
       .constants = {features, block_size, static_cast<std::uint32_t>(args.inputs[1].spec.dtype),
                     static_cast<std::uint32_t>(args.inputs[2].spec.dtype), tile.row_vectors,
                     tile.lane_positions},
       .grid = grid,
       .operands = operands},
      params);
  if (joins) {
    maker.dispatch({.shader = "attend_join",
                    .group_size = tile.group_size,
                    .constants = {features, block_size},
                    .grid = {.groups = params.tokens * std::uint64_t{params.heads},
                             .rows_per_step = 1,
                             .groups_per_step = params.heads},
                    .operands = operands,
                    .after_previous = true},
                   params);
  }
  return maker.finish();
}

}  // namespace heddle::vulkan
