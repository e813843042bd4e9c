// rms_norm, add_rms_norm and layer_norm on Vulkan.
#include <gmock/gmock.h>

#include "device/cpu_levels.h"
#include "device/vulkan/vulkan_device.h"

namespace heddle::test {
namespace {

class VulkanNorm : public Vulkan {};

Tolerance tolerance_for(DType dtype) {
  return dtype == DType::f32 ? Tolerance{8, 2e-6} : Tolerance{0.52, 2e-6};
}

void add_parameters(std::vector<Tensor>& inputs, bool weight, bool bias, DType dtype,
                    Random& random) {
  const std::int64_t width = inputs[0].operand.spec.shape.back();
  for (const bool has : {weight, bias}) {
    if (has) inputs.push_back(random_tensor(dtype, {width}, random));
  }
}

struct Form {
  bool weight, bias;
};
constexpr Form kForms[] = {{true, false}, {true, true}, {false, false}, {false, true}};

TEST_F(VulkanNorm, EveryDtypeAndForm) {
  Random random(1);
  for (const DType dtype : kFloatLike) {
    for (const auto& [weight, bias] : kForms) {
      for (const DType parameters : {dtype, DType::f32}) {
        std::vector inputs{random_tensor(dtype, {4, 3, 37}, random)};
        add_parameters(inputs, weight, bias, parameters, random);
        expect_conformance(device(), RmsNorm{1e-5f, weight, bias}, inputs, tolerance_for(dtype));
        expect_conformance(device(), LayerNorm{1e-5f, weight, bias}, inputs, tolerance_for(dtype));
      }
    }
  }
}

TEST_F(VulkanNorm, WidthsAndRowsOfAllKinds) {
  Random random(2);
  for (const Shape& shape :
       {Shape{3, 1}, Shape{3, 8}, Shape{2, 31}, Shape{2, 32}, Shape{2, 33}, Shape{3, 513},
        Shape{2, 1100}, Shape{2, 5000}, Shape{33}, Shape{0, 8}, Shape{2, 0}, Shape{2, 2, 2, 5}}) {
    std::vector inputs{random_tensor(DType::f32, shape, random)};
    add_parameters(inputs, true, false, DType::f32, random);
    expect_conformance(device(), RmsNorm{1e-5f, true, false}, inputs, {8, 2e-6});
    expect_conformance(device(), LayerNorm{1e-5f, true, false}, inputs, {8, 2e-6});
    inputs.insert(inputs.begin(), random_tensor(DType::f32, shape, random));
    expect_conformance(device(), AddRmsNorm{1e-5f, true, false}, inputs, {8, 2e-6});
  }
}

// The norm is of the sum as it was stored: the same bits as the two ops give.
TEST_F(VulkanNorm, AddRmsNormIsAddThenRmsNorm) {
  Random random(3);
  for (const DType dtype : kFloatLike) {
    for (const auto& [weight, bias] : kForms) {
      const Tensor a = random_tensor(dtype, {4, 3, 130}, random);
      const Tensor b = random_tensor(dtype, {4, 3, 130}, random);
      std::vector inputs{a, b};
      add_parameters(inputs, weight, bias, dtype, random);
      const Ran fused = run_op(device(), AddRmsNorm{1e-5f, weight, bias}, inputs);
      const Ran sum = run_op(device(), Binary{BinaryKind::add}, {a, b});
      inputs.erase(inputs.begin());
      inputs[0] = sum.outputs[0];
      const Ran norm = run_op(device(), RmsNorm{1e-5f, weight, bias}, inputs);
      ASSERT_EQ(fused.refused + sum.refused + norm.refused, "");
      EXPECT_TRUE(fused.outputs[0].bytes == sum.outputs[0].bytes) << to_string(dtype);
      EXPECT_TRUE(fused.outputs[1].bytes == norm.outputs[0].bytes) << to_string(dtype);
      inputs.insert(inputs.begin(), b);
      inputs[0] = a;
      inputs[1] = b;
      const Ran in_place =
          run_op(device(), AddRmsNorm{1e-5f, weight, bias}, inputs, {.in_place = true});
      EXPECT_TRUE(in_place.outputs[1].bytes == norm.outputs[0].bytes) << to_string(dtype);
    }
  }
}

TEST_F(VulkanNorm, RowsAlone) {
  Random random(4);
  for (const DType dtype : kFloatLike) {
    const Tensor x = random_tensor(dtype, {7, 2, 77}, random);
    const Tensor y = random_tensor(dtype, {7, 2, 77}, random);
    const Tensor weight = random_tensor(dtype, {77}, random);
    expect_rows_alone(device(), RmsNorm{1e-6f, true, false}, {x, weight});
    expect_rows_alone(device(), LayerNorm{1e-6f, true, true}, {x, weight, weight});
    expect_rows_alone(device(), AddRmsNorm{1e-6f, true, false}, {x, y, weight});
  }
}

TEST_F(VulkanNorm, RefusesWhatItCannotRead) {
  Random random(5);
  const auto refusal = [&](const OperandSpec& x) {
    return run_op(device(), RmsNorm{1e-5f, false, false}, {random_tensor(x, random)}).refused;
  };
  EXPECT_THAT(refusal(OperandSpec::contiguous({DType::f64, {2, 4}})), testing::HasSubstr("f64"));
  EXPECT_THAT(refusal(arranged(DType::f32, {2, 4}, Arrangement::transposed)),
              testing::HasSubstr("contiguous"));
  const OperandSpec wide = OperandSpec::contiguous({DType::f32, {1, std::int64_t{1} << 31}});
  EXPECT_THAT(device().prepare(RmsNorm{1e-5f, false, false}, {&wide, 1}, {&wide, 1}).reason,
              testing::HasSubstr("2147483647"));
  const OperandSpec tall = OperandSpec::contiguous({DType::f32, {std::int64_t{1} << 32, 1}});
  EXPECT_THAT(device().prepare(RmsNorm{1e-5f, false, false}, {&tall, 1}, {&tall, 1}).reason,
              testing::HasSubstr("4294967295"));
}

}  // namespace
}  // namespace heddle::test
