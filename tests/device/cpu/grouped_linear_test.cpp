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

}  // namespace
}  // namespace heddle::test
