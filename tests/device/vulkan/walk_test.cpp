// What element-wise, copying, casting and row kernels take, up to each limit and just past it; and
// that they hold where workgroups are few and small.
#include "device/vulkan/vulkan_device.h"
#include "support/conformance.h"

namespace heddle::test {
namespace {

/// Strides of the shape with its axes in reverse order, which do not merge.
OperandSpec reversed_axes(DType dtype, const Shape& shape) {
  return arranged(dtype, shape, Arrangement::transposed);
}

class VulkanWalk : public Vulkan {
 protected:
  static std::string refusal(Device& device, const Op& op, const std::vector<OperandSpec>& inputs) {
    std::vector<TensorSpec> specs;
    for (const OperandSpec& input : inputs) specs.push_back(input.spec);
    return device.prepare(op, inputs, output_operands(op, infer(op, specs))).reason;
  }
  static void expect_refused(Device& device, const Op& op, const std::vector<OperandSpec>& inputs,
                             const std::string& words) {
    const std::string reason = refusal(device, op, inputs);
    EXPECT_NE(reason.find(words), std::string::npos) << to_string(op) << ": " << reason;
  }
};

TEST_F(VulkanWalk, AxesThatDoNotMerge) {
  const auto pair = [](const Shape& shape) {
    return std::vector{OperandSpec::contiguous({DType::f32, shape}),
                       reversed_axes(DType::f32, shape)};
  };
  const auto three = [&](const Shape& shape) {
    std::vector<OperandSpec> operands = pair(shape);
    operands.insert(operands.begin(), reversed_axes(DType::bool_, shape));
    return operands;
  };
  EXPECT_EQ(refusal(device(), Binary{BinaryKind::add}, pair({2, 3, 2, 3, 2})), "");
  expect_refused(device(), Binary{BinaryKind::add}, pair({2, 3, 2, 3, 2, 3}), "room for 14");
  EXPECT_EQ(refusal(device(), Select{}, three({2, 3, 2})), "");
  expect_refused(device(), Select{}, three({2, 3, 2, 3}), "room for 11");
  const Shape eight{2, 3, 2, 3, 2, 3, 2, 3};
  EXPECT_EQ(refusal(device(), Contiguous{}, {reversed_axes(DType::f32, eight)}), "");
  EXPECT_EQ(refusal(device(), Unary{UnaryKind::abs}, {reversed_axes(DType::f32, eight)}), "");
  EXPECT_EQ(refusal(device(), Cast{DType::i32}, {reversed_axes(DType::f32, eight)}), "");
}

TEST_F(VulkanWalk, EightAxes) {
  Random random(1);
  const OperandSpec x = reversed_axes(DType::f32, {2, 3, 2, 1, 3, 2, 2, 3});
  expect_conformance(device(), Contiguous{}, {random_tensor(x, random)});
  expect_conformance(device(), Unary{UnaryKind::negative}, {random_tensor(x, random)});
  expect_conformance(device(), Cast{DType::f16}, {random_tensor(x, random)});
}

TEST_F(VulkanWalk, StridesAndCounts) {
  constexpr std::int64_t kMostStride = 0x7fff'ffff;
  const auto apart = [](std::int64_t stride) {
    return std::vector{OperandSpec{{DType::f32, {2}}, {LayoutKind::strided, {stride}}}};
  };
  const Unary op{UnaryKind::abs};
  EXPECT_EQ(refusal(device(), op, apart(kMostStride)), "");
  EXPECT_EQ(refusal(device(), op, apart(-kMostStride)), "");
  expect_refused(device(), op, apart(kMostStride + 1), "2147483648");
  expect_refused(device(), op, apart(-kMostStride - 1), "-2147483648");
  // Elements that 32 bits number, where they lie along two axes.
  const auto columns = [](std::int64_t rows, std::int64_t count) {
    return std::vector{OperandSpec{{DType::f32, {rows, count}}, {LayoutKind::strided, {1, rows}}}};
  };
  EXPECT_EQ(refusal(device(), op, columns(65535, 65537)), "");
  expect_refused(device(), op, columns(65536, 65536), "4294967296 elements");
}

TEST_F(VulkanWalk, Arange) {
  const std::int64_t most = 0xffff'0000;
  EXPECT_EQ(refusal(device(), Arange{0, 1, most, DType::i32}, {}), "");
  expect_refused(device(), Arange{0, 1, most + 1, DType::i32}, {}, "4294901761");
  expect_refused(device(), Arange{0, 1e10, 1'000'000'000, DType::i64}, {}, "9.2e18");
  // Numbers written down, as they are.
  for (const double value : {-0.0, 0.1, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    expect_conformance(device(), Arange{value, 0, 5, DType::f32}, {}, {1, 0});
  }
}

TEST_F(VulkanWalk, RowsOfTables) {
  const auto gather = [](std::int64_t rows, const Dims& strides) {
    return std::vector{OperandSpec{{DType::f32, {rows, 4}}, {LayoutKind::strided, strides}},
                       OperandSpec::contiguous({DType::i32, {3}})};
  };
  EXPECT_EQ(refusal(device(), GatherRows{}, gather(3, {0x7fff'ffff, 1})), "");
  expect_refused(device(), GatherRows{}, gather(3, {0x8000'0000, 1}), "2147483648");
  std::vector<OperandSpec> strided_ids = gather(3, {4, 1});
  strided_ids[1].layout.strides = {2};
  expect_refused(device(), GatherRows{}, strided_ids, "contiguous");
}

// ---- Devices that can do less

TEST_F(VulkanWalk, BlocksNeedSharedMemory) {
  const std::vector inputs{OperandSpec::contiguous({DType::q8_0, {4, 64}}),
                           OperandSpec::contiguous({DType::f32, {2, 64}}),
                           OperandSpec::contiguous({DType::i32, {2}})};
  const auto enough = own_vulkan_device({.shared_bytes = 16'384});
  EXPECT_EQ(refusal(*enough, WriteRows{}, inputs), "");
  const auto little = own_vulkan_device({.shared_bytes = 4'095});
  expect_refused(*little, WriteRows{}, inputs, "the device has 4095");
}

TEST_F(VulkanWalk, MinimalDevicesSayWhatTheyLack) {
  const auto minimal = own_vulkan_device({.minimal = true});
  const std::vector halves{OperandSpec::contiguous({DType::f16, {3}})};
  const std::vector floats{OperandSpec::contiguous({DType::f32, {3}})};
  const std::vector doubles{OperandSpec::contiguous({DType::f64, {3}})};
  expect_refused(*minimal, Unary{UnaryKind::exp}, halves, "no items of 8 and 16 bits");
  expect_refused(*minimal, Unary{UnaryKind::isnan}, floats, "no items of 8 and 16 bits");
  expect_refused(*minimal, Unary{UnaryKind::exp}, doubles, "f64");
  expect_refused(*minimal, Cast{DType::f32}, doubles, "64-bit floats");
  EXPECT_EQ(refusal(*minimal, Cast{DType::f32}, halves), "");
}

TEST_F(VulkanWalk, FewSmallWorkgroups) {
  const auto small = own_vulkan_device({.max_groups = 24, .max_group_size = 32});
  Random random(2);
  const Shape shape{301, 217};
  const Tensor x = random_tensor(DType::f32, shape, random);
  const Tensor turned = random_tensor(reversed_axes(DType::f32, shape), random);
  expect_conformance(*small, Binary{BinaryKind::subtract}, {x, turned});
  expect_conformance(*small, Contiguous{}, {turned});
  expect_conformance(*small, Cast{DType::i32}, {x});
  expect_conformance(*small, GatherRows{}, {x, tensor_of(DType::i32, {4}, {300, 0, 7, 7})});
  expect_rows_alone(*small, Unary{UnaryKind::abs}, {random_tensor(DType::f32, {5, 700}, random)});
}

}  // namespace
}  // namespace heddle::test
