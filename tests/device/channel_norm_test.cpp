// channel_norm and group_norm.
#include "device/on_device.h"

namespace heddle::test {
namespace {

class ChannelNorms : public OnDevice {};
HEDDLE_ON_DEVICES(ChannelNorms);

std::vector<Tensor> norm_inputs(const Tensor& x, std::int64_t channels, bool weight, bool bias,
                                DType dtype, Random& random) {
  std::vector<Tensor> inputs{x};
  if (weight) inputs.push_back(random_tensor(dtype, {channels}, random));
  if (bias) inputs.push_back(random_tensor(dtype, {channels}, random));
  return inputs;
}

TEST_P(ChannelNorms, OfLinesEveryDtypeAxisAndPart) {
  Random random(16);
  for (const DType dtype : kFloatLike) {
    const Tolerance tolerance{dtype == DType::f32 ? 4 : 0.51, 1e-5};
    for (const DType parameters : {dtype, DType::f32}) {
      for (const bool weight : {false, true}) {
        for (const bool bias : {false, true}) {
          for (const std::int64_t axis : {0, 1, 2}) {
            const Tensor x = random_tensor(dtype, {3, axis == 1 ? 600 : 6, 70}, random);
            const std::int64_t channels = x.operand.spec.shape[static_cast<std::size_t>(axis)];
            expect_on_device(ChannelNorm{axis, 1e-5f, weight, bias},
                             norm_inputs(x, channels, weight, bias, parameters, random), tolerance);
          }
        }
      }
    }
    for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{1, 1}, Shape{5, 1300}}) {
      expect_on_device(ChannelNorm{0, 1e-5f, false, false}, {random_tensor(dtype, shape, random)},
                       tolerance);
    }
  }
}

TEST_P(ChannelNorms, OfGroupsEveryDtypeGroupAndPart) {
  at_every_level_on_device([] {
    Random random(17);
    for (const DType dtype : kFloatLike) {
      const Tolerance tolerance{dtype == DType::f32 ? 4 : 0.51, 1e-5};
      for (const Shape& shape : {Shape{2, 3, 5, 12}, Shape{3, 12}, Shape{2, 7, 1200}}) {
        for (const std::int64_t groups : {1, 3, 12}) {
          for (const bool weight : {false, true}) {
            const Tensor x = random_tensor(dtype, shape, random);
            expect_on_device(GroupNorm{groups, 1e-5f, weight, true},
                             norm_inputs(x, shape.back(), weight, true, dtype, random), tolerance);
          }
        }
      }
      for (const Shape& shape : {Shape{0, 3, 4}, Shape{3, 0, 4}, Shape{3, 2, 0}}) {
        expect_on_device(GroupNorm{2, 1e-5f, false, false}, {random_tensor(dtype, shape, random)});
      }
    }
  });
}

TEST_P(ChannelNorms, RowsAlone) {
  Random random(18);
  for (const DType dtype : kFloatLike) {
    const Tensor x = random_tensor(dtype, {5, 6, 70}, random);
    expect_rows_alone_on_device(ChannelNorm{1}, norm_inputs(x, 6, true, true, dtype, random));
    expect_rows_alone_on_device(GroupNorm{7}, norm_inputs(x, 70, true, true, dtype, random));
  }
}

}  // namespace
}  // namespace heddle::test
