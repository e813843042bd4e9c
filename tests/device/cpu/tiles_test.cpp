// Kernels of matrix tiles, run with tiles that are simulated: against float64, bit by bit against
// the other forms, and that tiles are let go of whatever happens.
#include <array>
#include <limits>
#include <stdexcept>

#include "device/cpu/forms.h"
#include "device/cpu/linear_run.h"
#include "device/cpu/simulated_tiles.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

/// The level that the tile kernels are built for, but for the tiles.
bool can_simulate() {
  return simulated::quant_panel_loops() && isa() >= Isa::avx512 && has_avx512_bf16();
}

LinearForms tile_forms() {
  LinearForms forms = forms_for(Isa::avx512, true);
  forms.panels = simulated::quant_panel_loops();
  forms.rounded = simulated::rounded_products();
  return forms;
}

class TileKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_simulate()) GTEST_SKIP() << "tile kernels need AVX-512 with BF16 around the tiles";
    simulated::reset_tile_counts();
  }
  void TearDown() override {
    simulated::fail_after(0);
    const simulated::TileCounts counts = simulated::tile_counts();
    EXPECT_EQ(counts.configured, counts.released);
  }
};

HostTensor with_tiles(const HostTensor& x, const HostTensor& w, RunOptions options = {}) {
  const FormsScope scope(tile_forms());
  return linear(x, w, options);
}

/// With AVX-512, which every processor that has tiles has too.
HostTensor without_tiles(const HostTensor& x, const HostTensor& w) {
  const FormsScope scope(forms_for(Isa::avx512, true));
  return linear(x, w);
}

// ---- The simulation

struct Config {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

TEST_F(TileKernels, SimulatedBytesAreSignedAsTheInstructionSays) {
  Config config;
  for (int tile = 0; tile < 3; ++tile) config.rows[tile] = 1, config.row_bytes[tile] = 4;
  simulated::configure(&config);
  const std::array<std::uint8_t, 4> a{255, 1, 2, 128}, b{255, 3, 128, 1};
  simulated::load(1, a.data(), 4);
  simulated::load(2, b.data(), 4);
  std::int32_t sum = 0;
  for (const bool is_signed : {false, true}) {
    simulated::zero(0);
    simulated::dot_bytes(0, 1, 2, is_signed);
    simulated::store(0, &sum, 4);
    EXPECT_EQ(sum, is_signed ? 1 + 3 - 256 - 128 : -255 + 3 - 256 + 128);
  }
  simulated::release();
}

TEST_F(TileKernels, TheSimulationRefusesWhatAProcessorWould) {
  EXPECT_THROW(simulated::zero(0), std::logic_error);
  EXPECT_THROW(simulated::release(), std::logic_error);
  Config config;
  config.rows[0] = 17, config.row_bytes[0] = 64;
  EXPECT_THROW(simulated::configure(&config), std::logic_error);
  for (int tile = 0; tile < 3; ++tile) config.rows[tile] = 2, config.row_bytes[tile] = 64;
  simulated::configure(&config);
  EXPECT_THROW(simulated::dot_bytes(0, 1, 2, true), std::logic_error);  // 16 rows of b are wanted
  EXPECT_THROW(simulated::zero(3), std::logic_error);
  EXPECT_THROW(simulated::configure(&config), std::logic_error);
  simulated::release();
}

// ---- Integers

class ByteTiles : public TileKernels, public testing::WithParamInterface<DType> {
 protected:
  std::int64_t block() const { return info(GetParam()).block_elements; }
};

TEST_P(ByteTiles, GiveTheBitsOfTheOtherForms) {
  std::uint32_t seed = 1;
  for (const std::int64_t rows : {1, 8, 9, 15, 16, 17, 31, 33, 70, 97}) {
    for (const std::int64_t columns : {1, 15, 16, 17, 64, 130}) {
      for (const std::int64_t blocks : {1, 2, 3, 11}) {
        const HostTensor x = random_tensor(DType::f32, {rows, blocks * block()}, ++seed);
        const HostTensor w = packed(random_blocks(GetParam(), columns, blocks * block(), ++seed));
        ASSERT_EQ(with_tiles(x, w).bytes, without_tiles(x, w).bytes)
            << rows << " rows, " << columns << " columns, " << blocks << " blocks";
      }
    }
  }
  EXPECT_GT(simulated::tile_counts().products, 0);
}

TEST_P(ByteTiles, TakeTheLargestCodes) {
  // Activations of 32767 and -32767 with weights of all bits set, and of none.
  for (const int byte : {0x00, 0x80, 0xff, 0x7f}) {
    HostTensor w = random_blocks(GetParam(), 16, 2 * 256, 1);
    const auto bytes = static_cast<std::size_t>(info(GetParam()).block_bytes);
    const HostTensor scales = w;
    std::fill(w.bytes.begin(), w.bytes.end(), static_cast<std::byte>(byte));
    for (std::size_t at = 0; at < w.bytes.size(); at += bytes) {
      for (const std::size_t offset : scale_offsets(GetParam())) {
        std::memcpy(w.bytes.data() + at + offset, scales.bytes.data() + at + offset, 2);
      }
    }
    HostTensor x = make_tensor(DType::f32, {16, 2 * 256});
    for (std::size_t i = 0; i < 16 * 512; ++i) x.as<float>()[i] = i / 512 % 2 == 0 ? 3.0f : -3.0f;
    EXPECT_EQ(with_tiles(x, packed(w)).bytes, without_tiles(x, packed(w)).bytes) << byte;
  }
}

TEST_P(ByteTiles, WhatIsNotFiniteStaysInItsRow) {
  HostTensor x = random_tensor(DType::f32, {20, 2 * block()}, 1);
  const HostTensor w = packed(random_blocks(GetParam(), 40, 2 * block(), 2));
  x.as<float>()[17 * 2 * block()] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(with_tiles(x, w).bytes, without_tiles(x, w).bytes);
}

INSTANTIATE_TEST_SUITE_P(Types, ByteTiles, testing::ValuesIn(kBlockTypes),
                         [](const auto& type) { return std::string(to_string(type.param)); });

// ---- bf16

/// Columns that end within a panel, in every number of rows that fills tiles in another way.
TEST_F(TileKernels, RoundedProductsAreThoseOfRoundedOperands) {
  std::uint32_t seed = 1;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t rows : {1, 15, 16, 17, 33, 97}) {
      for (const std::int64_t columns : {1, 16, 17, 65}) {
        for (const std::int64_t depth : {0, 1, 2, 31, 32, 33, 511, 513}) {
          const HostTensor x = random_tensor(DType::f32, {rows, depth}, ++seed);
          const HostTensor w = random_tensor(dtype, {columns, depth}, ++seed);
          const PlainReference expected = plain_reference(as_bf16(x), as_bf16(w));
          const HostTensor out = with_tiles(x, packed(w));
          for (std::size_t i = 0; i < expected.sums.size(); ++i) {
            ASSERT_NEAR(element(out, i), expected.sums[i], 1e-6 * expected.magnitudes[i] + 1e-37)
                << to_string(dtype) << " " << rows << " x " << depth << " -> " << columns
                << ", element " << i;
          }
        }
      }
    }
  }
}

TEST_F(TileKernels, ARowHasTheSameBitsAloneAndInCompany) {
  constexpr std::int64_t kRows = 300, kDepth = 555, kColumns = 70;
  const HostTensor x = random_tensor(DType::f32, {kRows, kDepth}, 5);
  const HostTensor w = packed(random_tensor(DType::f16, {kColumns, kDepth}, 6));
  const HostTensor all = with_tiles(x, w);
  for (const int threads : {1, 2, 5}) {
    for (const std::int64_t count : {1, 2, 15, 16, 17, 40, 255, 257, 300}) {
      const std::int64_t first = count * 7 % (kRows - count + 1);
      const HostTensor some = with_tiles(rows_of(x, first, count), w, {threads});
      ASSERT_TRUE(same_bytes(all, static_cast<std::size_t>(first * kColumns) * sizeof(float), some,
                             0, some.bytes.size()))
          << first << " + " << count << " rows, " << threads << " threads";
    }
  }
}

// ---- Tiles come and go

TEST_F(TileKernels, EveryConfigurationIsReleased) {
  const HostTensor x = random_tensor(DType::f32, {40, 512}, 1);
  for (const HostTensor& w : {packed(random_blocks(DType::q4_K, 130, 512, 2)),
                              packed(random_tensor(DType::f16, {130, 512}, 3))}) {
    simulated::reset_tile_counts();
    with_tiles(x, w, {3});
    const simulated::TileCounts counts = simulated::tile_counts();
    EXPECT_EQ(counts.configured, counts.released);
    EXPECT_GE(counts.configured, 3);  // a piece of work each
  }
}

TEST_F(TileKernels, AndWhenAKernelThrows) {
  const HostTensor x = random_tensor(DType::f32, {20, 512}, 1);
  for (const HostTensor& w : {packed(random_blocks(DType::q6_K, 70, 512, 2)),
                              packed(random_tensor(DType::bf16, {70, 512}, 3))}) {
    for (const int threads : {1, 3}) {
      for (const std::int64_t n : {1, 2, 3, 5, 8, 20, 50}) {
        simulated::fail_after(n);
        EXPECT_THROW(with_tiles(x, w, {threads}), std::runtime_error) << n;
        const simulated::TileCounts counts = simulated::tile_counts();
        EXPECT_EQ(counts.configured, counts.released) << n;
      }
    }
    simulated::fail_after(0);
    EXPECT_EQ(with_tiles(x, w).bytes, with_tiles(x, w, {3}).bytes);  // the threads are as before
  }
}

TEST(Tiles, AreRefusedByNameWhereTheyAreNot) {
  if (has_level(Isa::amx)) GTEST_SKIP() << "this processor has tiles";
  try {
    const IsaScope scope(Isa::amx);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("no AMX"));
  }
}

}  // namespace
}  // namespace heddle::cpu
