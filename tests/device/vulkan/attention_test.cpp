// attention on Vulkan: masks, heads, orders of axes, and long sequences.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "device/vulkan/vulkan_device.h"
#include "support/conformance.h"

namespace heddle::test {
namespace {

class VulkanAttention : public Vulkan {};
using Mask = Attention::Mask;

struct Sizes {
  std::int64_t batch = 2, heads = 4, kv_heads = 2, queries = 5, positions = 37;
  std::int64_t features = 20, value_features = 20;
};

Shape shape_of(const Attention& op, std::int64_t batch, std::int64_t heads, std::int64_t rows,
               std::int64_t features) {
  return op.sequence_first ? Shape{batch, rows, heads, features}
                           : Shape{batch, heads, rows, features};
}

std::vector<Tensor> inputs_of(const Attention& op, const Sizes& s, DType dtype, Random& random) {
  const auto some = [&](std::int64_t heads, std::int64_t rows, std::int64_t features) {
    return random_tensor(dtype, shape_of(op, s.batch, heads, rows, features), random, {-1, 1});
  };
  return {some(s.heads, s.queries, s.features), some(s.kv_heads, s.positions, s.features),
          some(s.kv_heads, s.positions, s.value_features)};
}

Tolerance tolerance_for(DType dtype) {
  return dtype == DType::f32 ? Tolerance{16, 4e-6} : Tolerance{0.6, 4e-6};
}

void check(Device& device, const Attention& op, const Sizes& sizes, DType dtype, Random& random) {
  auto inputs = inputs_of(op, sizes, dtype, random);
  if (op.mask == Mask::none || op.mask == Mask::causal) {
    return expect_conformance(device, op, inputs, tolerance_for(dtype));
  }
  const std::int64_t b = sizes.batch, h = sizes.heads, q = sizes.queries, p = sizes.positions;
  for (const Shape& shape : {Shape{b, h, q, p}, Shape{q, p}, Shape{b, 1, 1, p}, Shape{1}}) {
    const DType type = op.mask == Mask::boolean ? DType::bool_ : dtype;
    inputs.push_back(random_tensor(type, shape, random));
    expect_conformance(device, op, inputs, tolerance_for(dtype));
    inputs.pop_back();
  }
}

TEST_F(VulkanAttention, MasksAndOrdersOfAxes) {
  Random random(1);
  for (const Mask mask : {Mask::none, Mask::causal, Mask::boolean, Mask::additive}) {
    for (const bool sequence_first : {false, true}) {
      const Attention op{.mask = mask, .scale = 0.3f, .sequence_first = sequence_first};
      check(device(), op, {}, DType::f32, random);
    }
  }
}

TEST_F(VulkanAttention, DtypesAndHeads) {
  Random random(2);
  const Attention op{.mask = Mask::causal, .scale = 0.2f};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    check(device(), op, {.features = 16, .value_features = 24}, dtype, random);
    check(device(), op, {.heads = 3, .kv_heads = 1, .features = 17, .value_features = 5}, dtype,
          random);
  }
  check(device(), op, {.heads = 2, .features = 128, .value_features = 256}, DType::f32, random);
}

TEST_F(VulkanAttention, QueriesBeforeTheFirstPosition) {
  Random random(3);
  const Attention op{.mask = Mask::causal, .scale = 0.3f};
  check(device(), op, {.queries = 9, .positions = 4}, DType::f32, random);
  check(device(), op, {.queries = 3, .positions = 0}, DType::f32, random);
  check(device(), op, {.queries = 0}, DType::f32, random);
  check(device(), op, {.batch = 0}, DType::f32, random);
}

TEST_F(VulkanAttention, LongSequencesAndWindows) {
  Random random(4);
  const Sizes sizes{.batch = 1, .queries = 11, .positions = 600};
  check(device(), {.scale = 0.3f}, sizes, DType::f32, random);
  for (const std::int64_t window : {0, 1, 40, 300, 1000}) {
    check(device(), {.mask = Mask::causal, .scale = 0.3f, .window = window}, sizes, DType::f32,
          random);
  }
}

TEST_F(VulkanAttention, FullyMaskedRowsAreZeros) {
  Random random(5);
  const Attention op{.mask = Mask::boolean, .scale = 0.3f};
  const Sizes sizes{.batch = 1, .positions = 300};
  auto inputs = inputs_of(op, sizes, DType::f32, random);
  inputs.push_back(random_tensor(DType::bool_, {sizes.queries, sizes.positions}, random));
  const auto row = static_cast<std::size_t>(sizes.positions);
  std::memset(inputs[3].bytes.data() + row, 0, row);
  expect_conformance(device(), op, inputs, tolerance_for(DType::f32));
  const Ran ran = run_op(device(), op, inputs);
  const auto features = static_cast<std::size_t>(sizes.value_features);
  const Values values = decode(ran.outputs[0].operand, ran.outputs[0].bytes.data());
  for (std::size_t i = features; i < 2 * features; ++i) EXPECT_EQ(values.real[i], 0);
}

// Heads that were split off a wider row, as projections give them.
TEST_F(VulkanAttention, StridedOperands) {
  Random random(6);
  const Attention op{.mask = Mask::causal, .scale = 0.3f};
  const Sizes s{};
  for (const std::int64_t gap : {0, 3}) {
    std::vector<Tensor> inputs;
    for (const auto& [heads, rows] :
         {std::pair{s.heads, s.queries}, {s.kv_heads, s.positions}, {s.kv_heads, s.positions}}) {
      const std::int64_t row = heads * s.features + gap;
      inputs.push_back(random_tensor({{DType::f32, {s.batch, heads, rows, s.features}},
                                      {LayoutKind::strided, {rows * row, s.features, row, 1}}},
                                     random));
    }
    expect_conformance(device(), op, inputs, tolerance_for(DType::f32));
  }
}

TEST_F(VulkanAttention, RowsAreTheSameAloneAndInCompany) {
  Random random(7);
  const Sizes sizes{.batch = 1, .queries = 40, .positions = 700};
  const Attention op{.mask = Mask::causal, .scale = 0.3f, .sequence_first = true};
  const auto inputs = inputs_of(op, sizes, DType::f32, random);
  const Ran all = run_op(device(), op, inputs);
  const std::size_t query = static_cast<std::size_t>(sizes.heads * sizes.features) * 4;
  const std::size_t position = static_cast<std::size_t>(sizes.kv_heads * sizes.features) * 4;
  for (const std::int64_t last : {0, 1, 17, 39}) {  // the query alone, over what it sees
    Sizes alone = sizes;
    alone.queries = 1;
    alone.positions = sizes.positions - sizes.queries + last + 1;
    auto part = inputs_of(op, alone, DType::f32, random);
    const auto from = inputs[0].bytes.begin() + static_cast<std::ptrdiff_t>(last * query);
    part[0].bytes.assign(from, from + static_cast<std::ptrdiff_t>(query));
    for (const std::size_t i : {1, 2}) {
      const auto bytes = static_cast<std::ptrdiff_t>(position) * alone.positions;
      part[i].bytes.assign(inputs[i].bytes.begin(), inputs[i].bytes.begin() + bytes);
    }
    const Ran one = run_op(device(), op, part);
    EXPECT_EQ(
        std::memcmp(one.outputs[0].bytes.data(),
                    all.outputs[0].bytes.data() + static_cast<std::size_t>(last) * query, query),
        0)
        << "query " << last;
  }
}

TEST_F(VulkanAttention, RefusesWhatItCannotRead) {
  Random random(8);
  const Attention op{.scale = 0.3f};
  const auto refusal = [&](const std::vector<Tensor>& inputs) {
    return run_op(device(), op, inputs).refused;
  };
  EXPECT_THAT(refusal(inputs_of(op, {}, DType::f64, random)), testing::HasSubstr("f64"));
  EXPECT_THAT(refusal(inputs_of(op, {.value_features = 4100}, DType::f32, random)),
              testing::HasSubstr("4100 features"));
  auto inputs = inputs_of(op, {}, DType::f32, random);
  inputs[1] = random_tensor(
      arranged(DType::f32, inputs[1].operand.spec.shape, Arrangement::transposed), random);
  EXPECT_THAT(refusal(inputs), testing::HasSubstr("adjacent"));
}

}  // namespace
}  // namespace heddle::test
