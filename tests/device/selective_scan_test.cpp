// selective_scan.
#include <cstring>

#include "device/on_device.h"

namespace heddle::test {
namespace {

class StateSpaces : public OnDevice {};
HEDDLE_ON_DEVICES(StateSpaces);

std::vector<Tensor> state_space(std::int64_t batch, std::int64_t length, std::int64_t features,
                                std::int64_t groups, std::int64_t width, bool has_d,
                                Random& random) {
  const auto f32 = [&](const Shape& shape, Fill fill = {}) {
    return random_tensor(DType::f32, shape, random, fill);
  };
  std::vector<Tensor> inputs{
      f32({batch, length, features}), f32({batch, length, features}, {0.001, 0.5}),
      f32({features, width}, {-2, -0.1}), f32({batch, length, groups, width}),
      f32({batch, length, groups, width})};
  if (has_d) inputs.push_back(f32({features}));
  inputs.push_back(f32({batch, features, width}));
  return inputs;
}

TEST_P(StateSpaces, EveryShape) {
  at_every_level_on_device([] {
    Random random(5);
    const std::int64_t shapes[][5] = {{2, 7, 6, 1, 4},   {1, 1, 1, 1, 1}, {2, 20, 48, 3, 16},
                                      {1, 5, 35, 1, 70}, {2, 0, 6, 2, 4}, {0, 3, 6, 2, 4},
                                      {2, 3, 0, 1, 4},   {2, 3, 6, 1, 0}, {3, 4, 40, 2, 33}};
    for (const auto& [batch, length, features, groups, width] : shapes) {
      for (const bool has_d : {false, true}) {
        expect_on_device(SelectiveScan{has_d},
                         state_space(batch, length, features, groups, width, has_d, random),
                         {16, 1e-4});
      }
    }
  });
}

TEST_P(StateSpaces, RowsAloneAndInPieces) {
  Random random(6);
  const std::vector<Tensor> whole = state_space(4, 6, 20, 2, 5, true, random);
  expect_rows_alone_on_device(SelectiveScan{}, whole);
  // Step by step with the state carried on: the same bits.
  const std::vector<Tensor> one = state_space(1, 6, 20, 2, 5, true, random);
  const Ran all = run_op(device(), SelectiveScan{}, one);
  std::vector<Tensor> step = one;
  for (std::size_t t = 0; t < 6; ++t) {
    for (const std::size_t i : {0, 1, 3, 4}) {
      step[i] = one[i];
      step[i].operand.spec.shape[1] = 1;
      step[i].operand.layout = Layout::contiguous(step[i].operand.spec.shape);
      const std::size_t bytes = one[i].bytes.size() / 6;
      const auto from = one[i].bytes.begin() + static_cast<std::ptrdiff_t>(t * bytes);
      step[i].bytes.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
    }
    const Ran ran = run_op(device(), SelectiveScan{}, step);
    step.back() = ran.outputs[1];
    const std::size_t bytes = ran.outputs[0].bytes.size();
    EXPECT_EQ(std::memcmp(ran.outputs[0].bytes.data(), &all.outputs[0].bytes[t * bytes], bytes), 0);
  }
  EXPECT_TRUE(step.back().bytes == all.outputs[1].bytes);
}

}  // namespace
}  // namespace heddle::test
