#include <gtest/gtest.h>

#include <cmath>

#include "op/examples.h"
#include "support/specs.h"

namespace heddle {
namespace {

Cost cost_of(const Op& op, const char* inputs) {
  const std::vector<TensorSpec> in = specs(inputs);
  return cost(op, in, infer(op, in));
}

TEST(Cost, WeightsCountAsStored) {
  const Cost c = cost_of(Linear{}, "f32[2, 256], q4_K[8, 256], q8_0[4, 256]");
  EXPECT_EQ(c.bytes, 2 * 256 * 4 + 8 * 144 + 4 * 8 * 34 + 2 * (8 + 4) * 4);
  EXPECT_EQ(c.operations, 2.0 * 2 * 256 * (8 + 4));
}

TEST(Cost, Products) {
  const Cost c = cost_of(Matmul{}, "f32[5, 2, 3], f32[3, 4]");
  EXPECT_EQ(c.bytes, 4 * (30 + 12 + 40));
  EXPECT_EQ(c.operations, 2.0 * 5 * 2 * 3 * 4);
}

TEST(Cost, RowsChosenByDataCountAlone) {
  EXPECT_EQ(cost_of(GatherRows{DType::f32}, "q8_0[1000, 32], i32[3]").bytes,
            3 * 34 + 3 * 4 + 3 * 32 * 4);
  EXPECT_EQ(cost_of(WriteRows{}, "f16[1000, 8], f32[3, 8], i32[3]").bytes,
            3 * 8 * 2 + 3 * 8 * 4 + 3 * 4);
}

TEST(Cost, SlicesChosenByDataCountAlone) {
  EXPECT_EQ(cost_of(Gather{{0}, {1, 8}}, "f16[1000, 8], i32[3]").bytes, 3 * 4 + 2 * 3 * 8 * 2);
  const char* updates = "f32[1000, 8], i32[3], f32[3, 1, 8]";
  const Cost replaced = cost_of(Scatter{ScatterKind::none, {0}}, updates);
  EXPECT_EQ(replaced.bytes, 3 * 4 + 2 * 3 * 8 * 4);
  EXPECT_EQ(replaced.operations, 0);
  const Cost added = cost_of(Scatter{ScatterKind::sum, {0}}, updates);
  EXPECT_EQ(added.bytes, 3 * 4 + 3 * 3 * 8 * 4);
  EXPECT_EQ(added.operations, 3 * 8);
}

TEST(Cost, OrderTakesLogarithms) {
  EXPECT_EQ(cost_of(Sort{}, "f32[2, 1024]").operations, 2 * 1024 * 10);
  EXPECT_EQ(cost_of(SearchSorted{}, "f32[1023], f32[7]").operations, 7 * 10);
}

TEST(Cost, MovedBytesCountBothWays) {
  EXPECT_EQ(cost_of(Reinterpret{DType::u8}, "f32[10]").bytes, 80);
  EXPECT_EQ(cost_of(SliceUpdate{{0}, {3}, {1}}, "f32[1000], f32[3]").bytes, 24);
}

TEST(Cost, ViewsAndLeavesAreFree) {
  for (const Example& example : examples()) {
    const Cost c = cost_of(example.op, example.inputs);
    if (!is_view(example.op) && !is_leaf(example.op)) continue;
    EXPECT_EQ(c.bytes, 0) << to_string(example.op);
    EXPECT_EQ(c.operations, 0) << to_string(example.op);
  }
}

TEST(Cost, IsFiniteAndNotNegativeForEveryOp) {
  for (const Example& example : examples()) {
    const Cost c = cost_of(example.op, example.inputs);
    EXPECT_TRUE(std::isfinite(c.bytes) && c.bytes >= 0) << to_string(example.op);
    EXPECT_TRUE(std::isfinite(c.operations) && c.operations >= 0) << to_string(example.op);
  }
}

TEST(Cost, CausalAttentionSeesHalf) {
  const char* operands = "f32[1, 2, 64, 8], f32[1, 2, 64, 8], f32[1, 2, 64, 8]";
  const double all = cost_of(Attention{}, operands).operations;
  const double causal = cost_of(Attention{.mask = Attention::Mask::causal}, operands).operations;
  EXPECT_DOUBLE_EQ(causal / all, 65.0 / 128);
}

}  // namespace
}  // namespace heddle
