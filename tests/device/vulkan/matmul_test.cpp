// Matmul on Vulkan: floats of every kind, broadcast and strided, in every form.
#include <cmath>
#include <cstring>

#include "device/vulkan/product_forms.h"

namespace heddle::test {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16, DType::f64};

Tolerance tolerance_of(DType dtype) {
  if (dtype == DType::f64) return {4, 1e-13};
  return {dtype == DType::f32 ? 4 : 0.52, 4e-5};
}

class MatmulTypes : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!vulkan_device()) GTEST_SKIP() << "no Vulkan device: " << why_no_vulkan();
  }
  static Device& device() { return *vulkan_device(); }
  /// Against the reference, in the form that the device chooses, and the same bits in every form.
  static void expect_product(const Tensor& a, const Tensor& b) {
    expect_conformance(device(), Matmul{}, {a, b}, tolerance_of(a.operand.spec.dtype));
    expect_forms_agree(device(), Matmul{}, {a, b});
  }
};

TEST_P(MatmulTypes, AgreesWithTheReference) {
  Random random(1);
  const std::pair<Shape, Shape> shapes[] = {
      {{1, 1}, {1, 1}},         {{1, 64}, {64, 70}},       {{5, 33}, {33, 7}},
      {{40, 100}, {100, 65}},   {{70, 8}, {8, 5}},         {{0, 4}, {4, 3}},
      {{3, 4}, {4, 0}},         {{3, 0}, {0, 2}},          {{2, 3, 4, 19}, {19, 5}},
      {{4, 17}, {2, 1, 17, 3}}, {{3, 1, 2, 9}, {4, 9, 2}}, {{2, 1, 3, 2, 5}, {1, 4, 1, 5, 3}}};
  for (const auto& [a, b] : shapes) {
    expect_product(random_tensor(GetParam(), a, random), random_tensor(GetParam(), b, random));
  }
}

TEST_P(MatmulTypes, ReadsAnyStrides) {
  Random random(2);
  for (const Arrangement a : kAllArrangements) {
    for (const Arrangement b : kAllArrangements) {
      expect_product(random_tensor(arranged(GetParam(), {3, 5, 40}, a), random),
                     random_tensor(arranged(GetParam(), {3, 40, 9}, b), random));
    }
  }
}

TEST_P(MatmulTypes, ARowHasTheSameBitsAloneAndInCompany) {
  Random random(3);
  const Tensor a = random_tensor(GetParam(), {37, 90}, random);
  const Tensor b = random_tensor(GetParam(), {90, 21}, random);
  in_every_form([&] {
    const Ran all = run_op(device(), Matmul{}, {a, b});
    ASSERT_EQ(all.refused, "");
    const std::size_t in_row = row_bytes(GetParam(), 90), out_row = row_bytes(GetParam(), 21);
    for (const std::size_t r : {0, 8, 36}) {
      Tensor alone{OperandSpec::contiguous({GetParam(), {1, 90}}), {}};
      const auto first = a.bytes.begin() + static_cast<std::ptrdiff_t>(r * in_row);
      alone.bytes.assign(first, first + static_cast<std::ptrdiff_t>(in_row));
      const Ran one = run_op(device(), Matmul{}, {alone, b});
      EXPECT_EQ(std::memcmp(one.outputs[0].bytes.data(), all.outputs[0].bytes.data() + r * out_row,
                            out_row),
                0)
          << r;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulTypes, testing::ValuesIn(kFloats),
                         [](const auto& type) { return std::string(to_string(type.param)); });

std::string refusal(Device& device, const OperandSpec& a, const OperandSpec& b) {
  const OperandSpec inputs[] = {a, b};
  const TensorSpec specs[] = {a.spec, b.spec};
  const std::vector<OperandSpec> out = output_operands(Matmul{}, infer(Matmul{}, specs));
  return device.prepare(Matmul{}, inputs, out).reason;
}

TEST_F(Vulkan, MatmulRefusesWhatItCannotIndex) {
  const auto plain = [](const Shape& shape) {
    return OperandSpec::contiguous({DType::f32, shape});
  };
  // Four batch axes, of which no two lie alike in both operands.
  EXPECT_NE(refusal(device(), plain({2, 1, 2, 1, 3, 4}), plain({1, 2, 1, 2, 4, 3}))
                .find("4 batch axes that cannot be joined; at most 3"),
            std::string::npos);
  EXPECT_EQ(refusal(device(), plain({2, 1, 2, 3, 4}), plain({1, 2, 1, 4, 3})), "");
  constexpr std::int64_t kLong = std::int64_t{1} << 31;
  EXPECT_NE(refusal(device(), plain({1, kLong}), plain({kLong, 1})).find("2147483647"),
            std::string::npos);
  EXPECT_EQ(refusal(device(), plain({1, kLong - 1}), plain({kLong - 1, 1})), "");
}

}  // namespace
}  // namespace heddle::test
