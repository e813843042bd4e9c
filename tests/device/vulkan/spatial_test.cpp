// Windows, pooling and resizing, norms over channels and selective scans, on Vulkan.
#include <gmock/gmock.h>

#include "device/cpu_levels.h"
#include "device/lower.h"
#include "device/vulkan/vulkan_device.h"

namespace heddle::test {
namespace {

class VulkanSpatial : public Vulkan {};
class VulkanChannelNorm : public Vulkan {};
class VulkanSelectiveScan : public Vulkan {};

TEST_F(VulkanSpatial, Im2colOfEveryDtypeAndWindow) {
  Random random(1);
  const Windows plain{{1, 1}, {1, 0}, {1, 2}, {1, 1}, {1, 1}};
  for (const DType dtype : kPlain) {
    expect_conformance(device(), Im2col{{2, 3}, plain},
                       {random_tensor(dtype, {2, 4, 5, 3}, random)});
  }
  const Tensor x = random_tensor(DType::f32, {2, 5, 6, 4, 2}, random);
  const Windows far{{2, 1, 3}, {2, -1, 1}, {3, 4, 0}, {2, 1, 2}, {1, 2, 3}};
  expect_conformance(device(), Im2col{{2, 3, 1}, far}, {x});
  expect_conformance(device(), Im2col{{3}, Windows{{1}, {1}, {1}, {1}, {1}}},
                     {random_tensor(DType::f32, {2, 7, 3}, random)});
  expect_conformance(device(), Im2col{{3}, Windows{{1}, {1}, {1}, {1}, {1}}},
                     {random_tensor(DType::f32, {0, 7, 3}, random)});
}

TEST_F(VulkanSpatial, PoolOfEveryDtypeAndWindow) {
  Random random(2);
  const Pool largest{PoolKind::max, PoolWindows{{2, 3}, {1, 2}, {1, 1}, {0, 2}}};
  for (const DType dtype : kPlain) {
    if (dtype == DType::complex64 || dtype == DType::bool_) continue;
    expect_conformance(device(), largest,
                       {random_tensor(dtype, {2, 4, 7, 3}, random, {-90, 90, true})});
  }
  for (const bool count_padding : {false, true}) {
    for (const DType dtype : kFloats) {
      const bool half = dtype == DType::f16 || dtype == DType::bf16;
      expect_conformance(
          device(),
          Pool{PoolKind::mean, PoolWindows{{2, 3}, {1, 2}, {1, 1}, {0, 2}}, count_padding},
          {random_tensor(dtype, {2, 4, 7, 3}, random)},
          {half ? 0.51 : 4, dtype == DType::f64 ? 1e-15 : 1e-6});
    }
    expect_conformance(device(),
                       Pool{PoolKind::mean, PoolWindows{{2}, {2}, {0}, {0}}, count_padding},
                       {random_tensor(DType::f32, {2, 7, 3}, random)}, {4, 1e-6});
    expect_conformance(device(),
                       Pool{PoolKind::mean, PoolWindows{{2, 2, 3}, {2, 1, 1}, {0, 1, 1}, {1, 1, 0}},
                            count_padding},
                       {random_tensor(DType::f32, {2, 4, 3, 5, 2}, random)}, {4, 1e-6});
  }
}

TEST_F(VulkanSpatial, ResizeOfEveryKindAndSize) {
  Random random(3);
  for (const bool align_corners : {false, true}) {
    for (const DType dtype : kPlain) {
      expect_conformance(device(), Resize{ResizeKind::nearest, {3, 9}, align_corners},
                         {random_tensor(dtype, {2, 5, 4, 3}, random)});
    }
    for (const DType dtype : kFloatLike) {
      const Tolerance tolerance{dtype == DType::f32 ? 8 : 0.52, 1e-6};
      for (const Dims& size : {Dims{3, 9}, Dims{1, 1}, Dims{5, 4}, Dims{11, 2}}) {
        expect_conformance(device(), Resize{ResizeKind::linear, size, align_corners},
                           {random_tensor(dtype, {2, 5, 4, 3}, random)}, tolerance);
      }
    }
    expect_conformance(device(), Resize{ResizeKind::linear, {2, 7, 3}, align_corners},
                       {random_tensor(DType::f32, {1, 3, 4, 5, 2}, random)}, {8, 1e-6});
  }
}

TEST_F(VulkanSpatial, RowsAlone) {
  Random random(4);
  const Tensor x = random_tensor(DType::f32, {4, 5, 6, 3}, random);
  expect_rows_alone(device(), Im2col{{2, 3}, Windows{{1, 1}, {1, 0}, {1, 2}, {1, 1}, {1, 1}}}, {x});
  expect_rows_alone(device(), Pool{PoolKind::mean, PoolWindows{{2, 3}, {1, 2}, {1, 1}, {0, 2}}},
                    {x});
  expect_rows_alone(device(), Resize{ResizeKind::linear, {3, 9}}, {x});
}

TEST_F(VulkanSpatial, RefusesWindowsThatReachTooFar) {
  Random random(5);
  const Tensor x = random_tensor(DType::f32, {1, 4, 1}, random);
  const auto reach = [&](std::int64_t dilation) {
    const Windows windows{{1}, {0}, {dilation}, {dilation}, {1}};
    return run_op(device(), Im2col{{2}, windows}, {x}).refused;
  };
  EXPECT_EQ(reach(1 << 20), "");
  EXPECT_THAT(reach(std::int64_t{1} << 29), testing::HasSubstr("536870912"));
}

TEST_F(VulkanSpatial, ConvolutionsWithoutGroupsAreProductsWhereColumnsHaveRoom) {
  const auto way = [&](std::int64_t groups, std::int64_t extent) {
    const OperandSpec inputs[] = {
        OperandSpec::contiguous({DType::f32, {1, extent, 64}}),
        OperandSpec::contiguous({DType::f32, {4, 9, 64 / groups}}),
    };
    return legalize(device(), Conv{Windows{{1}, {0}, {0}, {1}, {1}}, groups, false}, inputs).how;
  };
  EXPECT_EQ(way(1, 40), Legal::How::lowered);
  EXPECT_EQ(way(2, 40), Legal::How::direct);
  EXPECT_EQ(way(1, 1 << 20), Legal::How::direct);
}

TEST_F(VulkanChannelNorm, EveryDtypeAxisAndPart) {
  Random random(6);
  for (const DType dtype : kFloatLike) {
    for (const std::int64_t axis : {0, 1, 2}) {
      const Shape shape{3, 70, 5};
      const Tensor x = random_tensor(dtype, shape, random);
      const Tensor weight = random_tensor(dtype, {shape[static_cast<std::size_t>(axis)]}, random);
      const Tolerance tolerance = dtype == DType::f32 ? Tolerance{8, 3e-6} : Tolerance{0.53, 3e-6};
      expect_conformance(device(), ChannelNorm{axis, 1e-5f, true, true}, {x, weight, weight},
                         tolerance);
      expect_conformance(device(), ChannelNorm{axis, 1e-5f, false, false}, {x}, tolerance);
    }
  }
  const Tensor x = random_tensor(DType::f32, {5, 70, 3}, random);
  expect_rows_alone(device(), ChannelNorm{1, 1e-5f, false, false}, {x});
}

TEST_F(VulkanChannelNorm, GroupsOfEveryDtypeAndPart) {
  Random random(8);
  for (const DType dtype : kFloatLike) {
    const Tensor x = random_tensor(dtype, {3, 4, 5, 12}, random);
    const Tensor weight = random_tensor(dtype, {12}, random);
    const Tolerance tolerance = dtype == DType::f32 ? Tolerance{8, 3e-6} : Tolerance{0.53, 3e-6};
    for (const std::int64_t groups : {1, 3, 12}) {
      expect_conformance(device(), GroupNorm{groups, 1e-5f, true, true}, {x, weight, weight},
                         tolerance);
    }
    expect_conformance(device(), GroupNorm{2, 1e-5f, false, false}, {x}, tolerance);
    expect_rows_alone(device(), GroupNorm{2, 1e-5f, false, false}, {x});
  }
}

TEST_F(VulkanSelectiveScan, StatesStepsAndGroups) {
  Random random(7);
  for (const std::int64_t states : {1, 5, 16}) {
    for (const bool has_d : {false, true}) {
      const std::int64_t batch = 2, steps = 9, features = 6, groups = 3;
      const auto some = [&](const Shape& shape, double low, double high) {
        return random_tensor(DType::f32, shape, random, {low, high});
      };
      std::vector inputs{some({batch, steps, features}, -1, 1),
                         some({batch, steps, features}, 0, 1), some({features, states}, -1, 0),
                         some({batch, steps, groups, states}, -1, 1),
                         some({batch, steps, groups, states}, -1, 1)};
      if (has_d) inputs.push_back(some({features}, -1, 1));
      inputs.push_back(some({batch, features, states}, -1, 1));
      expect_conformance(device(), SelectiveScan{has_d}, inputs, {32, 1e-5});
    }
  }
}

}  // namespace
}  // namespace heddle::test
