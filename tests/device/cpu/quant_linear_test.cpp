#include <limits>
#include <optional>

#include "device/cpu/linear_run.h"
#include "device/cpu/quant.h"
#include "tensor/quantize.h"

namespace heddle::cpu {
namespace {

/// Sums in float64 of x and the dequantised weights, and how far a result may be from them.
struct Reference {
  std::vector<double> sums, bounds;
};

Reference reference(const HostTensor& x, const HostTensor& weight) {
  const auto depth = static_cast<std::size_t>(x.operand.spec.shape.back());
  const auto columns = static_cast<std::size_t>(weight.operand.spec.shape[0]);
  const std::size_t rows = x.bytes.size() / sizeof(float) / depth;
  std::vector<float> w(columns * depth);
  dequantize_row(weight.operand.spec.dtype, weight.bytes.data(), w.data(),
                 static_cast<std::int64_t>(w.size()));
  Reference result;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const float* weights = w.data() + c * depth;
      double sum = 0, rounding = 0, magnitude = 0, largest_weight = 0;
      for (std::size_t first = 0; first < depth; first += kRoundedElements) {
        double largest = 0, weight_sum = 0;
        for (std::size_t k = first; k < std::min(first + kRoundedElements, depth); ++k) {
          const double value = element(x, r * depth + k), w_k = static_cast<double>(weights[k]);
          sum += value * w_k;
          magnitude += std::abs(value);
          largest = std::max(largest, std::abs(value));
          weight_sum += std::abs(w_k);
          largest_weight = std::max(largest_weight, std::abs(w_k));
        }
        // Half a step of the activations' codes; for tiny ones, of the smallest scale there is.
        rounding += 0.501 * std::max(largest / 32767, 0x1p-130) * weight_sum;
      }
      result.sums.push_back(sum);
      result.bounds.push_back(rounding + 2e-6 * magnitude * largest_weight + 1e-44);
    }
  }
  return result;
}

void expect_within_bounds(const HostTensor& out, const Reference& expected) {
  for (std::size_t i = 0; i < expected.sums.size(); ++i) {
    ASSERT_LE(std::abs(element(out, i) - expected.sums[i]), expected.bounds[i])
        << "element " << i << " is " << element(out, i) << ", not " << expected.sums[i];
  }
}

double relative_error(const HostTensor& out, const Reference& expected) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < expected.sums.size(); ++i) {
    error += std::pow(element(out, i) - expected.sums[i], 2);
    norm += std::pow(expected.sums[i], 2);
  }
  return std::sqrt(error / norm);
}

struct QuantCase {
  DType dtype;
  bool packed;  // weights in panels, or else as a file has them
};

class QuantLinear : public testing::TestWithParam<QuantCase> {
 protected:
  DType type() const { return GetParam().dtype; }
  std::int64_t block() const { return info(type()).block_elements; }
  HostTensor product(const HostTensor& x, const HostTensor& w, RunOptions options = {}) const {
    return linear(x, GetParam().packed ? packed(w) : w, options);
  }
};

std::vector<QuantCase> quant_cases() {
  std::vector<QuantCase> cases;
  for (const DType dtype : kBlockTypes) {
    cases.push_back({dtype, false});
    cases.push_back({dtype, true});
  }
  return cases;
}

TEST_P(QuantLinear, AgreesWithFloat64AtEveryLevel) {
  std::uint32_t seed = 1;
  for (const std::int64_t rows : {1, 2, 3, 5, 8, 9, 17}) {
    for (const std::int64_t columns : {1, 2, 3, 15, 16, 17, 33, 65}) {
      for (const std::int64_t blocks : {1, 2, 3, 11}) {
        const HostTensor x = random_tensor(DType::f32, {rows, blocks * block()}, ++seed);
        const HostTensor w = random_blocks(type(), columns, blocks * block(), ++seed);
        const Reference expected = reference(x, w);
        for (const Isa level : levels()) {
          const IsaScope scope(level);
          expect_within_bounds(product(x, w), expected);
          if (HasFatalFailure()) {
            FAIL() << rows << " rows, " << columns << " columns, " << blocks << " blocks, level "
                   << static_cast<int>(level);
          }
        }
      }
    }
  }
}

TEST_P(QuantLinear, PanelsGiveTheSameBitsAtEveryLevelThatFuses) {
  if (!GetParam().packed) GTEST_SKIP() << "blocks as files have them are summed by lanes";
  const std::int64_t depth = 3 * block();
  const HostTensor w = random_blocks(type(), 37, depth, 2);
  for (const std::int64_t rows : {1, 2, 3, 11}) {
    const HostTensor x = random_tensor(DType::f32, {rows, depth}, 3);
    std::optional<HostTensor> first;
    for (const Isa level : levels()) {
      if (level == Isa::portable) continue;
      const IsaScope scope(level);
      HostTensor out = product(x, w);
      if (!first) {
        first = std::move(out);
      } else {
        EXPECT_EQ(out.bytes, first->bytes) << setting_of(level) << ", rows " << rows;
      }
    }
  }
}

TEST_P(QuantLinear, RoundingOfActivationsCostsLittle) {
  // Of 256 normal deviates the largest is about 2.8: steps of 2.8 / 32767 err by their 12th part's
  // root, 2.5e-5.
  const HostTensor x = random_tensor(DType::f32, {4, 2048}, 7);
  HostTensor w = make_tensor(type(), {40, 2048});
  const HostTensor normal = random_tensor(DType::f32, {40, 2048}, 8);
  quantize_row(type(), reinterpret_cast<const float*>(normal.bytes.data()), w.bytes.data(),
               40 * 2048);
  const Reference expected = reference(x, w);
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    EXPECT_LT(relative_error(product(x, w), expected), 3.5e-5) << static_cast<int>(level);
  }
}

TEST_P(QuantLinear, ARowHasTheSameBitsAloneAndInCompany) {
  constexpr std::int64_t kRows = 70, kColumns = 150;
  const HostTensor x = random_tensor(DType::f32, {kRows, 3 * block()}, 5);
  const HostTensor w = random_blocks(type(), kColumns, 3 * block(), 6);
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    const HostTensor all = product(x, w);
    for (const int threads : {1, 2, 5}) {
      for (std::int64_t count = 1; count <= kRows; count += count < 15 ? 1 : 11) {
        const std::int64_t first = (count * 7) % (kRows - count + 1);
        const HostTensor some = product(rows_of(x, first, count), w, {threads});
        ASSERT_TRUE(same_bytes(all, static_cast<std::size_t>(first * kColumns) * sizeof(float),
                               some, 0, some.bytes.size()))
            << first << " + " << count << " rows, " << threads << " threads, level "
            << static_cast<int>(level);
      }
    }
  }
}

TEST_P(QuantLinear, AnExtentLeavesLaterRowsAlone) {
  constexpr std::size_t kRowBytes = 5 * sizeof(float);
  HostTensor x = random_tensor(DType::f32, {11, block()}, 5);
  const HostTensor w = random_blocks(type(), 5, block(), 6);
  const HostTensor all = product(x, w);
  for (const std::int64_t extent : {0, 1, 2, 9, 11, 12}) {
    const HostTensor some = product(x, w, {.threads = 2, .extent = extent});
    const std::size_t written =
        kRowBytes * static_cast<std::size_t>(std::min<std::int64_t>(extent, 11));
    EXPECT_TRUE(same_bytes(all, 0, some, 0, written));
    for (std::size_t i = written; i < some.bytes.size(); ++i) ASSERT_EQ(some.bytes[i], kUntouched);
  }
}

TEST_P(QuantLinear, ExtremeActivations) {
  const std::int64_t depth = 4 * block();
  const HostTensor w = random_blocks(type(), 9, depth, 3);
  HostTensor x = random_tensor(DType::f32, {8, depth}, 4);
  const auto row = [&](std::int64_t r) { return x.as<float>() + r * depth; };
  const float scales[] = {0.0f, 1e-42f, 1e-38f, 1e-35f, 1e-30f, 1e30f, 1e33f, 1.0f};
  for (std::int64_t r = 0; r < 8; ++r) {
    for (std::int64_t k = 0; k < depth; ++k) row(r)[k] *= scales[r];
  }
  row(7)[5] = 1e4f;           // an outlier
  row(7)[depth - 1] = -1e4f;  // another, in another block
  const Reference expected = reference(x, w);
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    const HostTensor out = product(x, w);
    expect_within_bounds(out, expected);
    for (std::size_t c = 0; c < 9; ++c) EXPECT_EQ(element(out, c), 0.0);
  }
}

TEST_P(QuantLinear, ExtremeWeights) {
  const HostTensor x = random_tensor(DType::f32, {3, 2 * block()}, 4);
  for (const float scale : {0.0f, 6e-8f, 1e-5f, 2e4f}) {
    const HostTensor w = random_blocks(type(), 7, 2 * block(), 5, scale);
    const Reference expected = reference(x, w);
    for (const Isa level : levels()) {
      const IsaScope level_scope(level);
      const HostTensor out = product(x, w);
      if (scale > 0) {
        expect_within_bounds(out, expected);
      } else {
        for (std::size_t i = 0; i < expected.sums.size(); ++i) EXPECT_EQ(element(out, i), 0.0);
      }
    }
  }
}

TEST_P(QuantLinear, TheLargestSumsFit) {
  // All codes, sub-scales and activations at their largest: what fills 32 bits with q6_K.
  for (const int byte : {0x00, 0x80, 0xff, 0x7f}) {
    HostTensor w = random_blocks(type(), 2, 256, 1);
    std::fill(w.bytes.begin(), w.bytes.end(), static_cast<std::byte>(byte));
    const f16 one(1.0f);
    const auto block_bytes = static_cast<std::size_t>(info(type()).block_bytes);
    for (std::size_t at = 0; at < w.bytes.size(); at += block_bytes) {
      for (const std::size_t offset : scale_offsets(type())) {
        std::memcpy(w.bytes.data() + at + offset, &one, sizeof one);
      }
    }
    HostTensor x = make_tensor(DType::f32, {2, 256});
    std::fill_n(x.as<float>(), 256, -3.0f);
    std::fill_n(x.as<float>() + 256, 256, 3.0f);
    const Reference expected = reference(x, w);
    for (const Isa level : levels()) {
      const IsaScope scope(level);
      expect_within_bounds(product(x, w), expected);
    }
  }
}

TEST_P(QuantLinear, WhatIsNotFiniteStaysInItsRowAndColumn) {
  constexpr float kBad[] = {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  const std::int64_t depth = 3 * block();
  const HostTensor clean = random_tensor(DType::f32, {6, depth}, 1);
  const HostTensor clean_weights = random_blocks(type(), 5, depth, 2);
  HostTensor x = clean, w = clean_weights;
  for (std::int64_t i = 0; i < 3; ++i) x.as<float>()[2 * i * depth + depth - 1 - i] = kBad[i];
  constexpr std::uint16_t kInfinity = 0x7c00;
  std::memcpy(w.bytes.data() + row_bytes(type(), depth) * 3 + scale_offsets(type())[0], &kInfinity,
              sizeof kInfinity);
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    const HostTensor want = product(clean, clean_weights), out = product(x, w);
    for (std::size_t r = 0; r < 6; ++r) {
      for (std::size_t c = 0; c < 5; ++c) {
        const double value = element(out, r * 5 + c);
        if (r % 2 == 0) {
          EXPECT_TRUE(std::isnan(value)) << r << ' ' << c;
        } else if (c == 3) {
          EXPECT_FALSE(std::isfinite(value)) << r << ' ' << c;
        } else {
          EXPECT_EQ(value, element(want, r * 5 + c)) << r << ' ' << c;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QuantLinear, testing::ValuesIn(quant_cases()),
                         [](const auto& test) {
                           return std::string(to_string(test.param.dtype)) +
                                  (test.param.packed ? "_packed" : "");
                         });

TEST(QuantLinear, SeveralWeightsOfSeveralTypesShareAnInput) {
  const HostTensor x = random_tensor(DType::f32, {9, 512}, 1);
  const std::vector<HostTensor> weights = {random_blocks(DType::q4_K, 100, 512, 2),
                                           random_tensor(DType::f16, {33, 512}, 3),
                                           random_blocks(DType::q6_K, 0, 512, 4),
                                           packed(random_tensor(DType::f32, {65, 512}, 5)),
                                           packed(random_blocks(DType::q5_0, 37, 512, 7)),
                                           random_blocks(DType::q8_0, 70, 512, 6)};
  std::vector<HostTensor> inputs = {x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  for (const int threads : {1, 2, 8}) {
    const std::vector<HostTensor> together =
        run_kernel(prepare_linear, Linear{}, inputs, {threads});
    ASSERT_EQ(together.size(), weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(together[i].bytes, linear(x, weights[i]).bytes) << i;
    }
  }
}

TEST(QuantLinear, DepthsThatEndWithinARoundedBlock) {
  for (const std::int64_t depth : {32, 96, 224, 288, 896}) {
    for (const DType dtype : {DType::q4_0, DType::q5_1, DType::q8_0, DType::iq4_nl}) {
      for (const std::int64_t rows : {1, 2, 4, 7, 12}) {
        const HostTensor x = random_tensor(DType::f32, {rows, depth}, 1);
        const HostTensor w = random_blocks(dtype, 50, depth, 2);
        const Reference expected = reference(x, w);
        for (const Isa level : levels()) {
          const IsaScope scope(level);
          expect_within_bounds(linear(x, packed(w)), expected);
        }
      }
    }
  }
}

TEST(QuantLinear, PrefersPanelsThatItsWeightsFill) {
  for (const DType dtype : kBlockTypes) {
    const std::vector<TensorSpec> specs = {
        {DType::f32, {2, 256}}, {dtype, {16, 256}}, {dtype, {15, 256}}};
    EXPECT_EQ(preferred_weight_layout(Linear{}, 1, specs), LayoutKind::panel16);
    EXPECT_EQ(preferred_weight_layout(Linear{}, 2, specs), std::nullopt);
  }
}

TEST(QuantLinear, RowsMayBeSpacedOut) {
  const OperandSpec spaced{{DType::f32, {5, 2, 64}}, {LayoutKind::strided, {200, 100, 1}}};
  const HostTensor x = random_tensor(spaced, 1);
  HostTensor dense = make_tensor(DType::f32, {5, 2, 64});
  for (std::size_t i = 0; i < 640; ++i) set_element(dense, i, element(x, i / 64 * 100 + i % 64));
  const HostTensor w = random_blocks(DType::q5_1, 17, 64, 2);
  EXPECT_EQ(linear(x, w).bytes, linear(dense, w).bytes);
}

TEST(QuantLinear, AVectorAndNoRowsAndNoDepth) {
  const HostTensor w = random_blocks(DType::q5_0, 17, 64, 2);
  const HostTensor x = random_tensor(DType::f32, {64}, 1);
  HostTensor row = x;
  row.operand = OperandSpec::contiguous({DType::f32, {1, 64}});
  EXPECT_EQ(linear(x, w).bytes, linear(row, w).bytes);
  EXPECT_EQ(linear(x, packed(w)).bytes, linear(row, packed(w)).bytes);
  EXPECT_TRUE(linear(make_tensor(DType::f32, {0, 64}), w).bytes.empty());
  EXPECT_TRUE(linear(make_tensor(DType::f32, {0, 64}), packed(w)).bytes.empty());
  EXPECT_TRUE(linear(row, packed(random_blocks(DType::q5_0, 0, 64, 2))).bytes.empty());
  for (const std::int64_t rows : {1, 2, 3, 9}) {
    const HostTensor no_depth = random_blocks(DType::q5_0, 17, 0, 1);
    for (const HostTensor& weight : {no_depth, packed(no_depth)}) {
      const HostTensor none = linear(make_tensor(DType::f32, {rows, 0}), weight);
      for (std::int64_t i = 0; i < 17 * rows; ++i) {
        EXPECT_EQ(element(none, static_cast<std::size_t>(i)), 0.0);
      }
    }
  }
}

}  // namespace
}  // namespace heddle::cpu
