#include <algorithm>
#include <bit>

#include "device/cpu/dwindling.h"
#include "device/cpu/forms.h"
#include "device/cpu/linear_run.h"

namespace heddle::cpu {
namespace {

// ---- Chunks

/// When the last of some threads ends that take chunks in order, each as soon as it is free, and
/// take as long as the chunk has items.
std::int64_t time_of(const Dwindling& share, std::size_t threads) {
  std::vector<std::int64_t> free_at(threads, 0);
  for (std::int64_t chunk = 0; chunk < share.chunks(); ++chunk) {
    const auto [begin, end] = share.range(chunk);
    *std::ranges::min_element(free_at) += end - begin;
  }
  return *std::ranges::max_element(free_at);
}

TEST(Dwindling, CoversEverythingOnceAndKeepsNobodyWaiting) {
  for (const std::int64_t threads : {1, 2, 3, 8, 64}) {
    for (const std::int64_t least : {1, 2, 7}) {
      for (std::int64_t count = 0; count < 700; ++count) {
        const Dwindling share(count, least, threads);
        std::int64_t next = 0;
        for (std::int64_t chunk = 0; chunk < share.chunks(); ++chunk) {
          const auto [begin, end] = share.range(chunk);
          ASSERT_EQ(begin, next);
          ASSERT_GT(end, begin);
          next = end;
        }
        ASSERT_EQ(next, count) << threads << " threads, at least " << least;
        ASSERT_LE(time_of(share, static_cast<std::size_t>(threads)),
                  (count + threads - 1) / threads + least)
            << count << " items, " << threads << " threads, at least " << least;
      }
    }
  }
  EXPECT_LE(Dwindling(9496, 1, 2).chunks(), 24) << "long runs";
}

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

#if defined(__x86_64__)

// Which of the two serves follows from the processor, so that only one of them would be tested.
TEST(Linear, HalvesConvertedForEachTileGiveTheBitsOfThoseKeptForManyRows) {
  if (!has_level(Isa::avx512)) GTEST_SKIP() << "this processor has no AVX-512";
  const IsaScope scope(Isa::avx512);
  LinearForms keeping = forms_for(Isa::avx512, false), converting = keeping;
  keeping.exact = &avx512::kProducts;
  converting.exact = &avx512::kConvertingProducts;
  std::uint32_t seed = 77;
  for (const std::int64_t rows : {1, 12, 13, 14, 97, 300}) {
    for (const std::int64_t columns : {16, 48, 64, 77, 130}) {
      for (const std::int64_t depth : {0, 1, 16, 17, 128, 129, 300, 1024, 1025, 2300}) {
        const HostTensor x = random_tensor(DType::f32, {rows, depth}, ++seed);
        const HostTensor w = packed(random_tensor(DType::f16, {columns, depth}, ++seed));
        const auto result = [&](const LinearForms& forms) {
          const FormsScope form(forms);
          return linear(x, w).bytes;
        };
        const std::vector<std::byte> converted = result(converting);
        ASSERT_EQ(converted, result(keeping))
            << rows << " rows, " << columns << " columns, depth " << depth;
        if (rows < 2) continue;
        const FormsScope form(converting);
        const std::vector<std::byte> alone = linear(rows_of(x, rows - 1, 1), w).bytes;
        ASSERT_TRUE(std::equal(alone.rbegin(), alone.rend(), converted.rbegin()))
            << rows << " rows, " << columns << " columns, depth " << depth;
      }
    }
  }
}

#endif

class LinearSizes : public testing::TestWithParam<DType> {};

TEST_P(LinearSizes, AgreeWithFloat64AtEveryLevelInBothLayouts) {
  std::uint32_t seed = 1;
  for (const std::int64_t rows : {1, 3, 7, 17, 97}) {
    for (const std::int64_t columns : {1, 15, 16, 17, 33, 65, 130}) {
      for (const std::int64_t depth : {0, 1, 15, 17, 128, 300}) {
        const HostTensor x = random_tensor(DType::f32, {rows, depth}, ++seed);
        const HostTensor weight = random_tensor(GetParam(), {columns, depth}, ++seed);
        const PlainReference expected = plain_reference(x, weight);
        for (const Isa level : levels()) {
          const IsaScope scope(level);
          for (const HostTensor& w : {weight, packed(weight)}) {
            const HostTensor out = run_kernel(prepare_linear, Linear{}, {x, w})[0];
            for (std::size_t i = 0; i < expected.sums.size(); ++i) {
              ASSERT_NEAR(element(out, i), expected.sums[i], 1e-6 * expected.magnitudes[i])
                  << to_string(w.operand) << " rows " << rows << " element " << i << " level "
                  << static_cast<int>(level);
            }
          }
        }
      }
    }
  }
}

TEST_P(LinearSizes, ARowHasTheSameBitsAloneAndInCompany) {
  constexpr std::int64_t kRows = 67, kDepth = 300;
  const HostTensor x = random_tensor(DType::f32, {kRows, kDepth}, 5);
  const HostTensor weight = random_tensor(GetParam(), {150, kDepth}, 6);
  const std::size_t row_size = 150 * sizeof(float);
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    for (const HostTensor& w : {weight, packed(weight)}) {
      const HostTensor all = run_kernel(prepare_linear, Linear{}, {x, w})[0];
      for (const int threads : {1, 2, 8}) {
        for (std::int64_t count = 1; count <= kRows; ++count) {
          const std::int64_t first = (count * 7) % (kRows - count + 1);
          const HostTensor some =
              run_kernel(prepare_linear, Linear{}, {rows_of(x, first, count), w}, {threads})[0];
          ASSERT_TRUE(same_bytes(all, static_cast<std::size_t>(first) * row_size, some, 0,
                                 some.bytes.size()))
              << to_string(w.operand) << " rows " << first << " + " << count << " threads "
              << threads << " level " << static_cast<int>(level);
        }
      }
    }
  }
}

TEST_P(LinearSizes, ErrorsGrowSlowlyWithDepth) {
  const HostTensor x = random_tensor(DType::f32, {2, 20000}, 7);
  const HostTensor weight = random_tensor(GetParam(), {40, 20000}, 8);
  const PlainReference expected = plain_reference(x, weight);
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    for (const HostTensor& w : {weight, packed(weight)}) {
      const HostTensor out = run_kernel(prepare_linear, Linear{}, {x, w})[0];
      double error = 0, norm = 0;
      for (std::size_t i = 0; i < expected.sums.size(); ++i) {
        error += std::pow(element(out, i) - expected.sums[i], 2);
        norm += std::pow(expected.sums[i], 2);
      }
      EXPECT_LT(std::sqrt(error / norm), 1e-6) << static_cast<int>(level);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LinearSizes, testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST(Linear, SeveralWeightsOfSeveralTypesShareAnInput) {
  const HostTensor x = random_tensor(DType::f32, {9, 70}, 1);
  const std::vector<HostTensor> weights = {
      random_tensor(DType::f16, {100, 70}, 2), packed(random_tensor(DType::bf16, {33, 70}, 3)),
      random_tensor(DType::f32, {0, 70}, 4), packed(random_tensor(DType::f32, {65, 70}, 5))};
  std::vector<HostTensor> inputs = {x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  for (const int threads : {1, 2, 8}) {
    const std::vector<HostTensor> together =
        run_kernel(prepare_linear, Linear{}, inputs, {threads});
    ASSERT_EQ(together.size(), weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(together[i].bytes, run_kernel(prepare_linear, Linear{}, {x, weights[i]})[0].bytes)
          << i;
    }
  }
}

TEST(Linear, HowRowsAreCutIntoBlocksChangesNothing) {
  constexpr std::int64_t kRows = 600, kDepth = 288, kColumns = 70;
  const HostTensor x = random_tensor(DType::f32, {kRows, kDepth}, 1);
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    for (const HostTensor& w : {packed(random_tensor(DType::f16, {kColumns, kDepth}, 2)),
                                packed(random_blocks(DType::q4_0, kColumns, kDepth, 3))}) {
      const HostTensor all = linear(x, w);
      for (const int threads : {1, 2, 8}) {
        for (const std::int64_t first : {0, 255, 256, 257, 511, 599}) {
          const HostTensor some = linear(rows_of(x, first, kRows - first), w, {threads});
          ASSERT_TRUE(same_bytes(all, static_cast<std::size_t>(first * kColumns) * sizeof(float),
                                 some, 0, some.bytes.size()))
              << to_string(w.operand) << " from row " << first << ", " << threads << " threads, "
              << setting_of(level);
        }
      }
    }
  }
}

TEST(Linear, AnExtentLeavesLaterRowsAlone) {
  const HostTensor x = random_tensor(DType::f32, {8, 3, 20}, 1);
  const HostTensor weight = random_tensor(DType::f16, {17, 20}, 2);
  const HostTensor all = run_kernel(prepare_linear, Linear{}, {x, weight})[0];
  for (const std::int64_t extent : {0, 1, 5, 8, 9}) {
    const HostTensor some =
        run_kernel(prepare_linear, Linear{}, {x, weight}, {.extent = extent})[0];
    const std::size_t written =
        static_cast<std::size_t>(std::min<std::int64_t>(extent, 8)) * 3 * 17 * sizeof(float);
    EXPECT_TRUE(same_bytes(all, 0, some, 0, written));
    for (std::size_t i = written; i < some.bytes.size(); ++i) ASSERT_EQ(some.bytes[i], kUntouched);
  }
}

TEST(Linear, RowsMayBeSpacedOut) {
  const OperandSpec spaced{{DType::f32, {5, 2, 20}}, {LayoutKind::strided, {60, 30, 1}}};
  const HostTensor x = random_tensor(spaced, 1);
  HostTensor dense = make_tensor(DType::f32, {5, 2, 20});
  for (std::size_t i = 0; i < 200; ++i) set_element(dense, i, element(x, i / 20 * 30 + i % 20));
  const HostTensor weight = packed(random_tensor(DType::f16, {17, 20}, 2));
  EXPECT_EQ(run_kernel(prepare_linear, Linear{}, {x, weight})[0].bytes,
            run_kernel(prepare_linear, Linear{}, {dense, weight})[0].bytes);
}

TEST(Linear, AVectorIsOneRow) {
  const HostTensor x = random_tensor(DType::f32, {20}, 1);
  const HostTensor weight = random_tensor(DType::f16, {17, 20}, 2);
  HostTensor row = x;
  row.operand = OperandSpec::contiguous({DType::f32, {1, 20}});
  EXPECT_EQ(run_kernel(prepare_linear, Linear{}, {x, weight})[0].bytes,
            run_kernel(prepare_linear, Linear{}, {row, weight})[0].bytes);
}

TEST(Linear, NoRowsGiveNoOutput) {
  const HostTensor out = run_kernel(
      prepare_linear, Linear{},
      {random_tensor(DType::f32, {0, 20}, 1), random_tensor(DType::f16, {17, 20}, 2)})[0];
  EXPECT_TRUE(out.bytes.empty());
}

TEST(Linear, WhatIsNotFiniteStaysInItsRowAndColumn) {
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    HostTensor x = random_tensor(DType::f32, {8, 40}, 1);
    HostTensor weight = random_tensor(DType::f16, {20, 40}, 2);
    x.as<float>()[3 * 40 + 7] = std::numeric_limits<float>::quiet_NaN();
    set_element(weight, 18 * 40 + 39, std::numeric_limits<double>::infinity());
    for (const HostTensor& w : {weight, packed(weight)}) {
      const HostTensor out = run_kernel(prepare_linear, Linear{}, {x, w})[0];
      for (std::size_t r = 0; r < 8; ++r) {
        for (std::size_t c = 0; c < 20; ++c) {
          const double value = element(out, r * 20 + c);
          if (r == 3) {
            EXPECT_TRUE(std::isnan(value));
          } else {
            EXPECT_EQ(std::isinf(value), c == 18) << r << ' ' << c;
          }
        }
      }
    }
  }
}

TEST(Linear, RefusesWhatItCannotRead) {
  const HostTensor weight = random_tensor(DType::f32, {4, 20}, 2);
  const OperandSpec gaps{{DType::f32, {3, 20}}, {LayoutKind::strided, {40, 2}}};
  EXPECT_NE(prepare(prepare_linear, Linear{}, {make_tensor(gaps), weight}).reason.find("x f32"),
            std::string::npos);
  const OperandSpec wide{{DType::f32, {4, 20}}, {LayoutKind::strided, {21, 1}}};
  EXPECT_NE(
      prepare(prepare_linear, Linear{}, {random_tensor(DType::f32, {3, 20}, 1), make_tensor(wide)})
          .reason.find("contiguous or packed"),
      std::string::npos);
}

TEST(Linear, PrefersPanelsForPlainWeightsThatFillOne) {
  const std::vector<TensorSpec> specs = {
      {DType::f32, {2, 64}}, {DType::f16, {64, 64}}, {DType::f32, {15, 64}}};
  EXPECT_EQ(preferred_weight_layout(Linear{}, 1, specs), LayoutKind::panel16);
  EXPECT_EQ(preferred_weight_layout(Linear{}, 0, specs), std::nullopt);
  EXPECT_EQ(preferred_weight_layout(Linear{}, 2, specs), std::nullopt);
  EXPECT_EQ(preferred_weight_layout(Matmul{}, 1, specs), std::nullopt);
}

// ---- Repack

TEST(Repack, PutsEveryElementWhereTheLayoutSays) {
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::bool_}) {
    for (const std::int64_t rows : {0, 1, 15, 16, 17, 40}) {
      for (const std::int64_t columns : {0, 1, 63, 65}) {
        const HostTensor weight = random_tensor(dtype, {rows, columns}, 3);
        const HostTensor out = run_kernel(prepare_repack, Repack{}, {weight}, {2})[0];
        ASSERT_EQ(out.bytes.size(), packed_bytes(weight.operand.spec, LayoutKind::panel16));
        for (std::int64_t o = 0; o < (rows + 15) / 16 * 16; ++o) {
          for (std::int64_t i = 0; i < columns; ++i) {
            const double expected =
                o < rows ? element(weight, static_cast<std::size_t>(o * columns + i)) : 0.0;
            const auto at = static_cast<std::size_t>((o / 16 * columns + i) * 16 + o % 16);
            ASSERT_EQ(element(out, at), expected) << o << ' ' << i;
          }
        }
      }
    }
  }
}

TEST(Repack, ReadsAnyStrides) {
  const OperandSpec columns_first{{DType::f16, {20, 7}}, {LayoutKind::strided, {1, 20}}};
  const HostTensor weight = random_tensor(columns_first, 1);
  const HostTensor out = packed(weight);
  for (std::size_t o = 0; o < 20; ++o) {
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(element(out, (o / 16 * 7 + i) * 16 + o % 16), element(weight, i * 20 + o));
    }
  }
}

}  // namespace
}  // namespace heddle::cpu
