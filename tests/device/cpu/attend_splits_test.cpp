// What a long context's attention must not depend on: how it is cut into blocks, splits, heads and
// tasks.
#include "device/cpu/attend_run.h"
#include "device/cpu/attend_share.h"
#include "device/cpu/attention_core.h"
#include "device/cpu/isa.h"

namespace heddle::cpu {
namespace {

constexpr DType kStateTypes[] = {DType::f32, DType::f16, DType::q8_0};

float scale_for(const Sizes& sizes) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(sizes.features)));
}

/// One sequence of `length` positions.
Sizes one_sequence(std::int64_t heads, std::int64_t kv_heads, std::int64_t features, DType dtype,
                   std::int64_t length) {
  return {.heads = heads,
          .kv_heads = kv_heads,
          .features = features,
          .block_size = 32,
          .sequences = 1,
          .table_width = (length + 31) / 32,
          .dtype = dtype};
}

/// Runs tokens with 1, 2 and 8 threads at every level: near the reference, and the same bits.
void expect_right(const Attend& op, const Context& context, const Tokens& tokens,
                  const std::string& what) {
  const std::vector<double> expected = reference(op, context, tokens);
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    const HostTensor out = attend(op, context, tokens);
    expect_near(out, expected, what.c_str());
    for (const int threads : {2, 8}) {
      ASSERT_EQ(attend(op, context, tokens, {threads}).bytes, out.bytes)
          << what << " threads " << threads << " level " << static_cast<int>(level);
    }
  }
}

/// Tasks of one sequence's next token after `positions`.
std::int64_t tasks_of_one(const HeadShape& shape, std::int64_t positions, std::int64_t threads) {
  const std::int64_t splits = (positions + kSplit - 1) / kSplit;
  return share_of(shape, positions, splits, 1, threads).tasks(shape);
}

TEST(AttendShare, OneSequenceHasWorkForMoreThreadsThanItHasHeads) {
  const HeadShape qwen{
      .kv_heads = 2, .group = 7, .features = 64, .most_heads = 7, .most_kv_heads = 2};
  const HeadShape one{
      .kv_heads = 1, .group = 8, .features = 128, .most_heads = 8, .most_kv_heads = 1};
  for (const HeadShape& shape : {qwen, one}) {
    EXPECT_EQ(tasks_of_one(shape, 4096, 1), 1) << "one thread reads everything once";
    for (const std::int64_t threads : {2, 8, 16}) {
      for (const std::int64_t positions : {1024, 2048, 4096, 32768}) {
        EXPECT_GE(tasks_of_one(shape, positions, threads), threads)
            << threads << " threads, " << positions << " positions";
      }
    }
  }
  EXPECT_LE(tasks_of_one(qwen, 64, 8), 2) << "not worth waking threads";
}

TEST(AttendShare, ManyTokensKeepTheirRowsTogether) {
  const HeadShape qwen{
      .kv_heads = 2, .group = 7, .features = 64, .most_heads = 7, .most_kv_heads = 2};
  const Share share = share_of(qwen, 4096, 1, 64, 8);
  EXPECT_EQ(share.heads, 7);
  EXPECT_EQ(share.kv_heads, 2);
  EXPECT_EQ(share.splits, 0);
}

TEST(AttendSplits, EveryShapeAndTypeOfHeads) {
  struct Case {
    std::int64_t heads, kv_heads, features;
  };
  for (const Case& c : {Case{1, 1, 64},
                        {2, 2, 96},
                        {14, 2, 64},
                        {7, 1, 80},
                        {16, 2, 128},
                        {12, 6, 128},
                        {8, 1, 256},
                        {6, 3, 288},
                        {17, 1, 64}}) {
    for (const DType dtype : kStateTypes) {
      if (dtype == DType::q8_0 && c.features % 32 != 0) continue;
      const Sizes sizes = one_sequence(c.heads, c.kv_heads, c.features, dtype, 600);
      const Context context = make_context(sizes, {600});
      const Attend op{.scale = scale_for(sizes), .block_size = sizes.block_size};
      const std::string what = std::string(to_string(dtype)) + " heads of " +
                               std::to_string(c.features) + " x " + std::to_string(c.heads);
      expect_right(op, context, prompt(sizes, 587, 1), what + " alone");
      expect_right(op, context, prompt(sizes, 509, 5), what + " across a border");
    }
  }
}

TEST(AttendSplits, EveryBorderOfBlocksAndSplits) {
  const std::int64_t block = position_block(64, 64);
  const Sizes sizes = one_sequence(7, 1, 64, DType::f16, 2 * kSplit + 2 * block);
  const Context context = make_context(sizes, {static_cast<std::int32_t>(2 * kSplit + block + 2)});
  const Attend op{.scale = scale_for(sizes), .block_size = sizes.block_size};
  for (const std::int64_t border : {block, 2 * block, kSplit, kSplit + block, 2 * kSplit}) {
    for (const std::int64_t beyond : {-2, -1, 0, 1}) {
      expect_right(op, context, prompt(sizes, static_cast<std::int32_t>(border + beyond), 1),
                   "seeing " + std::to_string(border + beyond + 1));
    }
  }
}

TEST(AttendSplits, WindowsOfAnyLengthAndPlace) {
  const Sizes sizes = one_sequence(4, 2, 32, DType::q8_0, 1600);
  const Context context = make_context(sizes, {1600});
  for (const std::int64_t window : {1, 63, 64, 65, 511, 512, 513, 1024, 1025, 1599}) {
    const Attend op{.scale = scale_for(sizes), .block_size = sizes.block_size, .window = window};
    const std::string what = "window " + std::to_string(window);
    for (const std::int32_t at : {0, 511, 512, 575, 1023, 1024, 1598}) {
      expect_right(op, context, prompt(sizes, at, 1), what + " at " + std::to_string(at));
    }
    expect_right(op, context, prompt(sizes, 1020, 8), what + " of a few");
  }
}

TEST(AttendSplits, NothingOutsideAWindowIsRead) {
  const Sizes sizes = one_sequence(4, 2, 32, DType::f16, 1600);
  Context context = make_context(sizes, {1600});
  const Attend op{.scale = 0.2f, .block_size = sizes.block_size, .window = 600};
  const Tokens tokens = prompt(sizes, 1400, 2);
  const std::vector<double> expected = reference(op, context, tokens);
  // The blocks that no token sees are no blocks of the state at all.
  const std::int64_t first_seen = (1400 + 1 - 600) / 32, last_seen = 1401 / 32;
  for (std::int64_t i = 0; i < sizes.table_width; ++i) {
    if (i < first_seen || i > last_seen) {
      context.table.as<std::int32_t>()[i] = std::numeric_limits<std::int32_t>::max();
    }
  }
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    for (const int threads : {1, 2, 8}) {
      expect_near(attend(op, context, tokens, {threads}), expected, "window");
    }
  }
}

TEST(AttendSplits, BatchesOfDifferentSequencesKeepEachRowsBits) {
  for (const DType dtype : {DType::f16, DType::q8_0}) {
    const Sizes sizes{.heads = 8,
                      .kv_heads = 4,
                      .features = 32,
                      .block_size = 32,
                      .sequences = 4,
                      .table_width = 20,
                      .dtype = dtype};
    const Context context = make_context(sizes, {640, 599, 0, 33});
    // More tokens than share their splits, idle ones, and a sequence without positions.
    const Tokens tokens = make_tokens(sizes, {0, 1, 2, 3, -1, 0, 0, 0, 1, 3, 0},
                                      {639, 598, 5, 32, 0, 600, 601, 602, 511, 0, 512});
    for (const Isa level : levels()) {
      const IsaScope scope(level);
      for (const std::int64_t window : {0, 100}) {
        const Attend op{
            .scale = scale_for(sizes), .block_size = sizes.block_size, .window = window};
        expect_near(attend(op, context, tokens, {2}), reference(op, context, tokens), "batch");
        expect_same_bits_in_parts(op, context, tokens);
      }
    }
  }
}

TEST(AttendSplits, IdleTokensAndTokensThatSeeNothingGiveZeros) {
  const Sizes sizes = one_sequence(14, 2, 64, DType::f16, 1200);
  const Context context = make_context(sizes, {0});
  const Attend op{.scale = 0.1f, .block_size = sizes.block_size};
  for (const int threads : {1, 8}) {
    const HostTensor out =
        attend(op, context, make_tokens(sizes, {0, -1, 0}, {1100, 0, 7}), {threads});
    for (std::size_t i = 0; i < out.bytes.size() / 4; ++i) ASSERT_EQ(element(out, i), 0.0);
  }
}

}  // namespace
}  // namespace heddle::cpu
