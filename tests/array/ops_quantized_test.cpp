// MLX's quantisation by groups, and products with chosen matrices, against values worked out by
// hand and against products of what is dequantised.
#include <cmath>

#include "array_test_support.h"

namespace heddle::test {
namespace {

Array wave(const Shape& shape, float phase = 0) {
  return reshape(sin(arange(static_cast<double>(elements(shape))) * 0.7f + phase), shape);
}

Array row_of(const std::vector<float>& values) {
  return Array(values, {1, static_cast<std::int64_t>(values.size())});
}

using Words = std::vector<std::uint32_t>;

// ---- Layouts and the affine rule, by hand

struct Layout {
  int bits;
  std::function<int(int i)> code;  // of element i of 32
  Words words;                     // codes as one number, the first in its lowest bits
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all{
      {2, [](int i) { return i % 4; }, {0xe4e4e4e4, 0xe4e4e4e4}},
      {3, [](int i) { return i % 8; }, {0x88fac688, 0xc688fac6, 0xfac688fa}},
      {4, [](int i) { return i % 16; }, {0x76543210, 0xfedcba98, 0x76543210, 0xfedcba98}},
      {5, [](int i) { return i; }, {0x8a418820, 0xc5a92839, 0xca307b9a, 0x38bdab49, 0xffbbcdeb}},
      {6,
       [](int i) { return i * 63 / 31; },
       {0x88184080, 0x449038c2, 0x79c69859, 0xa89a48a0, 0x4cb0baca, 0xffceb8db}},
      {8,
       [](int i) { return i * 255 / 31; },
       {0x18100800, 0x39312920, 0x5a524a41, 0x7b736a62, 0x9c948b83, 0xbdb4aca4, 0xded5cdc5,
        0xfff6eee6}},
  };
  return all;
}

TEST(Quantize, LaysCodesOutAsMlxDoes) {
  for (const Layout& layout : layouts()) {
    // From -largest to 0 in steps of one: the edge is the least value, and the bias.
    const int largest = (1 << layout.bits) - 1;
    std::vector<float> w;
    for (int i = 0; i < 32; ++i) w.push_back(static_cast<float>(layout.code(i) - largest));
    const std::vector<Array> q = quantize(row_of(w), 32, layout.bits);
    EXPECT_EQ(q[0].to_vector<std::uint32_t>(), layout.words) << layout.bits;
    expect_near(q[1], {1});
    expect_near(q[2], {static_cast<double>(-largest)});
    expect_near(dequantize(q[0], q[1], q[2], 32, layout.bits), {w.begin(), w.end()});
  }
}

TEST(Quantize, TheFartherEdgeAndZeroAreExact) {
  // From -1 to 2 with codes 0 ... 3: the edge is 2, and steps go down from there.
  std::vector<float> w;
  for (int i = 0; i < 32; ++i) w.push_back(static_cast<float>(2 - i % 4));
  const std::vector<Array> q = quantize(row_of(w), 32, 2);
  EXPECT_EQ(q[0].to_vector<std::uint32_t>(), (Words{0xe4e4e4e4, 0xe4e4e4e4}));
  expect_near(q[1], {-1});
  expect_near(q[2], {2});
  // From -1 to 1.9: a step of 2.9/3 would miss zero, and two steps from the edge do not.
  for (float& x : w) x = std::min(x, 1.9f);
  const std::vector<Array> uneven = quantize(row_of(w), 32, 2);
  expect_near(uneven[1], {-0.95});
  expect_near(uneven[2], {1.9});
  const std::vector<double> again = doubles(dequantize(uneven[0], uneven[1], uneven[2], 32, 2));
  EXPECT_EQ(again[0], static_cast<double>(1.9f));
  EXPECT_NEAR(again[2], 0, 1e-7);
}

TEST(Quantize, DefaultsTypesAndShapes) {
  const Array w = astype(wave({2, 3, 128}), DType::f16);
  const std::vector<Array> q = quantize(w);
  ASSERT_EQ(q.size(), 3u);
  EXPECT_EQ(q[0].spec(), (TensorSpec{DType::u32, {2, 3, 16}}));
  EXPECT_EQ(q[1].spec(), (TensorSpec{DType::f16, {2, 3, 2}}));
  EXPECT_EQ(q[2].spec(), q[1].spec());
  EXPECT_EQ(dequantize(q[0], q[1], q[2]).spec(), w.spec());
  EXPECT_EQ(dequantize(q[0], q[1], q[2], 64, 4, "affine", {}, DType::f32).dtype(), DType::f32);
  const std::vector<Array> f = quantize(w, {}, {}, "mxfp8");
  ASSERT_EQ(f.size(), 2u);
  EXPECT_EQ(f[0].spec(), (TensorSpec{DType::u32, {2, 3, 32}}));
  EXPECT_EQ(f[1].spec(), (TensorSpec{DType::u8, {2, 3, 4}}));
  EXPECT_EQ(dequantize(f[0], f[1], {}, {}, {}, "mxfp8").dtype(), DType::bf16);
  EXPECT_EQ(quantize(w, {}, {}, "nvfp4")[1].shape(), (Shape{2, 3, 8}));
}

TEST(Quantize, KeepsWithinAStepOfTheValues) {
  const Array w = wave({4, 256}) * 3.0f;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int size : {32, 64, 128}) {
      const std::vector<Array> q = quantize(w, size, bits);
      // The step to the edge is moved by up to half a step over all of them.
      expect_near(dequantize(q[0], q[1], q[2], size, bits), doubles(w),
                  6.0 / ((1 << bits) - 1) * 1.01);
    }
  }
}

// ---- Float codes

TEST(Quantize, FloatCodesByHand) {
  const std::vector<float> all{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.5f, -1, -1.5f, -2, -3, -4, -6, 6};
  std::vector<float> twice = all;
  twice.insert(twice.end(), all.begin(), all.end());
  const Words codes{0x76543210, 0x7fedcba9};
  const std::vector<Array> mx = quantize(row_of(twice), {}, {}, "mxfp4");
  EXPECT_EQ(mx[0].to_vector<std::uint32_t>(), (Words{codes[0], codes[1], codes[0], codes[1]}));
  EXPECT_EQ(mx[1].to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{127}));  // 2^0
  // Twice as large: a scale of 2, which e4m3 holds as 0x40.
  std::vector<float> doubled = all;
  for (float& x : doubled) x *= 2;
  const std::vector<Array> nv = quantize(row_of(doubled), {}, {}, "nvfp4");
  EXPECT_EQ(nv[0].to_vector<std::uint32_t>(), codes);
  EXPECT_EQ(nv[1].to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0x40}));
  expect_near(dequantize(nv[0], nv[1], {}, {}, {}, "nvfp4", {}, DType::f32),
              {doubled.begin(), doubled.end()}, 0);
  std::vector<float> bytes(32, 448);
  bytes[1] = -1, bytes[2] = 0.001953125f, bytes[3] = 240;
  const std::vector<Array> wide = quantize(row_of(bytes), {}, {}, "mxfp8");
  EXPECT_EQ(wide[0].to_vector<std::uint32_t>()[0], 0x7701b87eu);
  EXPECT_EQ(wide[1].to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{127}));
}

TEST(Quantize, GlobalScalesAreTheLargestMagnitude) {
  const Array w = wave({2, 64}) * 1e-3f;
  const Array largest = max(abs(w));
  const std::vector<Array> q = quantize(w, {}, {}, "nvfp4", largest);
  // The largest group's scale is the largest that e4m3 has; without it, scales would be subnormal.
  EXPECT_EQ(max(q[1]).item<std::uint8_t>(), 0x7e);
  expect_near(dequantize(q[0], q[1], {}, {}, {}, "nvfp4", largest, DType::f32), doubles(w), 2e-4);
  const std::vector<Array> plain = quantize(w, {}, {}, "nvfp4", Array(2688.0f));
  const std::vector<Array> none = quantize(w, {}, {}, "nvfp4");
  EXPECT_EQ(plain[0].to_bytes(), none[0].to_bytes());
  EXPECT_EQ(plain[1].to_bytes(), none[1].to_bytes());
}

TEST(Fp8Functions, EncodeAndDecode) {
  const Array x({0.0f, 1.0f, -1.5f, 448.0f, 1000.0f, 17.0f});
  const Array codes = to_fp8(x);
  EXPECT_EQ(codes.to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{0, 0x38, 0xbc, 0x7e, 0x7e, 0x58}));
  expect_near(from_fp8(codes, DType::f32), {0, 1, -1.5, 448, 448, 16}, 0);
  EXPECT_EQ(from_fp8(codes, DType::f64).dtype(), DType::f64);
  EXPECT_EQ(to_fp8(astype(x, DType::f64)).to_bytes(), codes.to_bytes());
}

// ---- Products

struct Quantized {
  std::vector<Array> q;
  Array values;
  std::optional<Array> biases() const { return q.size() > 2 ? std::optional(q[2]) : std::nullopt; }
};

Quantized quantized(const Array& w, int size, int bits, const std::string& mode = "affine") {
  const std::vector<Array> q = quantize(w, size, bits, mode);
  const std::optional<Array> biases = q.size() > 2 ? std::optional(q[2]) : std::nullopt;
  return {q, dequantize(q[0], q[1], biases, size, bits, mode, {}, DType::f32)};
}

TEST(QuantizedMatmul, IsTheProductWithTheValues) {
  const Array x = wave({3, 5, 128}, 1);
  for (const auto& [mode, size, bits] :
       {std::tuple{"affine", 64, 4}, {"affine", 32, 3}, {"mxfp4", 32, 4}, {"nvfp4", 16, 4}}) {
    const Quantized w = quantized(wave({7, 128}), size, bits, mode);
    const Array y = quantized_matmul(x, w.q[0], w.q[1], w.biases(), true, size, bits, mode);
    EXPECT_EQ(y.spec(), (TensorSpec{DType::f32, {3, 5, 7}}));
    expect_near(y, doubles(matmul(x, transpose(w.values))), 2e-5);
    const Array across = wave({3, 5, 7}, 2);
    const Array z = quantized_matmul(across, w.q[0], w.q[1], w.biases(), false, size, bits, mode);
    expect_near(z, doubles(matmul(across, w.values)), 2e-5);
  }
}

TEST(QuantizedMatmul, PromotesAndBroadcastsBatches) {
  const Quantized w = quantized(wave({2, 1, 7, 64}), 64, 4);
  const Array x = wave({3, 5, 64}, 1);
  const Array y = quantized_matmul(x, w.q[0], w.q[1], w.q[2]);
  EXPECT_EQ(y.shape(), (Shape{2, 3, 5, 7}));
  expect_near(y, doubles(matmul(x, swapaxes(w.values, -1, -2))), 2e-5);
  const auto dtype = [&](DType of_x, DType of_w) {
    return quantized_matmul(astype(x, of_x), w.q[0], astype(w.q[1], of_w), astype(w.q[2], of_w))
        .dtype();
  };
  EXPECT_EQ(dtype(DType::f16, DType::f16), DType::f16);
  EXPECT_EQ(dtype(DType::f16, DType::bf16), DType::f32);
  EXPECT_EQ(dtype(DType::bf16, DType::f32), DType::f32);
}

TEST(QuantizedMatmul, ChosenMatrices) {
  const Quantized w = quantized(wave({4, 7, 64}), 64, 4);
  const Array x = wave({3, 2, 64}, 1);
  const Array rhs(std::vector<std::uint32_t>{3, 0, 0, 2, 1, 1}, {2, 3});
  const Array lhs(std::vector<std::int32_t>{2, 0, 1}, {3});
  const Array both = gather_qmm(x, w.q[0], w.q[1], w.q[2], lhs, rhs);
  EXPECT_EQ(both.shape(), (Shape{2, 3, 2, 7}));
  const Array dense = swapaxes(take(w.values, rhs, 0), -1, -2);
  expect_near(both, doubles(matmul(take(x, lhs, 0), dense)), 2e-5);
  // Without lhs_indices, all of x in its order.
  expect_near(gather_qmm(x, w.q[0], w.q[1], w.q[2], std::nullopt, rhs), doubles(matmul(x, dense)),
              2e-5);
  const Array across = wave({3, 2, 7}, 2);
  expect_near(gather_qmm(across, w.q[0], w.q[1], w.q[2], lhs, rhs, false),
              doubles(matmul(take(across, lhs, 0), take(w.values, rhs, 0))), 2e-5);
}

TEST(Qqmm, RoundsBothOperands) {
  const Array x = wave({2, 3, 64}, 1), w = wave({5, 64});
  for (const auto& [mode, size, bits] :
       {std::tuple{"nvfp4", 16, 4}, {"mxfp8", 32, 8}, {"mxfp4", 32, 4}}) {
    const Quantized of_w = quantized(w, size, bits, mode), of_x = quantized(x, size, bits, mode);
    const std::vector<double> want = doubles(matmul(of_x.values, transpose(of_w.values)));
    expect_near(qqmm(x, of_w.q[0], of_w.q[1], {}, {}, mode), want, 2e-5);
    expect_near(qqmm(x, w, {}, {}, {}, mode), want, 2e-5);
    EXPECT_EQ(qqmm(astype(x, DType::bf16), w, {}, {}, {}, mode).dtype(), DType::bf16);
    expect_near(qqmm(flatten(slice(x, {0, 0, 0}, {1, 1, 64})), w, {}, {}, {}, mode),
                {want.begin(), want.begin() + 5}, 2e-5);
  }
  const Array largest_x = max(abs(x)), largest_w = max(abs(w));
  const std::vector<Array> q = quantize(w, {}, {}, "nvfp4", largest_w);
  const std::vector<Array> qx = quantize(x, {}, {}, "nvfp4", largest_x);
  const auto values = [](const std::vector<Array>& groups, const Array& largest) {
    return dequantize(groups[0], groups[1], {}, {}, {}, "nvfp4", largest, DType::f32);
  };
  const std::vector<double> want =
      doubles(matmul(values(qx, largest_x), transpose(values(q, largest_w))));
  expect_near(qqmm(x, q[0], q[1], {}, {}, "nvfp4", largest_x, largest_w), want, 2e-5);
  expect_near(qqmm(x, w, {}, {}, {}, "nvfp4", largest_x, largest_w), want, 2e-5);
}

TEST(Qqmm, ChosenMatrices) {
  const Array x = wave({3, 2, 64}, 1), w = wave({4, 5, 64});
  const Array rhs(std::vector<std::uint32_t>{3, 0, 2}, {3});
  const Quantized of_w = quantized(w, 16, 4, "nvfp4"), of_x = quantized(x, 16, 4, "nvfp4");
  const std::vector<double> want =
      doubles(matmul(of_x.values, swapaxes(take(of_w.values, rhs, 0), -1, -2)));
  expect_near(gather_qqmm(x, of_w.q[0], of_w.q[1], {}, rhs), want, 2e-5);
  expect_near(gather_qqmm(x, w, {}, {}, rhs), want, 2e-5);
  // A global scale for each matrix.
  const Array of_each({2688.0f, 1344.0f, 5376.0f, 2688.0f});
  const Array scaled =
      gather_qqmm(x, of_w.q[0], of_w.q[1], {}, rhs, {}, {}, "nvfp4", Array(2688.0f), of_each);
  const Array factor = reshape(take(of_each, rhs, 0), {3, 1, 1}) / 2688.0f;
  expect_near(scaled,
              doubles(Array(std::vector<float>(want.begin(), want.end()), {3, 2, 5}) * factor),
              2e-5);
}

TEST(GatherMm, IsTakeThenMatmul) {
  const Array a = wave({2, 3, 4, 6}), b = wave({5, 6, 7}, 1);
  const Array lhs(std::vector<std::int64_t>{5, 0, 3, 3}, {2, 2});
  const Array rhs(std::vector<std::uint8_t>{4, 1}, {2});
  const Array left = take(reshape(a, {6, 4, 6}), lhs, 0);
  const Array right = take(b, broadcast_to(rhs, {2, 2}), 0);
  expect_near(gather_mm(a, b, lhs, rhs), doubles(matmul(left, right)), 1e-5);
  EXPECT_EQ(gather_mm(a, b, lhs, rhs).shape(), (Shape{2, 2, 4, 7}));
  // One of them alone: the other operand's matrices in their order.
  const Array six(std::vector<std::uint32_t>{0, 1, 2, 3, 4, 4}, {2, 3});
  expect_near(gather_mm(a, b, {}, six), doubles(matmul(a, take(b, six, 0))), 1e-5);
  expect_near(gather_mm(a, slice(b, {0, 0, 0}, {1, 6, 7})),
              doubles(matmul(a, slice(b, {0, 0, 0}, {1, 6, 7}))), 1e-5);
}

TEST(GatherMm, OfVectors) {
  const Array row = wave({6}), b = wave({5, 6, 7}, 1), column = wave({6}, 2), a = wave({2, 4, 6});
  const Array zero(0u), rhs(std::vector<std::uint32_t>{4, 1}, {2});
  const Array first = gather_mm(row, b, zero, rhs);
  EXPECT_EQ(first.shape(), (Shape{2, 7}));
  expect_near(first, doubles(matmul(row, take(b, rhs, 0))), 1e-5);
  const Array second = gather_mm(a, column, Array(std::vector<std::uint32_t>{1, 0}, {2}), zero);
  EXPECT_EQ(second.shape(), (Shape{2, 4}));
  EXPECT_EQ(gather_mm(row, column, zero, zero).shape(), (Shape{}));
}

TEST(SegmentedMm, SplitsTheInnerAxis) {
  const Array a = wave({3, 10}), b = wave({10, 4}, 1);
  const Array segments(std::vector<std::int32_t>{0, 4, 4, 10, 3, 3}, {3, 2});
  const Array y = segmented_mm(a, b, segments);
  EXPECT_EQ(y.shape(), (Shape{3, 3, 4}));
  const auto part = [&](std::int64_t first, std::int64_t last) {
    return matmul(slice(a, {0, first}, {3, last}), slice(b, {first, 0}, {last, 4}));
  };
  expect_near(y, doubles(stack({part(0, 4), part(4, 10), zeros({3, 4})})), 1e-5);
  EXPECT_EQ(segmented_mm(astype(a, DType::f16), b, segments).dtype(), DType::f32);
  expect_invalid([&] { segmented_mm(a, b, Array({3, 2})).eval(); }, {"segmented_matmul", "[3, 2)"});
}

// ---- Masked blocks

/// mask[i / block][j / block] as an array of a's last two extents.
Array spread(const Array& mask, int block, std::int64_t rows, std::int64_t columns) {
  const std::vector<double> m = doubles(mask);
  const std::int64_t wide = (columns + block - 1) / block;
  std::vector<float> each;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      each.push_back(static_cast<float>(m[static_cast<std::size_t>(i / block * wide + j / block)]));
    }
  }
  return Array(each, {rows, columns});
}

TEST(BlockMaskedMm, MultipliesBlocksByTheirMasks) {
  const Array a = wave({70, 100}), b = wave({100, 40}, 1);
  for (const int block : {32, 64}) {
    const int m = (70 + block - 1) / block, k = (100 + block - 1) / block,
              n = (40 + block - 1) / block;
    const Array out_mask = wave({m, n}, 2), lhs = wave({m, k}, 3), rhs = wave({k, n}, 4);
    const Array product = matmul(a * spread(lhs, block, 70, 100), b * spread(rhs, block, 100, 40));
    expect_near(block_masked_mm(a, b, block, out_mask, lhs, rhs),
                doubles(product * spread(out_mask, block, 70, 40)), 3e-5);
    const Array seen = lhs > 0.0f;
    expect_near(block_masked_mm(a, b, block, {}, seen),
                doubles(matmul(a * spread(seen, block, 70, 100), b)), 3e-5);
    EXPECT_EQ(block_masked_mm(a, b, block).to_bytes(), matmul(a, b).to_bytes());
  }
}

TEST(BlockMaskedMm, WhatIsHiddenMayBeAnything) {
  std::vector<float> values(40 * 40, 1.0f);
  for (int i = 32; i < 40; ++i) values[static_cast<std::size_t>(i)] = NAN;
  const Array a(values, {40, 40}), b = ones({40, 3});
  const Array mask = reshape(Array({true, false, true, true}), {2, 2});
  std::vector<double> want(120, 40);
  std::fill_n(want.begin(), 96, 32);
  expect_near(block_masked_mm(a, b, 32, {}, mask), want);
}

TEST(BlockMaskedMm, OfVectorsAndBatches) {
  const Array row = wave({40}), b = wave({2, 40, 33}, 1);
  const Array mask({true, false});
  const Array y = block_masked_mm(row, b, 32, {}, mask);
  EXPECT_EQ(y.shape(), (Shape{2, 33}));
  expect_near(y, doubles(matmul(slice(row, {0}, {32}), slice(b, {0, 0, 0}, {2, 32, 33}))), 1e-5);
  const Array by_column = block_masked_mm(wave({40, 40}), row, 32, Array({2.0f, 0.0f}));
  EXPECT_EQ(by_column.shape(), (Shape{40}));
}

}  // namespace
}  // namespace heddle::test
