// Convolution, im2col, pooling and resizing over one to three spatial axes.
#include <cmath>

#include "device/on_device.h"

namespace heddle::test {
namespace {

class Convolutions : public OnDevice {};
HEDDLE_ON_DEVICES(Convolutions);
class Pools : public OnDevice {};
HEDDLE_ON_DEVICES(Pools);
class Resizes : public OnDevice {};
HEDDLE_ON_DEVICES(Resizes);

Windows plain_windows(std::size_t axes) {
  const Dims ones(axes, 1), zeros(axes, 0);
  return {ones, zeros, zeros, ones, ones};
}

struct ConvCase {
  Windows windows;
  std::int64_t groups;
  bool flip;
  Shape x, w;
};

std::vector<ConvCase> conv_cases() {
  const Windows one = plain_windows(1), two = plain_windows(2), three = plain_windows(3);
  return {
      {one, 1, false, {2, 9, 4}, {6, 3, 4}},
      {one, 1, false, {2, 200, 33}, {70, 5, 33}},  // several tiles and groups
      {one, 1, false, {1, 1, 1}, {1, 1, 1}},
      {one, 2, false, {40, 9, 4}, {4, 3, 2}},  // more tiles than are computed at a time
      {{{3}, {2}, {5}, {2}, {1}}, 2, false, {2, 11, 6}, {4, 3, 3}},
      {{{1}, {-2}, {-1}, {1}, {1}}, 1, false, {2, 9, 4}, {5, 3, 4}},  // crops
      {{{1}, {1}, {1}, {1}, {3}}, 1, true, {2, 5, 4}, {5, 3, 4}},     // transposed
      {{{2}, {-4}, {3}, {2}, {3}}, 1, true, {2, 5, 4}, {5, 3, 4}},
      {two, 1, false, {2, 6, 7, 3}, {5, 2, 3, 3}},
      {two, 1, false, {3, 4, 5, 40}, {20, 1, 1, 40}},  // pointwise
      {{{2, 1}, {1, 0}, {1, 2}, {1, 2}, {1, 1}}, 2, false, {2, 7, 6, 4}, {6, 3, 2, 2}},
      {{{1, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
       5,
       false,
       {2, 6, 7, 5},
       {5, 3, 3, 1}},  // depthwise
      {{{1, 2}, {1, 1}, {1, 1}, {1, 1}, {2, 1}}, 5, true, {2, 6, 7, 5}, {5, 3, 3, 1}},
      {{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, 5, false, {2, 6, 7, 5}, {10, 3, 3, 1}},
      {two, 1, true, {1, 5, 5, 3}, {4, 2, 2, 3}},
      {three, 1, false, {2, 3, 4, 5, 2}, {3, 2, 2, 2, 2}},
      {{{1, 2, 1}, {1, 0, 1}, {0, 1, 1}, {1, 1, 2}, {1, 2, 1}},
       2,
       true,
       {2, 3, 4, 5, 4},
       {6, 2, 2, 2, 2}},
      {two, 1, false, {0, 6, 7, 3}, {5, 2, 3, 3}},
      {two, 1, false, {2, 6, 7, 0}, {5, 2, 3, 0}},
      {two, 1, false, {2, 6, 7, 3}, {0, 2, 3, 3}},
  };
}

Tolerance conv_tolerance(DType dtype, const Shape& w) {
  double depth = 1;
  for (std::size_t i = 1; i < w.size(); ++i) depth *= static_cast<double>(w[i]);
  const double epsilon = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  return {dtype == DType::f32 || dtype == DType::f64 ? 1 : 0.6, epsilon * 4 * (depth + 4)};
}

TEST_P(Convolutions, EveryDtypeAndGeometry) {
  at_every_level_on_device([] {
    Random random(1);
    for (const ConvCase& c : conv_cases()) {
      for (const DType dtype : kFloats) {
        expect_on_device(Conv{c.windows, c.groups, c.flip},
                         {random_tensor(dtype, c.x, random), random_tensor(dtype, c.w, random)},
                         conv_tolerance(dtype, c.w));
      }
    }
  });
}

TEST_P(Convolutions, RowsAlone) {
  at_every_level_on_device([] {
    Random random(2);
    for (const ConvCase& c : conv_cases()) {
      if (c.x[0] < 2 || elements(c.x) == 0 || c.w[0] == 0) continue;
      for (const DType dtype : kFloatLike) {
        expect_rows_alone_on_device(
            Conv{c.windows, c.groups, c.flip},
            {random_tensor(dtype, c.x, random), random_tensor(dtype, c.w, random)});
      }
    }
  });
}

TEST_P(Convolutions, NanAndInfinitySpreadOnlyWhereTheyAreRead) {
  // Padding is no operand: zeros are never multiplied with infinite weights.
  for (const DType dtype : kFloats) {
    expect_on_device(
        Conv{Windows{{1}, {1}, {1}, {1}, {1}}},
        {tensor_of(dtype, {1, 3, 1}, {1, NAN, 2}), tensor_of(dtype, {2, 2, 1}, {1, 2, 3, 4})});
  }
}

TEST_P(Convolutions, Im2colOfEveryDtypeAndGeometry) {
  Random random(3);
  for (const DType dtype : kPlain) {
    for (const ConvCase& c : conv_cases()) {
      if (c.w[0] == 0) continue;
      const Dims window(std::span(c.w.begin() + 1, c.w.size() - 2));
      expect_on_device(Im2col{window, c.windows}, {random_tensor(dtype, c.x, random)});
    }
  }
  expect_rows_alone_on_device(Im2col{{2, 3}, plain_windows(2)},
                              {random_tensor(DType::f16, {3, 4, 5, 2}, random)});
}

// ---- Pool

struct PoolCase {
  Dims window, stride, low, high;
  Shape x;
};

std::vector<PoolCase> pool_cases() {
  return {
      {{2}, {2}, {0}, {0}, {2, 9, 3}},
      {{3}, {1}, {1}, {1}, {2, 5, 3}},
      {{1}, {1}, {0}, {0}, {1, 1, 1}},
      {{2, 3}, {2, 3}, {0, 2}, {1, 0}, {2, 5, 7, 3}},
      {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {2, 8, 8, 530}},
      {{2, 2, 2}, {1, 2, 1}, {1, 0, 1}, {0, 1, 1}, {2, 3, 4, 3, 5}},
      {{2}, {2}, {0}, {0}, {0, 9, 3}},
      {{2}, {2}, {0}, {0}, {2, 9, 0}},
  };
}

TEST_P(Pools, EveryKindDtypeAndGeometry) {
  Random random(4);
  for (const PoolCase& c : pool_cases()) {
    for (const DType dtype : kPlain) {
      if (is_floating(dtype) || is_integer(dtype)) {
        expect_on_device(Pool{PoolKind::max, PoolWindows{c.window, c.stride, c.low, c.high}},
                         {random_tensor(dtype, c.x, random, {-9, 9, true})});
      }
      if (!is_floating(dtype)) continue;
      for (const bool count_padding : {false, true}) {
        const double epsilon = dtype == DType::f64 ? 0x1p-50 : 0x1p-21;
        const Tolerance tolerance{dtype == DType::f32 || dtype == DType::f64 ? 2 : 0.51, epsilon};
        expect_on_device(
            Pool{PoolKind::mean, PoolWindows{c.window, c.stride, c.low, c.high}, count_padding},
            {random_tensor(dtype, c.x, random)}, tolerance);
      }
    }
  }
}

TEST_P(Pools, RowsAlone) {
  Random random(5);
  for (const PoolKind kind : {PoolKind::max, PoolKind::mean}) {
    expect_rows_alone_on_device(Pool{kind, PoolWindows{{2, 3}, {2, 3}, {0, 2}, {1, 0}}},
                                {random_tensor(DType::f16, {4, 5, 7, 3}, random)});
  }
}

// ---- Resize

TEST_P(Resizes, EveryDtypeKindAndSize) {
  Random random(6);
  const std::pair<Shape, Dims> cases[] = {
      {{2, 5, 3}, {5}},       {{2, 5, 3}, {10}},
      {{2, 5, 3}, {3}},       {{2, 5, 3}, {1}},
      {{2, 1, 3}, {4}},       {{2, 7, 3}, {23}},
      {{2, 23, 3}, {7}},      {{2, 3, 5, 530}, {4, 2}},
      {{1, 4, 4, 2}, {8, 8}}, {{2, 2, 3, 4, 2}, {3, 2, 7}},
      {{0, 5, 3}, {4}},       {{2, 5, 0}, {4}},
  };
  for (const auto& [shape, size] : cases) {
    for (const bool align_corners : {false, true}) {
      for (const DType dtype : kPlain) {
        expect_on_device(Resize{ResizeKind::nearest, size, align_corners},
                         {random_tensor(dtype, shape, random)});
        if (!is_floating(dtype)) continue;
        const double epsilon = dtype == DType::f64 ? 0x1p-50 : 0x1p-21;
        const Tolerance tolerance{dtype == DType::f32 || dtype == DType::f64 ? 2 : 0.51, epsilon};
        expect_on_device(Resize{ResizeKind::linear, size, align_corners},
                         {random_tensor(dtype, shape, random)}, tolerance);
      }
    }
  }
}

TEST_P(Resizes, PlacesByHand) {
  const auto resized = [](Resize op, std::vector<double> x) {
    const Tensor in = tensor_of(DType::f32, {1, static_cast<std::int64_t>(x.size()), 1}, x);
    const Ran ran = run_op(device(), op, {in});
    return decode(ran.outputs.at(0).operand, ran.outputs.at(0).bytes.data()).real;
  };
  using Row = std::vector<Number>;
  EXPECT_EQ(resized({ResizeKind::nearest, {4}}, {1, 2}), (Row{1, 1, 2, 2}));
  EXPECT_EQ(resized({ResizeKind::nearest, {2}}, {1, 2, 3, 4}), (Row{2, 4}));
  EXPECT_EQ(resized({ResizeKind::linear, {4}}, {1, 2}), (Row{1, 1.25, 1.75, 2}));
  EXPECT_EQ(resized({ResizeKind::linear, {2}}, {1, 2, 3, 4}), (Row{1.5, 3.5}));
  EXPECT_EQ(resized({ResizeKind::linear, {5}, true}, {1, 2, 3}), (Row{1, 1.5, 2, 2.5, 3}));
  EXPECT_EQ(resized({ResizeKind::nearest, {4}, true}, {1, 2}), (Row{1, 1, 2, 2}));
  EXPECT_EQ(resized({ResizeKind::linear, {1}, true}, {7, 2, 3}), (Row{7}));
}

TEST_P(Resizes, RowsAlone) {
  Random random(7);
  expect_rows_alone_on_device(Resize{ResizeKind::linear, {4, 2}},
                              {random_tensor(DType::f16, {4, 3, 5, 3}, random)});
}

}  // namespace
}  // namespace heddle::test
