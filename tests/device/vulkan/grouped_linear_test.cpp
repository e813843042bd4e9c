// grouped_linear on Vulkan: against the reference, and bit for bit against linear.
#include <gmock/gmock.h>

#include <cstring>

#include "device/cpu_levels.h"
#include "device/vulkan/vulkan_device.h"

namespace heddle::test {
namespace {

class VulkanGroupedLinear : public Vulkan {};

Tensor experts_of(const std::vector<double>& values) {
  return tensor_of(DType::i32, {static_cast<std::int64_t>(values.size())}, values);
}

TEST_F(VulkanGroupedLinear, EveryKindOfWeight) {
  Random random(1);
  const Tensor experts = experts_of({2, 2, -1, 0, 1, -1});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_K}) {
    for (const std::int64_t width : {1, 6}) {
      expect_conformance(device(), GroupedLinear{},
                         {random_tensor(DType::f32, {6, 512}, random),
                          random_tensor(dtype, {3, width, 512}, random), experts},
                         {4, 1e-4});
    }
  }
  const Shape depths[] = {{3, 4, 5}, {3, 4, 0}, {3, 0, 5}};
  for (const Shape& weights : depths) {
    expect_conformance(device(), GroupedLinear{},
                       {random_tensor(DType::f32, {2, weights[2]}, random),
                        random_tensor(DType::f32, weights, random), experts_of({1, 0})},
                       {4, 1e-5});
  }
}

TEST_F(VulkanGroupedLinear, GivesTheBitsOfLinear) {
  Random random(2);
  const std::size_t tokens = 10, width = 6;
  for (const DType dtype : {DType::f16, DType::q4_K}) {
    const Tensor x = random_tensor(DType::f32, {tokens, 256}, random);
    const Tensor weights = random_tensor(dtype, {2, width, 256}, random);
    const Ran grouped =
        run_op(device(), GroupedLinear{}, {x, weights, experts_of({0, 1, 0, 1, 0, 1, 0, 1, 0, 1})});
    ASSERT_EQ(grouped.refused, "");
    const std::size_t bytes = weights.bytes.size() / 2, row = width * sizeof(float);
    for (std::size_t e = 0; e < 2; ++e) {
      Tensor own{OperandSpec::contiguous({dtype, {width, 256}}), {}};
      const auto from = weights.bytes.begin() + static_cast<std::ptrdiff_t>(e * bytes);
      own.bytes.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
      const Ran linear = run_op(device(), Linear{}, {x, own});
      for (std::size_t t = e; t < tokens; t += 2) {
        EXPECT_EQ(
            std::memcmp(&grouped.outputs[0].bytes[t * row], &linear.outputs[0].bytes[t * row], row),
            0)
            << to_string(dtype) << ", row " << t;
      }
    }
  }
}

TEST_F(VulkanGroupedLinear, ExpertsThatAreNotThereAreReported) {
  Random random(3);
  for (const double bad : {-2.0, 3.0}) {
    try {
      run_op(device(), GroupedLinear{},
             {random_tensor(DType::f32, {2, 256}, random),
              random_tensor(DType::f32, {3, 6, 256}, random), experts_of({0, bad})});
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), testing::HasSubstr("grouped_linear"));
    }
  }
}

TEST_F(VulkanGroupedLinear, RowsAlone) {
  Random random(4);
  expect_rows_alone(
      device(), GroupedLinear{},
      {random_tensor(DType::f32, {6, 256}, random), random_tensor(DType::q4_K, {3, 6, 256}, random),
       experts_of({0, 0, 0, 2, -1, 2})});
}

}  // namespace
}  // namespace heddle::test
