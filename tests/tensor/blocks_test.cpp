#include "tensor/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "heddle/half.h"
#include "tensor/bit_decoder.h"
#include "tensor/expect_invalid.h"
#include "tensor/tensor_test_support.h"

namespace heddle {
namespace {

using test::expect_invalid;
using test::kBlockTypes;

// Where a format keeps its f16 scales, whose exponent bits must not be all ones in a sane block.
std::vector<int> scale_offsets(DType dtype) {
  switch (dtype) {
    case DType::q4_1:
    case DType::q5_1:
    case DType::q4_K:
    case DType::q5_K:
      return {0, 2};
    case DType::q2_K:
      return {80, 82};
    case DType::q3_K:
      return {108};
    case DType::q6_K:
      return {208};
    default:
      return {0};
  }
}

std::vector<unsigned char> random_blocks(DType dtype, int count, unsigned seed) {
  const int bytes = info(dtype).block_bytes;
  std::mt19937 random(seed);
  std::vector<unsigned char> blocks(static_cast<std::size_t>(count) * bytes);
  for (unsigned char& byte : blocks) byte = static_cast<unsigned char>(random());
  for (int b = 0; b < count; ++b) {
    for (const int offset : scale_offsets(dtype)) {
      unsigned char& high = blocks[static_cast<std::size_t>(b) * bytes + offset + 1];
      if ((high & 0x7c) == 0x7c) high ^= 0x40;
    }
  }
  return blocks;
}

class EveryBlockType : public testing::TestWithParam<DType> {};

TEST_P(EveryBlockType, DecodesToTheFormulaRoundedOnce) {
  const DType dtype = GetParam();
  constexpr int kBlocks = 500;
  const int elements = info(dtype).block_elements;
  const auto bytes = random_blocks(dtype, kBlocks, 7);
  std::vector<float> decoded(static_cast<std::size_t>(kBlocks) * elements);
  dequantize_row(dtype, bytes.data(), decoded.data(), kBlocks * elements);
  for (int b = 0; b < kBlocks; ++b) {
    const test::BitDecoder reference(dtype, bytes.data() + b * info(dtype).block_bytes);
    for (int i = 0; i < elements; ++i) {
      ASSERT_EQ(decoded[b * elements + i], static_cast<float>(reference(i)))
          << "block " << b << ", element " << i;
    }
  }
}

TEST_P(EveryBlockType, DecodesFromAnyAlignment) {
  const DType dtype = GetParam();
  const int n = 3 * info(dtype).block_elements;
  const auto bytes = random_blocks(dtype, 3, 8);
  std::vector<float> aligned(n);
  std::vector<float> shifted(n);
  dequantize_row(dtype, bytes.data(), aligned.data(), n);
  std::vector<unsigned char> moved(bytes.size() + 1);
  std::memcpy(moved.data() + 1, bytes.data(), bytes.size());
  dequantize_row(dtype, moved.data() + 1, shifted.data(), n);
  EXPECT_EQ(aligned, shifted);
}

TEST_P(EveryBlockType, RefusesPartialBlocks) {
  const DType dtype = GetParam();
  float nothing = 0;
  expect_invalid([&] { dequantize_row(dtype, nullptr, &nothing, 31); }, "whole");
  expect_invalid([&] { dequantize_row(dtype, nullptr, &nothing, -256); }, "-256");
  dequantize_row(dtype, nullptr, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(Blocks, EveryBlockType, testing::ValuesIn(kBlockTypes), test::type_name);

TEST(Dequantize, DecodesPlainFloats) {
  const std::vector<float> values{0.0f, -0.0f, 1.5f, -3.25f, 65504.0f, 6.1035156e-5f};
  std::vector<std::uint16_t> halves;
  std::vector<std::uint16_t> brains;
  for (const float value : values) {
    halves.push_back(f16(value).bits);
    brains.push_back(bf16(value).bits);
  }
  std::vector<float> decoded(values.size());
  dequantize_row(DType::f32, values.data(), decoded.data(), std::ssize(values));
  EXPECT_EQ(decoded, values);
  dequantize_row(DType::f16, halves.data(), decoded.data(), std::ssize(values));
  EXPECT_EQ(decoded, values);
  dequantize_row(DType::bf16, brains.data(), decoded.data(), std::ssize(values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(decoded[i], static_cast<float>(bf16(values[i])));
  }
}

TEST(Dequantize, RefusesOtherTypes) {
  float nothing = 0;
  for (const DType dtype : {DType::i8, DType::f64, DType::bool_, DType::complex64}) {
    expect_invalid([&] { dequantize_row(dtype, &nothing, &nothing, 1); }, to_string(dtype).data());
  }
}

TEST(ScaleUnpacking, ReachesTheEndsOfItsRange) {
  std::uint8_t bytes[12];
  std::memset(bytes, 0xff, sizeof bytes);
  for (int s = 0; s < 8; ++s) {
    EXPECT_EQ(k_scale_min(bytes, s).scale, 63);
    EXPECT_EQ(k_scale_min(bytes, s).min, 63);
  }
  for (int s = 0; s < 16; ++s) EXPECT_EQ(q3k_scale(bytes, s), 31);
  std::memset(bytes, 0, sizeof bytes);
  for (int s = 0; s < 8; ++s) EXPECT_EQ(k_scale_min(bytes, s).scale, 0);
  for (int s = 0; s < 16; ++s) EXPECT_EQ(q3k_scale(bytes, s), -32);
}

}  // namespace
}  // namespace heddle
