// Quantised groups, products that choose their matrices, floats of eight bits.
#include <cmath>

#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

std::vector<GroupFormat> formats() {
  std::vector<GroupFormat> all;
  for (const std::int64_t bits : {2, 3, 4, 5, 6, 8}) {
    for (const std::int64_t size : {32, 64, 128}) all.push_back({QuantMode::affine, size, bits});
  }
  all.push_back({QuantMode::mxfp4, 32, 4});
  all.push_back({QuantMode::mxfp8, 32, 8});
  all.push_back({QuantMode::nvfp4, 16, 4});
  return all;
}

bool is_affine(const GroupFormat& format) {
  return format.mode == QuantMode::affine;
}

/// Codes, scales and perhaps biases of matrices [..., rows, width]: any bits, and scales that make
/// values of no more than about 6, or 25 of affine codes.
std::vector<Tensor> random_groups(const GroupFormat& f, Shape shape, DType scales, Random& random) {
  const std::size_t last = shape.size() - 1;
  const std::int64_t width = shape[last];
  shape[last] = width * f.bits / 32;
  std::vector<Tensor> groups{random_tensor(DType::u32, shape, random, {0, 4294967296.0})};
  shape[last] = width / f.group_size;
  if (is_affine(f)) {
    groups.push_back(random_tensor(scales, shape, random, {-0.1, 0.1}));
    groups.push_back(random_tensor(scales, shape, random, {-1, 1}));
  } else if (f.mode == QuantMode::nvfp4) {
    groups.push_back(random_tensor(DType::u8, shape, random, {0, 0x39}));
  } else if (f.mode == QuantMode::mxfp8) {
    groups.push_back(random_tensor(DType::u8, shape, random, {112, 120}));
  } else {
    groups.push_back(random_tensor(DType::u8, shape, random, {120, 128}));
  }
  return groups;
}

std::vector<Tensor> joined(std::vector<Tensor> first, const std::vector<Tensor>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

/// Of sums of `terms` products: what f32 may lose of their magnitude, and the result's rounding.
Tolerance of_sums(DType dtype, std::int64_t terms, double magnitude) {
  const double lost = 1e-6 * magnitude * std::sqrt(static_cast<double>(terms) + 1);
  return {dtype == DType::f32 ? 4 : 0.51, lost};
}

// ---- group_quantize

TEST(Quantized, GroupsOfEveryFormat) {
  at_every_level([] {
    Random random(1);
    for (const GroupFormat& f : formats()) {
      for (const DType dtype : kFloatLike) {
        const Shape shape{3, 5 * 128};
        expect_on_cpu(GroupQuantize{f}, {random_tensor(dtype, shape, random)});
        expect_on_cpu(GroupQuantize{f}, {random_tensor(dtype, shape, random, {3, 4})});
        expect_on_cpu(GroupQuantize{f}, {random_tensor(dtype, shape, random, {-4e-3, -1e-3})});
      }
    }
  });
}

TEST(Quantized, GroupsHoweverTheirValuesLie) {
  Random random(2);
  for (const GroupFormat& f : {GroupFormat{QuantMode::affine, 64, 3},
                               {QuantMode::mxfp4, 32, 4},
                               {QuantMode::nvfp4, 16, 4}}) {
    for (const Arrangement arrangement : kAllArrangements) {
      for (const DType dtype : kFloatLike) {
        const OperandSpec w = arranged(dtype, {4, 3, 192}, arrangement);
        expect_on_cpu(GroupQuantize{f}, {random_tensor(w, random)});
      }
    }
    for (const Shape& shape : {Shape{0, 128}, Shape{3, 0}, Shape{64}, Shape{1, 1, 64}}) {
      expect_on_cpu(GroupQuantize{f}, {random_tensor(DType::f32, shape, random)});
    }
  }
}

TEST(Quantized, GroupsOfZerosAndOfOneValue) {
  for (const GroupFormat& f : formats()) {
    for (const double value : {0.0, 1.0, -3.0, 1e-9, -1e-9, 3e38}) {
      const std::vector<double> values(256, value);
      expect_on_cpu(GroupQuantize{f}, {tensor_of(DType::f32, {2, 128}, values)});
    }
  }
}

TEST(Quantized, GroupRowsAlone) {
  Random random(3);
  for (const GroupFormat& f : formats()) {
    expect_rows_alone(cpu_device(), GroupQuantize{f},
                      {random_tensor(DType::f16, {5, 768}, random)});
    expect_rows_alone(cpu_device(), GroupDequantize{f, DType::bf16},
                      random_groups(f, {5, 768}, DType::f16, random));
  }
}

// ---- group_dequantize

TEST(Quantized, ValuesOfEveryFormat) {
  at_every_level([] {
    Random random(4);
    for (const GroupFormat& f : formats()) {
      for (const DType to : kFloatLike) {
        for (const DType scales : kFloatLike) {
          if (!is_affine(f) && scales != DType::f32) continue;
          const Tolerance tolerance{0.51, scales == DType::f32 ? 4e-6 : 1e-7};
          expect_on_cpu(GroupDequantize{f, to}, random_groups(f, {2, 3, 640}, scales, random),
                        tolerance);
        }
      }
      for (const Shape& shape : {Shape{0, 128}, Shape{3, 0}, Shape{128}}) {
        expect_on_cpu(GroupDequantize{f, DType::f32}, random_groups(f, shape, DType::f32, random),
                      {0.51, 4e-6});
      }
    }
  });
}

TEST(Quantized, EveryCodeAndEveryScaleHasItsValue) {
  std::vector<double> codes;
  for (std::uint64_t i = 0; i < 64; ++i) {  // bytes 0 ... 255 in order
    codes.push_back(static_cast<double>(0x03020100u + 0x04040404u * static_cast<std::uint32_t>(i)));
  }
  const GroupFormat wide{QuantMode::mxfp8, 32, 8}, narrow{QuantMode::nvfp4, 16, 4};
  const std::vector<double> ones(8, 127), scales(8 * 32, 127);
  at_every_level([&] {
    expect_on_cpu(GroupDequantize{wide, DType::f32},
                  {tensor_of(DType::u32, {64}, codes), tensor_of(DType::u8, {8}, ones)});
    std::vector<double> all_scales;
    for (int i = 0; i < 254; ++i) all_scales.push_back(i % 127 + i / 127 * 128);
    const Tensor ones_of_e2m1 =
        tensor_of(DType::u32, {254 * 2}, std::vector<double>(254 * 2, 0x22222222));
    expect_on_cpu(GroupDequantize{narrow, DType::f32},
                  {ones_of_e2m1, tensor_of(DType::u8, {254}, all_scales)});
    for (int i = 0; i < 254; ++i) all_scales[static_cast<std::size_t>(i)] = i;
    const Tensor halves =
        tensor_of(DType::u32, {254 * 4}, std::vector<double>(254 * 4, 0x22222222));
    expect_on_cpu(GroupDequantize{{QuantMode::mxfp4, 32, 4}, DType::f32},
                  {halves, tensor_of(DType::u8, {254}, all_scales)});
  });
}

// ---- group_matmul

TEST(Quantized, ProductsOfEveryFormat) {
  at_every_level([] {
    Random random(5);
    for (const GroupFormat& f : formats()) {
      for (const bool transpose : {true, false}) {
        // A sum of more than a block, whose last step is a part of one; columns of more than a
        // group.
        const std::int64_t depth = transpose ? 1024 + 128 : 150, columns = transpose ? 70 : 384;
        const Shape w = transpose ? Shape{columns, depth} : Shape{depth, columns};
        const GroupMatmul op{f, transpose, false};
        const Tensor x = random_tensor(DType::f32, {3, depth}, random);
        expect_on_cpu(op, joined({x}, random_groups(f, w, DType::f32, random)),
                      of_sums(DType::f32, depth, 200));
      }
    }
  });
}

TEST(Quantized, ProductsOfEveryTypeAndNumberOfRows) {
  at_every_level([] {
    Random random(6);
    const GroupFormat all[] = {{QuantMode::affine, 32, 4},
                               {QuantMode::affine, 128, 5},
                               {QuantMode::mxfp8, 32, 8},
                               {QuantMode::nvfp4, 16, 4}};
    for (const GroupFormat& f : all) {
      for (const DType dtype : kFloatLike) {
        for (const DType scales : kFloatLike) {
          if (!is_affine(f) && scales != DType::f32) continue;
          for (const std::int64_t rows : {1, 2, 7, 13, 100}) {
            if (rows == 100 && dtype != scales) continue;
            const Tensor x = random_tensor(dtype, {rows, 256}, random);
            expect_on_cpu(GroupMatmul{f, true, false},
                          joined({x}, random_groups(f, {17, 256}, scales, random)),
                          of_sums(dtype, 256, 20));
          }
        }
      }
    }
  });
}

TEST(Quantized, ProductsOfOddShapes) {
  Random random(7);
  const GroupFormat f{QuantMode::affine, 32, 6}, small{QuantMode::nvfp4, 16, 4};
  const auto expect = [&](const GroupFormat& format, bool transpose, const OperandSpec& x,
                          const Shape& w) {
    expect_on_cpu(GroupMatmul{format, transpose, false},
                  joined({random_tensor(x, random)}, random_groups(format, w, DType::f16, random)),
                  of_sums(x.spec.dtype, 200, 30));
  };
  const auto dense = [](const Shape& shape) {
    return OperandSpec::contiguous({DType::f32, shape});
  };
  expect(f, true, dense({96}), {5, 96});
  expect(f, false, dense({5}), {5, 96});
  expect(f, true, dense({0, 96}), {5, 96});
  expect(f, true, dense({3, 96}), {0, 96});
  expect(f, true, dense({3, 0}), {5, 0});
  expect(f, false, dense({3, 0}), {0, 96});
  expect(small, true, dense({2, 16}), {3, 16});
  expect(small, false, dense({2, 3}), {3, 48});
  expect(f, true, dense({2, 1, 3, 64}), {4, 5, 64});  // batch axes broadcast
  expect(f, false, dense({4, 3, 5}), {2, 1, 5, 64});
  expect(f, true, dense({3, 64}), {2, 5, 64});
  expect(f, true, dense({0, 3, 64}), {1, 5, 64});
  for (const Arrangement arrangement : kArrangements) {
    for (const DType dtype : kFloatLike) {
      expect(f, true, arranged(dtype, {4, 3, 64}, arrangement), {7, 64});
      expect(f, false, arranged(dtype, {4, 3, 6}, arrangement), {6, 64});
    }
  }
}

TEST(Quantized, ProductsOfChosenMatrices) {
  at_every_level([] {
    Random random(8);
    for (const GroupFormat& f :
         {GroupFormat{QuantMode::affine, 64, 4}, {QuantMode::mxfp4, 32, 4}}) {
      for (const bool transpose : {true, false}) {
        for (const std::int64_t rows : {1, 3, 100}) {
          const Tensor x = random_tensor(DType::f32, {4, rows, 64}, random);
          const Shape w = transpose ? Shape{3, 9, 64} : Shape{3, 64, 64};
          const Tensor of_x = tensor_of(DType::u32, {2, 3}, {0, 3, 3, 1, 2, 0});
          const Tensor of_w = tensor_of(DType::u32, {2, 3}, {2, 2, 2, 0, 0, 1});
          expect_on_cpu(GroupMatmul{f, transpose, true},
                        joined(joined({x}, random_groups(f, w, DType::f32, random)), {of_x, of_w}),
                        of_sums(DType::f32, 64, 60));
        }
      }
    }
  });
}

TEST(Quantized, ProductsByRowsAlone) {
  at_every_level([] {
    Random random(9);
    for (const GroupFormat& f : formats()) {
      const Tensor x = random_tensor(DType::f32, {19, 1280}, random);
      expect_rows_alone(cpu_device(), GroupMatmul{f, true, false},
                        joined({x}, random_groups(f, {9, 1280}, DType::f16, random)));
      const Tensor across = random_tensor(DType::f16, {7, 10}, random);
      expect_rows_alone(cpu_device(), GroupMatmul{f, false, false},
                        joined({across}, random_groups(f, {10, 128}, DType::f16, random)));
    }
    const GroupFormat f{QuantMode::affine, 64, 4};
    const Tensor x = random_tensor(DType::f32, {4, 2, 128}, random);
    const Tensor of_x = tensor_of(DType::u32, {5, 2}, {0, 3, 3, 1, 2, 0, 0, 0, 1, 1});
    const Tensor of_w = tensor_of(DType::u32, {5, 2}, {2, 2, 2, 0, 0, 1, 1, 1, 1, 0});
    expect_rows_alone(
        cpu_device(), GroupMatmul{f, true, true},
        joined(joined({x}, random_groups(f, {3, 20, 128}, DType::f32, random)), {of_x, of_w}));
  });
}

/// The message with which running fails.
std::string failure_of(const Op& op, const std::vector<Tensor>& inputs) {
  try {
    run_op(cpu_device(), op, inputs);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
}

TEST(Quantized, IndicesOutsideAreNamed) {
  Random random(10);
  const GroupFormat f{QuantMode::affine, 64, 4};
  const std::vector<Tensor> operands = joined({random_tensor(DType::f32, {2, 1, 64}, random)},
                                              random_groups(f, {3, 5, 64}, DType::f32, random));
  const auto with = [&](double x, double w) {
    return failure_of(
        GroupMatmul{f, true, true},
        joined(operands, {tensor_of(DType::u32, {2}, {0, x}), tensor_of(DType::u32, {2}, {0, w})}));
  };
  EXPECT_EQ(with(1, 2), "");
  EXPECT_EQ(with(2, 2), "group_matmul: index 2 of x for product 1 is outside [0, 2)");
  EXPECT_EQ(with(1, 4294967295),
            "group_matmul: index 4294967295 of w for product 1 is outside "
            "[0, 3)");
}

// ---- gather_matmul

TEST(GatherMatmuls, OfEveryTypeAndLayout) {
  at_every_level([] {
    Random random(11);
    for (const DType dtype : kFloats) {
      for (const std::int64_t rows : {1, 5, 60, 130}) {
        for (const bool transposed : {false, true}) {
          OperandSpec lies = OperandSpec::contiguous({dtype, {4, 33, 70}});
          if (transposed) lies.layout.strides = {33 * 70, 1, 33};
          const Tensor a = random_tensor(dtype, {3, rows, 33}, random);
          const Tensor b = random_tensor(lies, random);
          const Tensor of_a = tensor_of(DType::u32, {2, 3}, {0, 2, 2, 1, 0, 0});
          const Tensor of_b = tensor_of(DType::u32, {2, 3}, {3, 3, 3, 0, 1, 0});
          expect_on_cpu(GatherMatmul{}, {a, b, of_a, of_b},
                        of_sums(dtype == DType::f64 ? DType::f32 : dtype, 33, 4));
        }
      }
    }
  });
}

TEST(GatherMatmuls, OddShapes) {
  Random random(12);
  const auto expect = [&](const Shape& a, const Shape& b, const Shape& indices) {
    const Tensor zeros = tensor_of(
        DType::u32, indices, std::vector<double>(static_cast<std::size_t>(elements(indices)), 0));
    expect_on_cpu(
        GatherMatmul{},
        {random_tensor(DType::f32, a, random), random_tensor(DType::f32, b, random), zeros, zeros},
        {4, 1e-5});
  };
  expect({1, 2, 3}, {1, 3, 4}, {});
  expect({1, 2, 3}, {1, 3, 4}, {0, 2});
  expect({0, 2, 3}, {0, 3, 4}, {0});
  expect({1, 0, 3}, {1, 3, 4}, {2});
  expect({1, 2, 0}, {1, 0, 4}, {2});
  expect({1, 2, 3}, {1, 3, 0}, {2});
}

TEST(GatherMatmuls, RowsAloneAndIndicesOutside) {
  at_every_level([] {
    Random random(13);
    for (const DType dtype : kFloats) {
      const Tensor a = random_tensor(dtype, {3, 2, 33}, random);
      const Tensor b = random_tensor(dtype, {4, 33, 20}, random);
      const Tensor of_a = tensor_of(DType::u32, {5}, {0, 2, 2, 1, 0});
      const Tensor of_b = tensor_of(DType::u32, {5}, {3, 3, 3, 0, 1});
      expect_rows_alone(cpu_device(), GatherMatmul{}, {a, b, of_a, of_b});
      EXPECT_EQ(failure_of(GatherMatmul{}, {a, b, of_b, of_b}),
                "gather_matmul: index 3 of a for product 0 is outside [0, 3)");
    }
  });
}

// ---- segmented_matmul

TEST(SegmentedMatmuls, OfEveryTypeAndLayout) {
  at_every_level([] {
    Random random(14);
    const Tensor segments =
        tensor_of(DType::u32, {2, 3, 2}, {0, 150, 3, 3, 150, 150, 7, 140, 149, 150, 0, 1});
    for (const DType dtype : kFloats) {
      for (const std::int64_t rows : {1, 20, 130}) {
        for (const Arrangement lies : {Arrangement::contiguous, Arrangement::transposed}) {
          const Tensor a = random_tensor(arranged(dtype, {rows, 150}, lies), random);
          const Tensor b = random_tensor(arranged(dtype, {150, 70}, lies), random);
          expect_on_cpu(SegmentedMatmul{}, {a, b, segments},
                        of_sums(dtype == DType::f64 ? DType::f32 : dtype, 150, 4));
        }
      }
    }
  });
}

TEST(SegmentedMatmuls, OddShapesRowsAloneAndWrongSegments) {
  Random random(15);
  const auto operands = [&](const Shape& a, const Shape& b, const Tensor& segments) {
    return std::vector{random_tensor(DType::f32, a, random), random_tensor(DType::f32, b, random),
                       segments};
  };
  const Tensor all = tensor_of(DType::u32, {2}, {0, 4}), none = tensor_of(DType::u32, {2}, {0, 0});
  expect_on_cpu(SegmentedMatmul{}, operands({3, 4}, {4, 5}, all), {4, 1e-5});
  expect_on_cpu(SegmentedMatmul{}, operands({0, 4}, {4, 5}, all));
  expect_on_cpu(SegmentedMatmul{}, operands({3, 4}, {4, 0}, all));
  expect_on_cpu(SegmentedMatmul{}, operands({3, 0}, {0, 5}, none));
  expect_on_cpu(SegmentedMatmul{}, operands({3, 4}, {4, 5}, tensor_of(DType::u32, {0, 2}, {})));
  const Tensor three = tensor_of(DType::u32, {3, 2}, {0, 2, 2, 4, 1, 4});
  expect_rows_alone(cpu_device(), SegmentedMatmul{}, operands({3, 4}, {4, 5}, three));
  EXPECT_EQ(failure_of(SegmentedMatmul{},
                       operands({3, 4}, {4, 5}, tensor_of(DType::u32, {2, 2}, {0, 4, 3, 5}))),
            "segmented_matmul: segment 1 is [3, 5); it must lie in order in [0, 4]");
  EXPECT_EQ(failure_of(SegmentedMatmul{},
                       operands({3, 4}, {4, 5}, tensor_of(DType::u32, {1, 2}, {3, 2}))),
            "segmented_matmul: segment 0 is [3, 2); it must lie in order in [0, 4]");
}

// ---- fp8

TEST(Fp8s, EveryCode) {
  Random random(24);
  std::vector<double> codes;
  for (int i = 0; i < 256; ++i) codes.push_back(i);
  for (const DType to : kFloatLike) {
    for (const Arrangement lies : kAllArrangements) {
      expect_on_cpu(Fp8{true, to},
                    {random_tensor(arranged(DType::u8, {16, 16}, lies), random, {0, 256})});
    }
    expect_on_cpu(Fp8{true, to}, {tensor_of(DType::u8, {2, 128}, codes)});
  }
}

TEST(Fp8s, TheNearestCode) {
  Random random(16);
  std::vector<double> edges{0.0,    -0.0,     448,      449,       464,
                            465,    479,      480,      1e9,       -448,
                            -500,   0x1p-9,   0x1p-10,  0x1.8p-10, 0x1.000002p-10,
                            0x1p-6, 0x1.ep-7, 0x1.dp-7, 1e-30,     17,
                            18,     19,       21,       27,        29,
                            31};
  for (const DType dtype : kFloatLike) {
    expect_on_cpu(Fp8{false, DType::u8},
                  {tensor_of(dtype, {static_cast<std::int64_t>(edges.size())}, edges)});
    for (const double size : {0.02, 2.0, 600.0}) {
      for (const Arrangement lies : kAllArrangements) {
        expect_on_cpu(Fp8{false, DType::u8}, {random_tensor(arranged(dtype, {3, 700}, lies), random,
                                                            {-size, size, true})});
      }
    }
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0}}) {
      expect_on_cpu(Fp8{false, DType::u8}, {random_tensor(dtype, shape, random)});
    }
    expect_rows_alone(cpu_device(), Fp8{false, DType::u8}, {random_tensor(dtype, {5, 40}, random)});
  }
}

// ---- causal_softmax

TEST(CausalSoftmaxes, OfEveryTypeAndLayout) {
  at_every_level([] {
    Random random(17);
    for (const DType dtype : kFloats) {
      const Tolerance tolerance{dtype == DType::f32 ? 8 : dtype == DType::f64 ? 64 : 0.52, 1e-9};
      for (const Arrangement lies : kAllArrangements) {
        for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 9, 4}, Shape{2, 3, 1100}}) {
          expect_on_cpu(CausalSoftmax{}, {random_tensor(arranged(dtype, shape, lies), random)},
                        tolerance);
        }
      }
      for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{1, 1}, Shape{2, 0, 4}}) {
        expect_on_cpu(CausalSoftmax{}, {random_tensor(dtype, shape, random)}, tolerance);
      }
      expect_rows_alone(cpu_device(), CausalSoftmax{}, {random_tensor(dtype, {4, 3, 600}, random)});
    }
  });
}

TEST(CausalSoftmaxes, WhatIsHiddenMayBeAnything) {
  const Tensor x = tensor_of(DType::f32, {3, 3},
                             {1, NAN, INFINITY, -INFINITY, -INFINITY, NAN, 1, 900, -INFINITY});
  const std::vector<double> want{1, 0, 0, 0, 0, 0, 0, 1, 0};
  const Ran ran = run_op(cpu_device(), CausalSoftmax{}, {x});
  EXPECT_TRUE(ran.outputs[0].bytes == tensor_of(DType::f32, {3, 3}, want).bytes);
}

// ---- norm_rope

std::vector<Tensor> norm_rope_inputs(const NormRope& op, const OperandSpec& x, Random& random) {
  std::vector<Tensor> inputs{random_tensor(x, random)};
  if (op.has_weight) inputs.push_back(random_tensor(DType::f32, {x.spec.shape[2]}, random));
  inputs.push_back(random_tensor(DType::i32, {x.spec.shape[0]}, random, {0, 5000}));
  if (op.angles.has_factors) {
    inputs.push_back(random_tensor(DType::f32, {op.angles.dims / 2}, random, {0.5, 8}));
  }
  return inputs;
}

Tolerance of_turns(DType dtype) {
  return dtype == DType::f32 ? Tolerance{4, 4e-6} : Tolerance{0.53, 4e-6};
}

TEST(NormRopes, EveryForm) {
  at_every_level([] {
    Random random(18);
    for (const RopeStyle style : {RopeStyle::interleaved, RopeStyle::split_half}) {
      for (const DType dtype : kFloatLike) {
        for (const bool weight : {false, true}) {
          for (const bool factors : {false, true}) {
            for (const Arrangement lies : kArrangements) {
              for (const std::int64_t width : {34, 600}) {
                if (width == 600 && lies != Arrangement::contiguous) continue;
                const NormRope op{1e-5f, weight, {style, 20, 10000.0f, 0.5f, factors}};
                const OperandSpec x = arranged(dtype, {5, 3, width}, lies);
                expect_on_cpu(op, norm_rope_inputs(op, x, random), of_turns(dtype));
              }
            }
          }
        }
      }
    }
  });
}

TEST(NormRopes, OddShapesAndRowsAlone) {
  Random random(19);
  const NormRope op{1e-6f, true, {RopeStyle::split_half, 8}};
  for (const Shape& shape : {Shape{0, 2, 8}, Shape{3, 0, 8}, Shape{1, 1, 1024}}) {
    expect_on_cpu(op, norm_rope_inputs(op, OperandSpec::contiguous({DType::f32, shape}), random),
                  of_turns(DType::f32));
  }
  for (const DType dtype : kFloatLike) {
    expect_rows_alone(cpu_device(), op,
                      norm_rope_inputs(op, OperandSpec::contiguous({dtype, {6, 2, 40}}), random));
  }
  const std::vector in{OperandSpec::contiguous({DType::f32, {1, 1, 1026}}),
                       OperandSpec::contiguous({DType::i32, {1}})};
  const Prepared prepared = cpu_device().prepare(NormRope{1e-6f, false, {RopeStyle::split_half, 8}},
                                                 in, std::span(in).first(1));
  EXPECT_NE(prepared.reason.find("1024"), std::string::npos) << prepared.reason;
}

TEST(NormRopes, AreRmsNormThenRopeThenWriteRows) {
  at_every_level([] {
    Random random(20);
    for (const DType state : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
      for (const bool weight : {false, true}) {
        const NormRope op{1e-5f, weight, {RopeStyle::split_half, 48}};
        const std::vector<Tensor> in =
            norm_rope_inputs(op, OperandSpec::contiguous({DType::f32, {4, 3, 64}}), random);
        std::vector<Tensor> norm{in[0]};
        if (weight) norm.push_back(in[1]);
        const Ran normed = run_op(cpu_device(), RmsNorm{1e-5f, weight, false}, norm);
        const Ran turned =
            run_op(cpu_device(), Rope{op.angles, false}, {normed.outputs[0], in.back()});
        const Ran whole = run_op(cpu_device(), op, in);
        EXPECT_TRUE(whole.outputs[0].bytes == turned.outputs[0].bytes);

        const Tensor cache = random_tensor(state, {9, 3, 64}, random);
        const Tensor rows = tensor_of(DType::i32, {4}, {8, -1, 0, 5});
        const Ran parts = run_op(cpu_device(), WriteRows{}, {cache, turned.outputs[0], rows});
        std::vector<Tensor> all{cache, in[0], rows};
        all.insert(all.end(), in.begin() + 1, in.end());
        for (const int threads : {1, 8}) {
          const Ran fused =
              run_op(cpu_device(), NormRopeWriteRows{1e-5f, weight, op.angles}, all, {threads});
          ASSERT_EQ(fused.refused, "");
          EXPECT_TRUE(fused.outputs[0].bytes == parts.outputs[0].bytes) << to_string(state);
        }
      }
    }
  });
}

TEST(NormRopes, WritesConformAndNameRowsBeyondTheState) {
  Random random(21);
  const NormRope norm{1e-5f, true, {RopeStyle::interleaved, 32, 10000.0f, 1.0f, true}};
  for (const DType state : kFloatLike) {
    for (const DType x : kFloatLike) {
      const std::vector<Tensor> in =
          norm_rope_inputs(norm, OperandSpec::contiguous({x, {4, 3, 64}}), random);
      std::vector<Tensor> all{random_tensor(state, {9, 3, 64}, random), in[0],
                              tensor_of(DType::i32, {4}, {8, -1, 0, 5})};
      all.insert(all.end(), in.begin() + 1, in.end());
      const NormRopeWriteRows op{norm.eps, true, norm.angles};
      expect_on_cpu(op, all, of_turns(state));
      all[2] = tensor_of(DType::i32, {4}, {0, 1, 2, 9});
      EXPECT_NE(failure_of(op, all).find("row 9"), std::string::npos);
    }
  }
}

// ---- Attention's sinks

TEST(AttentionSinks, TakeTheirPartOfTheSoftmax) {
  at_every_level([] {
    Random random(22);
    using enum Attention::Mask;
    for (const DType dtype : kFloatLike) {
      for (const auto mask : {none, causal, boolean, additive}) {
        for (const bool sequence_first : {false, true}) {
          const auto shape = [&](std::int64_t heads, std::int64_t length, std::int64_t width) {
            return sequence_first ? Shape{2, length, heads, width} : Shape{2, heads, length, width};
          };
          std::vector<Tensor> in{random_tensor(dtype, shape(4, 5, 20), random),
                                 random_tensor(dtype, shape(2, 70, 20), random),
                                 random_tensor(dtype, shape(2, 70, 24), random)};
          if (mask == boolean) in.push_back(random_tensor(DType::bool_, {5, 70}, random));
          if (mask == additive) in.push_back(random_tensor(dtype, {1, 70}, random));
          for (const DType sinks : {dtype, DType::f32}) {
            std::vector<Tensor> with = in;
            with.push_back(random_tensor(sinks, {4}, random, {-5, 10}));
            const Attention op{
                .mask = mask, .scale = 0.3f, .sequence_first = sequence_first, .has_sinks = true};
            expect_on_cpu(op, with, {dtype == DType::f32 ? 16 : 0.53, 3e-6});
          }
        }
      }
    }
  });
}

TEST(AttentionSinks, OfWhatSeesNothingGiveZeros) {
  Random random(23);
  const Attention op{.mask = Attention::Mask::causal, .has_sinks = true};
  const std::vector<Tensor> in{random_tensor(DType::f32, {1, 2, 5, 8}, random),
                               random_tensor(DType::f32, {1, 1, 3, 8}, random),
                               random_tensor(DType::f32, {1, 1, 3, 8}, random),
                               tensor_of(DType::f32, {2}, {1, -INFINITY})};
  expect_on_cpu(op, in, {16, 3e-6});
}

}  // namespace
}  // namespace heddle::test
