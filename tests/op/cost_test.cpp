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

TEST(Cost, FactorsCountTheirMatrices) {
  const Cost one = cost_of(Factor{FactorKind::inverse}, "f32[30, 30]");
  EXPECT_EQ(one.operations, 2.0 * 30 * 30 * 30);
  EXPECT_EQ(one.bytes, 2 * 4 * 900);
  EXPECT_EQ(cost_of(Factor{FactorKind::inverse}, "f32[4, 5, 30, 30]").operations,
            20 * one.operations);
  EXPECT_LT(cost_of(Factor{FactorKind::svd, false, false}, "f32[30, 20]").operations,
            cost_of(Factor{FactorKind::svd}, "f32[30, 20]").operations);
  EXPECT_EQ(cost_of(Solve{true}, "f32[7, 8, 8], f32[7, 8, 3]").operations, 8.0 * 7 * 8 * 3);
}

TEST(Cost, TransformsTakeTheLogarithm) {
  EXPECT_EQ(cost_of(Fft{FftKind::forward, 1, 1024}, "complex64[3, 1024]").operations,
            5.0 * 3 * 1024 * 10);
  EXPECT_EQ(cost_of(Fft{FftKind::real_forward, 1, 1024}, "f32[3, 1024]").operations,
            2.5 * 3 * 1024 * 10);
  EXPECT_EQ(cost_of(Hadamard{}, "f32[3, 1024]").operations, 3.0 * 1024 * 11);
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

TEST(Cost, MatricesThatIndicesChooseCountOnce) {
  EXPECT_EQ(cost_of(GatherMatmul{}, "f32[100, 2, 3], f32[2, 3, 5], u32[4], u32[4]").bytes,
            4 * (4 * 2 * 3 + 2 * 3 * 5 + 2 * 4 + 4 * 2 * 5));
  const Cost groups =
      cost_of(GroupMatmul{{}, true, true},
              "f32[9, 2, 64], u32[7, 5, 8], f16[7, 5, 1], f16[7, 5, 1], u32[3], u32[3]");
  EXPECT_EQ(groups.bytes, 3 * (2 * 64 * 4 + 5 * 8 * 4 + 2 * 5 * 2) + 2 * 3 * 4 + 3 * 2 * 5 * 4);
  EXPECT_EQ(groups.operations, 2 * 3 * 2 * 5 * 64);
}

TEST(Cost, MovedBytesCountBothWays) {
  EXPECT_EQ(cost_of(Reinterpret{DType::u8}, "f32[10]").bytes, 80);
  EXPECT_EQ(cost_of(SliceUpdate{{0}, {3}, {1}}, "f32[1000], f32[3]").bytes, 24);
}

TEST(Cost, RandomBitsCountTheirWords) {
  const Cost c = cost_of(RandomBits{{1000}, 2}, "u32[3, 2]");
  EXPECT_EQ(c.bytes, 3 * 8 + 3 * 1000 * 2);
  EXPECT_EQ(c.operations, 3 * 500 * 36.0);
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
