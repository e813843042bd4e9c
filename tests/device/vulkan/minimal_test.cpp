// Normalisations, reductions, attention and ops along an axis on a device without optional
// features: no 8 or 16-bit storage, no f64, no subgroup operations.
#include <gmock/gmock.h>

#include <cmath>

#include "device/vulkan/vulkan_device.h"
#include "support/conformance.h"

namespace heddle::test {
namespace {

class VulkanMinimal : public Vulkan {
 protected:
  void SetUp() override {
    Vulkan::SetUp();
    if (!IsSkipped()) minimal_ = own_vulkan_device({.minimal = true});
  }
  Device& minimal() { return *minimal_; }

 private:
  std::unique_ptr<Device> minimal_;
};

TEST_F(VulkanMinimal, NormsAndReductions) {
  Random random(1);
  const Tensor x = random_tensor(DType::f32, {3, 700}, random);
  const Tensor weight = random_tensor(DType::f32, {700}, random);
  expect_conformance(minimal(), RmsNorm{1e-5f, true, false}, {x, weight}, {8, 2e-6});
  expect_conformance(minimal(), LayerNorm{1e-5f, true, false}, {x, weight}, {8, 2e-6});
  expect_conformance(minimal(), Softmax{}, {x}, {20, 1e-37});
  expect_conformance(minimal(), Reduce{ReduceKind::sum, {1}}, {x}, {4, 1e-4});
  expect_conformance(minimal(), Reduce{ReduceKind::sum, {0}},
                     {random_tensor(DType::i8, {40, 9}, random, {-90, 90})});
  expect_conformance(minimal(), Reduce{ReduceKind::max, {1}},
                     {random_tensor(DType::i64, {3, 70}, random, {-90, 90})});
  for (const DType dtype : {DType::f16, DType::f64}) {
    EXPECT_NE(run_op(minimal(), Softmax{}, {random_tensor(dtype, {2, 3}, random)}).refused, "");
    EXPECT_NE(
        run_op(minimal(), Reduce{ReduceKind::max, {1}}, {random_tensor(dtype, {2, 3}, random)})
            .refused,
        "");
  }
}

TEST_F(VulkanMinimal, AttentionOverStatesOfEveryType) {
  Random random(2);
  const std::int64_t rows = 320, block = 32, features = 32;
  for (const auto& [dtype, tokens] : {std::pair{DType::f32, std::int64_t{2}},
                                      {DType::f16, std::int64_t{40}},
                                      {DType::q8_0, std::int64_t{2}}}) {
    std::vector<double> position, table;
    for (std::int64_t i = 0; i < tokens; ++i) position.push_back(static_cast<double>(280 - i));
    for (std::int64_t i = 0; i < rows / block; ++i) table.push_back(static_cast<double>(9 - i));
    const std::vector<double> sequence(position.size(), 0);
    expect_conformance(
        minimal(), Attend{.scale = 0.2f, .block_size = block},
        {random_tensor(DType::f32, {tokens, 4, features}, random),
         random_tensor(dtype, {rows, 2, features}, random, {-1, 1}),
         random_tensor(dtype, {rows, 2, features}, random, {-1, 1}),
         tensor_of(DType::i32, {1, rows / block}, table), tensor_of(DType::i32, {tokens}, sequence),
         tensor_of(DType::i32, {tokens}, position), tensor_of(DType::i32, {1}, {300})},
        {16, 4e-6});
  }
  const Tensor q = random_tensor(DType::f32, {1, 4, 5, 20}, random, {-1, 1});
  const Tensor k = random_tensor(DType::f32, {1, 2, 40, 20}, random, {-1, 1});
  const Tensor mask = random_tensor(DType::bool_, {5, 40}, random);
  expect_conformance(minimal(), Attention{.mask = Attention::Mask::boolean, .scale = 0.3f},
                     {q, k, k, mask}, {16, 4e-6});
}

TEST_F(VulkanMinimal, OpsAlongAnAxis) {
  Random random(3);
  const Tensor x = random_tensor(DType::f32, {3, 200, 2}, random, {0.5, 1.5});
  expect_conformance(minimal(), Scan{ScanKind::sum, 1}, {x}, {64, 1e-4});
  expect_conformance(minimal(), Scan{ScanKind::logaddexp, 1}, {x}, {64, 1e-5});
  expect_conformance(minimal(), ArgReduce{ArgReduceKind::max, 1},
                     {random_tensor(DType::bf16, {3, 200, 2}, random, {-3, 3, true})});
  expect_conformance(minimal(), TopK{4}, {random_tensor(DType::f32, {3, 70}, random)});
  expect_conformance(minimal(), ChannelNorm{1, 1e-5f, false, false}, {x}, {8, 3e-6});
  expect_conformance(minimal(), Pad{Pad::Mode::edge, {1, 0, 2}, {0, 3, 1}}, {x});
  EXPECT_NE(run_op(minimal(), TopK{1}, {random_tensor(DType::f16, {2, 3}, random)}).refused, "");
}

TEST_F(VulkanMinimal, LittleSharedMemoryTakesFewerRowsOrNone) {
  const auto small = own_vulkan_device({.shared_bytes = 10'000});
  Random random(4);
  const auto reason = [&](std::int64_t features) {
    const Tensor q = random_tensor(DType::f32, {1, 4, 9, features}, random, {-1, 1});
    const Tensor k = random_tensor(DType::f32, {1, 1, 12, features}, random, {-1, 1});
    const Attention op{.scale = 0.1f};
    const Ran ran = run_op(*small, op, {q, k, k});
    if (ran.refused.empty()) expect_conformance(*small, op, {q, k, k}, {16, 4e-6});
    return ran.refused;
  };
  EXPECT_EQ(reason(64), "");
  EXPECT_EQ(reason(400), "");
  EXPECT_THAT(reason(640), testing::HasSubstr("shared memory, there are 10000"));
}

}  // namespace
}  // namespace heddle::test
