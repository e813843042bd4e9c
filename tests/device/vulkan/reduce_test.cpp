// reduce over every kind, dtype and set of axes, and softmax, on Vulkan.
#include <gmock/gmock.h>

#include <cmath>

#include "device/cpu_levels.h"
#include "device/vulkan/vulkan_device.h"

namespace heddle::test {
namespace {

class VulkanReduce : public Vulkan {};
class VulkanSoftmax : public Vulkan {};

constexpr ReduceKind kKinds[] = {ReduceKind::sum, ReduceKind::mean, ReduceKind::max,
                                 ReduceKind::min, ReduceKind::prod};

bool picks(ReduceKind kind) {
  return kind == ReduceKind::max || kind == ReduceKind::min;
}

/// `count` numbers of at most `size` each are added, or multiplied.
Tolerance tolerance_for(DType dtype, ReduceKind kind, std::int64_t count, double size) {
  if (picks(kind)) return {};
  const auto n = static_cast<double>(count);
  const bool product = kind == ReduceKind::prod;
  const double epsilon = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  const double absolute =
      product ? 0 : epsilon * size * (kind == ReduceKind::mean ? 1 : n) * (2 + std::sqrt(n) / 8);
  if (dtype == DType::complex64) {
    return product ? Tolerance{2 + n, 1e-4} : Tolerance{1, 8 * absolute + 1e-6};
  }
  if (dtype == DType::f16 || dtype == DType::bf16) return {0.52, absolute};
  return {product ? 2 + n : 1, absolute};
}

Fill fill_for(DType dtype, ReduceKind kind) {
  if (is_integer(dtype)) {
    // Means of 64-bit integers are taken in double, which extremes overwhelm.
    return {-90, 90, !(kind == ReduceKind::mean && item_size(dtype) == 8)};
  }
  if (kind != ReduceKind::prod) return {-2, 2, picks(kind)};
  return dtype == DType::complex64 ? Fill{0.6, 0.8} : Fill{0.9, 1.1};  // about 1 in size
}

void check(Device& device, ReduceKind kind, const OperandSpec& x, const Dims& axes, bool keepdims,
           Random& random) {
  const DType dtype = x.spec.dtype;
  if (dtype == DType::complex64 && picks(kind)) return;
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= x.spec.shape[static_cast<std::size_t>(axis)];
  expect_conformance(device, Reduce{kind, axes, keepdims},
                     {random_tensor(x, random, fill_for(dtype, kind))},
                     tolerance_for(dtype, kind, count, 2));
}

TEST_F(VulkanReduce, EveryKindAndDtype) {
  Random random(1);
  for (const ReduceKind kind : kKinds) {
    for (const DType dtype : kPlain) {
      const OperandSpec x = OperandSpec::contiguous({dtype, {5, 3, 35}});
      check(device(), kind, x, {2}, false, random);
      check(device(), kind, x, {1}, true, random);
    }
  }
}

TEST_F(VulkanReduce, EverySetOfAxesAndArrangement) {
  Random random(2);
  const Dims axes[] = {{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}, {}};
  for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::max}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64}) {
      for (const Arrangement arrangement : kAllArrangements) {
        for (const Dims& reduced : axes) {
          check(device(), kind, arranged(dtype, {5, 3, 35}, arrangement), reduced,
                reduced.size() == 2, random);
        }
      }
    }
  }
  check(device(), ReduceKind::sum,
        arranged(DType::f32, {2, 3, 2, 3, 2, 3, 2, 3}, Arrangement::sliced), {0, 2, 4, 6}, false,
        random);
  check(device(), ReduceKind::sum, arranged(DType::f32, {}, Arrangement::contiguous), {}, false,
        random);
}

// Beyond a segment, the workspace comes in.
TEST_F(VulkanReduce, LongRowsAndColumns) {
  Random random(3);
  for (const ReduceKind kind : kKinds) {
    for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::i8, DType::complex64}) {
      for (const std::int64_t n : {1, 4095, 4096, 4097, 9000}) {
        check(device(), kind, OperandSpec::contiguous({dtype, {3, n}}), {1}, false, random);
        check(device(), kind, OperandSpec::contiguous({dtype, {n, 9}}), {0}, false, random);
      }
    }
  }
  check(device(), ReduceKind::sum, OperandSpec::contiguous({DType::f32, {2, 70000}}), {1}, false,
        random);
  check(device(), ReduceKind::mean, OperandSpec::contiguous({DType::f32, {700, 9, 70}}), {0, 2},
        false, random);
}

TEST_F(VulkanReduce, OfNothing) {
  Random random(4);
  for (const DType dtype : kPlain) {
    for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::prod}) {
      expect_conformance(device(), Reduce{kind, {0}, false},
                         {random_tensor(dtype, {0, 3}, random)});
      expect_conformance(device(), Reduce{kind, {1}, true}, {random_tensor(dtype, {0, 3}, random)});
    }
  }
}

TEST_F(VulkanReduce, BitsDoNotDependOnTheLayout) {
  Random random(5);
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Tensor rows = random_tensor(dtype, {9, 5000}, random);
    Tensor columns{OperandSpec::contiguous({dtype, {5000, 9}}), rows.bytes};
    columns.operand.layout.strides = {1, 5000};
    const Ran first = run_op(cpu_device(), Contiguous{}, {columns});
    for (const ReduceKind kind : kKinds) {
      const Ran a = run_op(device(), Reduce{kind, {1}, false}, {rows});
      const Ran b = run_op(device(), Reduce{kind, {0}, false}, {columns});
      const Ran c = run_op(device(), Reduce{kind, {0}, false}, first.outputs);
      ASSERT_EQ(a.refused + b.refused + c.refused, "");
      EXPECT_TRUE(a.outputs[0].bytes == b.outputs[0].bytes) << to_string(kind);
      EXPECT_TRUE(a.outputs[0].bytes == c.outputs[0].bytes) << to_string(kind);
    }
  }
}

TEST_F(VulkanReduce, RowsAlone) {
  Random random(6);
  for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::max}) {
    for (const std::int64_t width : {1, 17, 5000}) {
      for (const Arrangement arrangement : {Arrangement::contiguous, Arrangement::transposed}) {
        const Tensor x = random_tensor(arranged(DType::f32, {5, width, 9}, arrangement), random);
        expect_rows_alone(device(), Reduce{kind, {1}, false}, {x});
        expect_rows_alone(device(), Reduce{kind, {1, 2}, true}, {x});
      }
    }
  }
}

TEST_F(VulkanReduce, RefusesWhatItCannotCount) {
  const auto refusal = [&](const OperandSpec& x, const Dims& axes) {
    const Op op = Reduce{ReduceKind::sum, axes, false};
    const auto outputs = output_operands(op, infer(op, std::span(&x.spec, 1)));
    return device().prepare(op, {&x, 1}, outputs).reason;
  };
  constexpr std::int64_t kMany = std::int64_t{1} << 31;
  EXPECT_THAT(refusal(OperandSpec::contiguous({DType::u8, {kMany}}), {0}),
              testing::HasSubstr("2147483647"));
  EXPECT_THAT(refusal(OperandSpec::contiguous({DType::f32, {2 * kMany, 1}}), {1}),
              testing::HasSubstr("4294967295"));
  EXPECT_THAT(refusal({{DType::u8, {2, 2}}, {LayoutKind::strided, {kMany, 1}}}, {1}),
              testing::HasSubstr("stride"));
}

// ---- Softmax

TEST_F(VulkanSoftmax, EveryDtypeAndWidth) {
  Random random(7);
  for (const DType dtype : kFloats) {
    const bool half = dtype == DType::f16 || dtype == DType::bf16;
    // Rounding x - max alone moves e^(x - max) by up to 8 units.
    const Tolerance tolerance{half ? 0.51 : 20, 1e-37};
    for (const std::int64_t n : {1, 2, 15, 17, 512, 1500}) {
      expect_conformance(device(), Softmax{}, {random_tensor(dtype, {3, n}, random, {-8, 8})},
                         tolerance);
    }
    for (const Shape& shape : {Shape{0}, Shape{2, 0}, Shape{0, 3}, Shape{5}}) {
      expect_conformance(device(), Softmax{}, {random_tensor(dtype, shape, random)}, tolerance);
    }
  }
}

TEST_F(VulkanSoftmax, MaskedRowsAreZerosAndNanSpreads) {
  for (const DType dtype : kFloats) {
    const Tensor x = tensor_of(dtype, {5, 3},
                               {-INFINITY, -INFINITY, -INFINITY,  //
                                -INFINITY, 1, 2,                  //
                                NAN, 1, -INFINITY,                //
                                NAN, NAN, NAN,                    //
                                300, -300, 299});
    const bool half = dtype == DType::f16 || dtype == DType::bf16;
    expect_conformance(device(), Softmax{}, {x}, {half ? 0.51 : 4, 0});
  }
}

TEST_F(VulkanSoftmax, RowsAlone) {
  Random random(8);
  for (const DType dtype : kFloats) {
    expect_rows_alone(device(), Softmax{}, {random_tensor(dtype, {6, 2, 130}, random)});
  }
}

}  // namespace
}  // namespace heddle::test
