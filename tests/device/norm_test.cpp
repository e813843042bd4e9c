// rms_norm, add_rms_norm and layer_norm.
#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

Tolerance tolerance_for(DType dtype) {
  return dtype == DType::f32 ? Tolerance{8, 2e-6} : Tolerance{0.52, 2e-6};
}

std::vector<Tensor> with_parameters(std::vector<Tensor> inputs, bool weight, bool bias, DType dtype,
                                    Random& random) {
  const std::int64_t width = inputs[0].operand.spec.shape.back();
  for (const bool has : {weight, bias}) {
    if (has) inputs.push_back(random_tensor(dtype, {width}, random));
  }
  return inputs;
}

struct Form {
  bool weight, bias;
};
constexpr Form kForms[] = {{true, false}, {true, true}, {false, false}, {false, true}};

void check_norms(const OperandSpec& x, Random& random) {
  const DType dtype = x.spec.dtype;
  for (const auto& [weight, bias] : kForms) {
    for (const DType parameters : {dtype, DType::f32}) {
      const auto inputs =
          with_parameters({random_tensor(x, random)}, weight, bias, parameters, random);
      expect_on_cpu(RmsNorm{1e-5f, weight, bias}, inputs, tolerance_for(dtype));
      expect_on_cpu(LayerNorm{1e-5f, weight, bias}, inputs, tolerance_for(dtype));
    }
  }
}

TEST(Norm, EveryDtypeFormAndArrangement) {
  at_every_level([] {
    Random random(1);
    for (const DType dtype : kFloatLike) {
      for (const Arrangement arrangement : kArrangements) {
        check_norms(arranged(dtype, {4, 3, 37}, arrangement), random);
      }
      for (const std::int64_t width : {2, 15, 16, 17, 512, 513, 1100}) {
        check_norms(OperandSpec::contiguous({dtype, {3, width}}), random);
      }
      check_norms(OperandSpec::contiguous({dtype, {33}}), random);
      check_norms(OperandSpec::contiguous({dtype, {0, 8}}), random);
      check_norms(OperandSpec::contiguous({dtype, {2, 0}}), random);
    }
  });
}

TEST(Norm, AddRmsNormIsAddThenRmsNorm) {
  at_every_level([] {
    Random random(2);
    for (const DType dtype : kFloatLike) {
      for (const Arrangement arrangement : kArrangements) {
        for (const auto& [weight, bias] : kForms) {
          const OperandSpec spec = arranged(dtype, {4, 3, 530}, arrangement);
          const Tensor a = random_tensor(spec, random), b = random_tensor(spec, random);
          const auto inputs = with_parameters({a, b}, weight, bias, dtype, random);
          const Ran fused = run_op(cpu_device(), AddRmsNorm{1e-5f, weight, bias}, inputs);
          ASSERT_EQ(fused.refused, "");
          const Ran sum = run_op(cpu_device(), Binary{BinaryKind::add}, {a, b});
          std::vector<Tensor> norm_inputs = inputs;
          norm_inputs.erase(norm_inputs.begin());
          norm_inputs[0] = sum.outputs[0];
          const Ran norm = run_op(cpu_device(), RmsNorm{1e-5f, weight, bias}, norm_inputs);
          EXPECT_TRUE(fused.outputs[0].bytes == sum.outputs[0].bytes);
          EXPECT_TRUE(fused.outputs[1].bytes == norm.outputs[0].bytes);
        }
      }
    }
  });
}

TEST(Norm, AddRmsNormConforms) {
  at_every_level([] {
    Random random(3);
    for (const std::int64_t width : {1, 31, 32, 33, 600}) {
      const Tensor a = random_tensor(DType::f32, {5, width}, random);
      const Tensor b = random_tensor(DType::f32, {5, width}, random);
      expect_on_cpu(AddRmsNorm{1e-5f, true, false},
                    with_parameters({a, b}, true, false, DType::f32, random), {8, 2e-6});
    }
  });
}

TEST(Norm, RowsAlone) {
  at_every_level([] {
    Random random(4);
    for (const DType dtype : kFloatLike) {
      for (const std::int64_t width : {1, 19, 64, 777}) {
        const Tensor x = random_tensor(dtype, {7, width}, random);
        const Tensor y = random_tensor(dtype, {7, width}, random);
        const auto one = with_parameters({x}, true, true, dtype, random);
        expect_rows_alone(cpu_device(), RmsNorm{1e-6f, true, true}, one);
        expect_rows_alone(cpu_device(), LayerNorm{1e-6f, true, true}, one);
        expect_rows_alone(cpu_device(), AddRmsNorm{1e-6f, true, false},
                          with_parameters({x, y}, true, false, dtype, random));
      }
    }
  });
}

TEST(Norm, RefusesDoubles) {
  const std::vector in{OperandSpec::contiguous({DType::f64, {2, 4}})};
  const Prepared prepared = cpu_device().prepare(RmsNorm{1e-5f, false, false}, in, in);
  EXPECT_FALSE(prepared);
  EXPECT_NE(prepared.reason.find("f64"), std::string::npos) << prepared.reason;
}

}  // namespace
}  // namespace heddle::test
