// Weights that each row chooses: against the reference, and bit for bit against linear.
#include <cstring>

#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

constexpr DType kWeights[] = {DType::f32,  DType::f16,  DType::bf16, DType::q4_0,   DType::q4_1,
                              DType::q5_0, DType::q5_1, DType::q8_0, DType::q2_K,   DType::q3_K,
                              DType::q4_K, DType::q5_K, DType::q6_K, DType::iq4_nl, DType::iq4_xs};

Tensor experts_of(const std::vector<double>& values) {
  return tensor_of(DType::i32, {static_cast<std::int64_t>(values.size())}, values);
}

TEST(GroupedLinear, EveryWeightTypeAndShape) {
  at_every_level([] {
    Random random(1);
    const std::vector<double> chosen{2, 2, -1, 0, 2, 2, 2, 1, -1, -1, 0};
    for (const DType dtype : kWeights) {
      for (const std::int64_t depth : {256, 512}) {
        for (const std::int64_t width : {1, 15, 64, 130}) {
          expect_on_cpu(GroupedLinear{},
                        {random_tensor(DType::f32, {11, depth}, random),
                         random_tensor(dtype, {3, width, depth}, random), experts_of(chosen)},
                        {1, 2e-2});
        }
      }
    }
    expect_on_cpu(GroupedLinear{},
                  {random_tensor(DType::f32, {2, 5}, random),
                   random_tensor(DType::f32, {3, 4, 5}, random), experts_of({1, 0})},
                  {1, 1e-5});
    expect_on_cpu(GroupedLinear{}, {random_tensor(DType::f32, {0, 5}, random),
                                    random_tensor(DType::f32, {3, 4, 5}, random), experts_of({})});
    expect_on_cpu(GroupedLinear{},
                  {random_tensor(DType::f32, {2, 0}, random),
                   random_tensor(DType::f32, {3, 4, 0}, random), experts_of({1, 0})});
  });
}

TEST(GroupedLinear, GivesTheBitsOfLinear) {
  at_every_level([] {
    Random random(2);
    for (const DType dtype : kWeights) {
      const std::int64_t tokens = 200, depth = 256, width = 70;
      const Tensor x = random_tensor(DType::f32, {tokens, depth}, random);
      const Tensor weights = random_tensor(dtype, {2, width, depth}, random);
      std::vector<double> chosen;
      for (std::int64_t t = 0; t < tokens; ++t) chosen.push_back(static_cast<double>(t / 30 % 2));
      const Ran grouped = run_op(cpu_device(), GroupedLinear{}, {x, weights, experts_of(chosen)});
      ASSERT_EQ(grouped.refused, "");
      for (std::int64_t e = 0; e < 2; ++e) {
        Tensor own{OperandSpec::contiguous({dtype, {width, depth}}), {}};
        const std::size_t bytes = weights.bytes.size() / 2;
        const auto from = weights.bytes.begin() + e * static_cast<std::ptrdiff_t>(bytes);
        own.bytes.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
        const Ran linear = run_op(cpu_device(), Linear{}, {x, own});
        for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t) {
          if (chosen[t] != static_cast<double>(e)) continue;
          const std::size_t row = static_cast<std::size_t>(width) * sizeof(float);
          EXPECT_EQ(std::memcmp(&grouped.outputs[0].bytes[t * row],
                                &linear.outputs[0].bytes[t * row], row),
                    0)
              << to_string(dtype) << ", row " << t;
        }
      }
    }
  });
}

TEST(GroupedLinear, ExpertsThatAreNotThereAreNamed) {
  Random random(3);
  for (const double bad : {-2.0, 3.0}) {
    try {
      run_op(cpu_device(), GroupedLinear{},
             {random_tensor(DType::f32, {2, 5}, random),
              random_tensor(DType::f32, {3, 4, 5}, random), experts_of({0, bad})});
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      const std::string what = error.what();
      EXPECT_NE(what.find("of row 1 is outside [-1, 3)"), std::string::npos) << what;
    }
  }
}

TEST(GroupedLinear, RowsAlone) {
  Random random(4);
  for (const DType dtype : {DType::f32, DType::bf16, DType::q4_K}) {
    expect_rows_alone(
        cpu_device(), GroupedLinear{},
        {random_tensor(DType::f32, {6, 256}, random), random_tensor(dtype, {3, 20, 256}, random),
         experts_of({0, 0, 0, 2, -1, 2})});
  }
}

// ---- Selective scan

std::vector<Tensor> state_space(std::int64_t batch, std::int64_t length, std::int64_t features,
                                std::int64_t groups, std::int64_t width, bool has_d,
                                Random& random) {
  const auto f32 = [&](const Shape& shape, Fill fill = {}) {
    return random_tensor(DType::f32, shape, random, fill);
  };
  std::vector<Tensor> inputs{
      f32({batch, length, features}), f32({batch, length, features}, {0.001, 0.5}),
      f32({features, width}, {-2, -0.1}), f32({batch, length, groups, width}),
      f32({batch, length, groups, width})};
  if (has_d) inputs.push_back(f32({features}));
  inputs.push_back(f32({batch, features, width}));
  return inputs;
}

TEST(SelectiveScan, EveryShape) {
  at_every_level([] {
    Random random(5);
    const std::int64_t shapes[][5] = {{2, 7, 6, 1, 4},   {1, 1, 1, 1, 1}, {2, 20, 48, 3, 16},
                                      {1, 5, 35, 1, 70}, {2, 0, 6, 2, 4}, {0, 3, 6, 2, 4},
                                      {2, 3, 0, 1, 4},   {2, 3, 6, 1, 0}, {3, 4, 40, 2, 33}};
    for (const auto& [batch, length, features, groups, width] : shapes) {
      for (const bool has_d : {false, true}) {
        expect_on_cpu(SelectiveScan{has_d},
                      state_space(batch, length, features, groups, width, has_d, random),
                      {16, 1e-4});
      }
    }
  });
}

TEST(SelectiveScan, RowsAloneAndInPieces) {
  Random random(6);
  const std::vector<Tensor> whole = state_space(4, 6, 20, 2, 5, true, random);
  expect_rows_alone(cpu_device(), SelectiveScan{}, whole);
  // Step by step with the state carried on: the same bits.
  const std::vector<Tensor> one = state_space(1, 6, 20, 2, 5, true, random);
  const Ran all = run_op(cpu_device(), SelectiveScan{}, one);
  std::vector<Tensor> step = one;
  for (std::size_t t = 0; t < 6; ++t) {
    for (const std::size_t i : {0, 1, 3, 4}) {
      step[i] = one[i];
      step[i].operand.spec.shape[1] = 1;
      step[i].operand.layout = Layout::contiguous(step[i].operand.spec.shape);
      const std::size_t bytes = one[i].bytes.size() / 6;
      const auto from = one[i].bytes.begin() + static_cast<std::ptrdiff_t>(t * bytes);
      step[i].bytes.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
    }
    const Ran ran = run_op(cpu_device(), SelectiveScan{}, step);
    step.back() = ran.outputs[1];
    const std::size_t bytes = ran.outputs[0].bytes.size();
    EXPECT_EQ(std::memcmp(ran.outputs[0].bytes.data(), &all.outputs[0].bytes[t * bytes], bytes), 0);
  }
  EXPECT_TRUE(step.back().bytes == all.outputs[1].bytes);
}

}  // namespace
}  // namespace heddle::test
