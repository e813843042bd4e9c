// Scans, places of extremes, top k, gather and scatter along an axis, and padding, on Vulkan.
#include <gmock/gmock.h>

#include <cmath>

#include "device/cpu_levels.h"
#include "device/vulkan/vulkan_device.h"

namespace heddle::test {
namespace {

class VulkanScan : public Vulkan {};
class VulkanOrder : public Vulkan {};
class VulkanIndices : public Vulkan {};
class VulkanPad : public Vulkan {};

constexpr ScanKind kScans[] = {ScanKind::sum, ScanKind::prod, ScanKind::max, ScanKind::min,
                               ScanKind::logaddexp};
/// A dtype for each way of computing.
constexpr DType kSomeDtypes[] = {DType::bool_, DType::u8,  DType::i16, DType::u32,      DType::i64,
                                 DType::f16,   DType::f32, DType::f64, DType::complex64};

bool defined(ScanKind kind, DType dtype) {
  if (kind == ScanKind::logaddexp) return is_floating(dtype);
  return dtype != DType::complex64 || kind == ScanKind::sum || kind == ScanKind::prod;
}

Tolerance tolerance_for(ScanKind kind, DType dtype) {
  if (kind == ScanKind::max || kind == ScanKind::min) return {};
  if (dtype == DType::f64) return {64, 1e-13};
  if (dtype == DType::complex64) return {64, 1e-4};
  return dtype == DType::f32 ? Tolerance{1, 1e-6} : Tolerance{0.52, 1e-6};
}

void check(Device& device, ScanKind kind, const OperandSpec& x, std::int64_t axis, Random& random) {
  if (!defined(kind, x.spec.dtype)) return;
  Fill fill{-2, 2, kind == ScanKind::max || kind == ScanKind::min};
  if (kind == ScanKind::prod && !is_integer(x.spec.dtype)) fill = {0.8, 1.2};
  if (kind == ScanKind::prod && x.spec.dtype == DType::complex64) fill = {0.6, 0.8};
  if (is_integer(x.spec.dtype)) fill = {-90, 90, true};
  for (const bool exclusive : {false, true}) {
    expect_conformance(device, Scan{kind, axis, exclusive, exclusive},
                       {random_tensor(x, random, fill)}, tolerance_for(kind, x.spec.dtype));
    expect_conformance(device, Scan{kind, axis, !exclusive, exclusive},
                       {random_tensor(x, random, fill)}, tolerance_for(kind, x.spec.dtype));
  }
}

TEST_F(VulkanScan, EveryKindAndDtype) {
  Random random(1);
  for (const ScanKind kind : kScans) {
    for (const DType dtype : kSomeDtypes) {
      check(device(), kind, OperandSpec::contiguous({dtype, {3, 5, 35}}), 1, random);
    }
    check(device(), kind, OperandSpec::contiguous({DType::f32, {3, 5, 35}}), 0, random);
    check(device(), kind, OperandSpec::contiguous({DType::f32, {3, 5, 35}}), 2, random);
  }
}

TEST_F(VulkanScan, EdgesAndLongLines) {
  Random random(2);
  for (const ScanKind kind : {ScanKind::sum, ScanKind::max}) {
    for (const DType dtype : {DType::f16, DType::i8}) {
      for (const std::int64_t n : {0, 1, 127, 128, 129, 3000}) {
        check(device(), kind, OperandSpec::contiguous({dtype, {2, n}}), 1, random);
        check(device(), kind, OperandSpec::contiguous({dtype, {n, 3}}), 0, random);
      }
    }
    check(device(), kind, OperandSpec::contiguous({DType::i32, {0, 4}}), 1, random);
  }
}

TEST_F(VulkanScan, NanAndInfinitiesStay) {
  const Tensor x = tensor_of(DType::f32, {2, 4}, {1, NAN, 2, 3, -INFINITY, -INFINITY, 5, INFINITY});
  for (const ScanKind kind : kScans) {
    expect_conformance(device(), Scan{kind, 1, false, false}, {x}, {4, 0});
    expect_conformance(device(), Scan{kind, 1, true, true}, {x}, {4, 0});
  }
}

TEST_F(VulkanScan, RowsAlone) {
  Random random(3);
  expect_rows_alone(device(), Scan{ScanKind::sum, 1},
                    {random_tensor(DType::f32, {5, 600, 3}, random)});
  expect_rows_alone(device(), Scan{ScanKind::logaddexp, 2, true},
                    {random_tensor(DType::f16, {5, 2, 70}, random)});
}

// ---- Order

TEST_F(VulkanOrder, ArgReduceOfEveryDtypeAndAxis) {
  Random random(4);
  for (const ArgReduceKind kind : {ArgReduceKind::max, ArgReduceKind::min}) {
    for (const DType dtype : kPlain) {
      if (dtype == DType::complex64) continue;
      // Few different values, so that there are equals.
      const Tensor x = random_tensor(dtype, {3, 5, 130}, random, {-3, 3, true});
      expect_conformance(device(), ArgReduce{kind, 1, true}, {x});
      expect_conformance(device(), ArgReduce{kind, 2, false}, {x});
    }
    for (const std::int64_t n : {1, 2, 511, 513, 5000}) {
      expect_conformance(device(), ArgReduce{kind, 0}, {random_tensor(DType::f32, {n}, random)});
      expect_conformance(device(), ArgReduce{kind, 0}, {random_tensor(DType::f32, {n, 3}, random)});
    }
    expect_conformance(device(), ArgReduce{kind, 1}, {random_tensor(DType::f32, {0, 3}, random)});
  }
}

TEST_F(VulkanOrder, TheFirstOfEqualsAndTheFirstNanWin) {
  for (const DType dtype : kFloats) {
    for (const auto& values : {std::vector<double>{1, 3, 3, 1},
                               {-0.0, 0.0, 0.0, -0.0},
                               {1, NAN, 5, NAN},
                               {NAN, -INFINITY, INFINITY, NAN},
                               {-INFINITY, -INFINITY, -INFINITY, -INFINITY}}) {
      const Tensor x = tensor_of(dtype, {4}, values);
      expect_conformance(device(), ArgReduce{ArgReduceKind::max, 0}, {x});
      expect_conformance(device(), ArgReduce{ArgReduceKind::min, 0}, {x});
      expect_conformance(device(), TopK{4}, {x});
    }
  }
}

TEST_F(VulkanOrder, TopKOfEveryDtypeAndCount) {
  Random random(5);
  for (const DType dtype : kPlain) {
    if (dtype == DType::complex64) continue;
    for (const std::int64_t k : {0, 1, 7, 70}) {
      expect_conformance(device(), TopK{k}, {random_tensor(dtype, {3, 70}, random, {-9, 9, true})});
    }
  }
  expect_conformance(device(), TopK{5}, {random_tensor(DType::f32, {2, 2, 3000}, random)});
  const OperandSpec wide = OperandSpec::contiguous({DType::u8, {1 << 20}});
  EXPECT_THAT(run_op(device(), TopK{1 << 12}, {random_tensor(wide, random)}).refused,
              testing::HasSubstr("2147483648"));
}

TEST_F(VulkanOrder, RowsAlone) {
  Random random(6);
  expect_rows_alone(device(), ArgReduce{ArgReduceKind::max, 1},
                    {random_tensor(DType::f16, {5, 60, 3}, random, {-3, 3})});
  expect_rows_alone(device(), TopK{3}, {random_tensor(DType::f32, {5, 2, 40}, random, {-3, 3})});
}

// ---- Indices

Tensor random_indices(DType dtype, const Shape& shape, std::int64_t extent, Random& random) {
  std::vector<double> values(static_cast<std::size_t>(elements(shape)));
  const bool negative = info(dtype).kind == DTypeKind::signed_int;
  for (double& value : values) {
    value = static_cast<double>(random() % static_cast<std::uint64_t>(extent));
    if (negative && random() % 2 == 0) value -= static_cast<double>(extent);
  }
  return tensor_of(dtype, shape, values);
}

TEST_F(VulkanIndices, GatherOfEveryDtypeAndIndex) {
  Random random(7);
  for (const DType dtype : kPlain) {
    const Tensor x = random_tensor(dtype, {3, 5, 7}, random);
    expect_conformance(device(), GatherAxis{1},
                       {x, random_indices(DType::i32, {3, 9, 7}, 5, random)});
  }
  const Tensor x = random_tensor(DType::f32, {3, 5, 7}, random);
  for (const DType index : kIntegers) {
    expect_conformance(device(), GatherAxis{0}, {x, random_indices(index, {2, 5, 7}, 3, random)});
    expect_conformance(device(), GatherAxis{2}, {x, random_indices(index, {3, 5, 11}, 7, random)});
  }
  expect_conformance(device(), GatherAxis{1},
                     {x, random_indices(DType::i64, {3, 0, 7}, 5, random)});
}

TEST_F(VulkanIndices, ScatterOfEveryKindAndDtype) {
  Random random(8);
  for (const ScatterKind kind : {ScatterKind::none, ScatterKind::sum, ScatterKind::prod,
                                 ScatterKind::max, ScatterKind::min}) {
    for (const DType dtype : kSomeDtypes) {
      const bool ordered = kind == ScatterKind::max || kind == ScatterKind::min;
      if (ordered && dtype == DType::complex64) continue;
      const bool half = dtype == DType::f16;  // rounded after every update
      const Tolerance tolerance{half ? 4.0 : 8.0, half ? 4e-3 : 1e-5};
      const Tensor x = random_tensor(dtype, {3, 5, 7}, random, {-2, 2, ordered});
      expect_conformance(device(), ScatterAxis{1, kind},
                         {x, random_indices(DType::i64, {3, 9, 7}, 5, random),
                          random_tensor(dtype, {3, 9, 7}, random, {-2, 2, ordered})},
                         tolerance);
    }
  }
  const Tensor x = random_tensor(DType::f32, {300}, random);
  expect_conformance(
      device(), ScatterAxis{0, ScatterKind::none},
      {x, random_indices(DType::u8, {600}, 200, random), random_tensor(DType::f32, {600}, random)});
  expect_conformance(
      device(), ScatterAxis{0, ScatterKind::sum},
      {x, random_indices(DType::u8, {0}, 200, random), random_tensor(DType::f32, {0}, random)});
}

TEST_F(VulkanIndices, OutOfBoundsAreReported) {
  Random random(9);
  const Tensor x = random_tensor(DType::f32, {4, 3}, random);
  const Tensor updates = random_tensor(DType::f32, {2, 3}, random);
  for (const double bad : {-5.0, 4.0, 2147483647.0, -2147483648.0}) {
    for (const DType index : {DType::i32, DType::i64}) {
      const Tensor indices = tensor_of(index, {2, 3}, {0, 1, 2, 3, bad, 0});
      EXPECT_ANY_THROW(run_op(device(), GatherAxis{0}, {x, indices})) << bad;
      EXPECT_ANY_THROW(run_op(device(), ScatterAxis{0, ScatterKind::sum}, {x, indices, updates}))
          << bad;
    }
  }
}

TEST_F(VulkanIndices, RowsAlone) {
  Random random(10);
  const Tensor x = random_tensor(DType::f32, {5, 6, 3}, random);
  const Tensor indices = random_indices(DType::i32, {5, 9, 3}, 6, random);
  expect_rows_alone(device(), GatherAxis{1}, {x, indices});
  expect_rows_alone(device(), ScatterAxis{1, ScatterKind::sum},
                    {x, indices, random_tensor(DType::f32, {5, 9, 3}, random)});
}

// ---- Pad

TEST_F(VulkanPad, EveryDtypeAndMode) {
  Random random(11);
  for (const DType dtype : kPlain) {
    const Tensor x = random_tensor(dtype, {3, 4, 5}, random);
    expect_conformance(device(), Pad{Pad::Mode::constant, {1, 0, 2}, {0, 3, 1}},
                       {x, random_tensor(dtype, {}, random)});
    expect_conformance(device(), Pad{Pad::Mode::edge, {1, 0, 2}, {0, 3, 1}}, {x});
  }
  expect_conformance(
      device(), Pad{Pad::Mode::constant, {2, 0}, {1, 0}},
      {random_tensor(DType::f32, {0, 3}, random), random_tensor(DType::f32, {}, random)});
  expect_conformance(device(), Pad{Pad::Mode::edge, {}, {}},
                     {random_tensor(DType::f32, {}, random)});
}

}  // namespace
}  // namespace heddle::test
