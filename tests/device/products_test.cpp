// Products and attention against the reference that every device is held to. (Their own tests, of
// edges and of rounding, are in cpu/.)
#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

TEST(Products, Matmul) {
  at_every_level([] {
    Random random(1);
    const std::pair<Shape, Shape> shapes[] = {{{5, 33}, {33, 7}},       {{1, 1}, {1, 1}},
                                              {{2, 3, 4, 19}, {19, 5}}, {{4, 17}, {2, 1, 17, 3}},
                                              {{0, 4}, {4, 3}},         {{3, 0}, {0, 2}}};
    for (const DType dtype : kFloats) {
      const bool half = dtype == DType::f16 || dtype == DType::bf16;
      for (const auto& [a, b] : shapes) {
        expect_on_cpu(Matmul{}, {random_tensor(dtype, a, random), random_tensor(dtype, b, random)},
                      {half ? 0.52 : 4, 4e-5});
      }
    }
  });
}

TEST(Products, MatmulOfOperandsThatLieAcross) {
  const auto across = [](DType dtype, std::int64_t rows, std::int64_t columns, Random& random) {
    OperandSpec operand = OperandSpec::contiguous({dtype, {rows, columns}});
    operand.layout.strides = {1, rows};
    return random_tensor(operand, random);
  };
  at_every_level([&] {
    Random random(2);
    for (const DType dtype : kFloats) {
      const bool half = dtype == DType::f16 || dtype == DType::bf16;
      const Tolerance tolerance{half ? 0.52 : 4, 4e-4};
      for (const auto& [m, k, n] : std::vector<std::array<std::int64_t, 3>>{
               {1, 40, 70}, {13, 3, 17}, {70, 33, 5}, {150, 300, 90}}) {
        const Tensor a = random_tensor(dtype, {m, k}, random),
                     b = random_tensor(dtype, {k, n}, random);
        const Tensor a_across = across(dtype, m, k, random), b_across = across(dtype, k, n, random);
        expect_on_cpu(Matmul{}, {a_across, b}, tolerance);
        expect_on_cpu(Matmul{}, {a, b_across}, tolerance);
        expect_on_cpu(Matmul{}, {a_across, b_across}, tolerance);
      }
    }
  });
}

TEST(Products, MatmulOfSingleRowsByColumns) {
  at_every_level([] {
    Random random(3);
    for (const DType dtype : kFloats) {
      const bool half = dtype == DType::f16 || dtype == DType::bf16;
      const Tolerance tolerance{half ? 0.52 : 4, 4e-4};
      for (const std::int64_t k : {0, 1, 15, 16, 17, 128, 511, 512, 513, 1300}) {
        const auto check = [&](const Shape& a, const Shape& b) {
          expect_on_cpu(Matmul{},
                        {random_tensor(dtype, a, random), random_tensor(dtype, b, random)},
                        tolerance);
        };
        check({70, 1, k}, {70, k, 1});
        check({2, 3, 1, k}, {k, 1});
        check({1, k}, {2, 3, k, 1});
        OperandSpec apart = OperandSpec::contiguous({dtype, {5, 1, k}});
        apart.layout.strides = {2 * k + 3, 1, 1};
        expect_on_cpu(Matmul{},
                      {random_tensor(apart, random), random_tensor(dtype, {k, 1}, random)},
                      tolerance);
      }
    }
  });
}

TEST(Products, MatmulOfLongRowsByColumns) {
  Random random(4);
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t k : {16384, 16385, 50000}) {
      const std::vector<Tensor> operands{random_tensor(dtype, {3, 1, k}, random),
                                         random_tensor(dtype, {k, 1}, random)};
      expect_on_cpu(Matmul{}, operands, {4, 4e-3});
    }
  }
}

TEST(Products, LinearOfFloatWeights) {
  at_every_level([] {
    Random random(2);
    for (const std::int64_t tokens : {0, 1, 5}) {
      std::vector<Tensor> inputs{random_tensor(DType::f32, {tokens, 65}, random)};
      for (const DType weight : kFloatLike) {
        inputs.push_back(random_tensor(weight, {35, 65}, random));
      }
      expect_on_cpu(Linear{}, inputs, {4, 2e-4});
    }
  });
}

/// Skips the running test, saying why, where the device has no kernel for the op.
#define SKIP_IF_REFUSED(op, inputs)                                             \
  if (const Ran ran = run_op(cpu_device(), op, inputs); !ran.refused.empty()) { \
    GTEST_SKIP() << ran.refused;                                                \
  }

class BlockProducts : public testing::TestWithParam<DType> {};

TEST_P(BlockProducts, LinearRoundsActivations) {
  Random random(3);
  const std::vector<Tensor> inputs{random_tensor(DType::f32, {3, 512}, random),
                                   random_tensor(GetParam(), {9, 512}, random)};
  SKIP_IF_REFUSED(Linear{}, inputs);
  // 512 products of up to 2 x 2, each activation off by at most 2 / 254.
  at_every_level([&] { expect_on_cpu(Linear{}, inputs, {4, 0.6}); });
}

INSTANTIATE_TEST_SUITE_P(Types, BlockProducts, testing::ValuesIn(kBlocks),
                         [](const auto& param) { return std::string(to_string(param.param)); });

TEST(Products, Attention) {
  using enum Attention::Mask;
  at_every_level([] {
    Random random(4);
    for (const bool sequence_first : {false, true}) {
      const auto shape = [&](std::int64_t heads, std::int64_t length, std::int64_t width) {
        return sequence_first ? Shape{2, length, heads, width} : Shape{2, heads, length, width};
      };
      for (const Attention::Mask mask : {none, causal, boolean, additive}) {
        for (const std::int64_t window : {0, 3}) {
          if (window > 0 && mask != causal) continue;
          std::vector<Tensor> inputs{random_tensor(DType::f32, shape(4, 5, 16), random),
                                     random_tensor(DType::f32, shape(2, 9, 16), random),
                                     random_tensor(DType::f32, shape(2, 9, 8), random)};
          if (mask == boolean) inputs.push_back(random_tensor(DType::bool_, {5, 9}, random));
          if (mask == additive) inputs.push_back(random_tensor(DType::f32, {4, 5, 9}, random));
          const Attention op{mask, 0.25f, window, sequence_first};
          const Ran ran = run_op(cpu_device(), op, inputs);
          if (!ran.refused.empty()) continue;  // lowered instead
          expect_on_cpu(op, inputs, {4, 4e-6});
        }
      }
    }
  });
}

class AttendStates : public testing::TestWithParam<DType> {};

TEST_P(AttendStates, Attend) {
  const DType state = GetParam();
  Random random(5);
  const std::vector<Tensor> inputs{random_tensor(DType::f32, {5, 4, 32}, random),
                                   random_tensor(state, {24, 2, 32}, random),
                                   random_tensor(state, {24, 2, 32}, random),
                                   tensor_of(DType::i32, {2, 3}, {2, 0, 5, 1, 3, 4}),
                                   tensor_of(DType::i32, {5}, {0, 0, 1, -1, 1}),
                                   tensor_of(DType::i32, {5}, {3, 10, 0, 0, 11}),
                                   tensor_of(DType::i32, {2}, {11, 12})};
  const Attend plain{0.2f, 4, 0};
  SKIP_IF_REFUSED(plain, inputs);
  for (const std::int64_t window : {0, 5}) {
    at_every_level([&] {
      expect_on_cpu(Attend{0.2f, 4, window}, inputs, {4, is_block(state) ? 2e-2 : 4e-6});
    });
  }
}

INSTANTIATE_TEST_SUITE_P(States, AttendStates, testing::Values(DType::f32, DType::f16, DType::q8_0),
                         [](const auto& param) { return std::string(to_string(param.param)); });

}  // namespace
}  // namespace heddle::test
