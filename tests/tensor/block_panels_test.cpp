#include "tensor/block_panels.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {
namespace {

constexpr DType kTypes[] = {DType::q4_0, DType::q4_1, DType::q5_0,   DType::q5_1,
                            DType::q8_0, DType::q2_K, DType::q3_K,   DType::q4_K,
                            DType::q5_K, DType::q6_K, DType::iq4_nl, DType::iq4_xs};

std::vector<std::byte> random_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::mt19937 generator(1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(generator());
  return bytes;
}

TEST(BlockPanels, FieldsCoverABlockOnce) {
  for (const DType dtype : kTypes) {
    std::vector<int> times(static_cast<std::size_t>(info(dtype).block_bytes));
    for (const BlockField& field : block_fields(dtype)) {
      for (std::size_t i = 0; i < field.bytes; ++i) ++times.at(field.offset + i);
    }
    for (const int count : times) EXPECT_EQ(count, 1) << to_string(dtype);
  }
  EXPECT_TRUE(block_fields(DType::f16).empty());
}

TEST(BlockPanels, WhatWasPackedCanBeUnpacked) {
  constexpr std::int64_t kBlocks = 3;
  for (const DType dtype : kTypes) {
    const auto block = static_cast<std::size_t>(info(dtype).block_bytes);
    const std::size_t row = kBlocks * block, apart = row + 5;
    for (const std::int64_t rows : {1, 9, 16}) {
      const std::vector<std::byte> from = random_bytes(static_cast<std::size_t>(rows) * apart);
      std::vector<std::byte> panel(kPanelBlocks * row, std::byte{0x5a});
      pack_block_panel(dtype, from.data(), apart, rows, kBlocks, panel.data());
      std::vector<std::byte> one(row), two(2 * block);
      for (std::int64_t r = 0; r < kPanelBlocks; ++r) {
        unpack_block_row(dtype, panel.data(), r, 0, kBlocks, one.data());
        unpack_block_row(dtype, panel.data(), r, 1, 2, two.data());
        for (std::size_t i = 0; i < row; ++i) {
          const auto at = static_cast<std::size_t>(r) * apart + i;
          ASSERT_EQ(one[i], r < rows ? from[at] : std::byte{}) << to_string(dtype) << ' ' << i;
          if (i >= block) {
            ASSERT_EQ(two[i - block], one[i]);
          }
        }
      }
    }
  }
}

TEST(BlockPanels, NeighboursInARowAreNeighboursInThePanel) {
  // q8_0: elements 4i and 4i + 1 are the low, 4i + 2 and 4i + 3 the high bytes of a row's 16-bit
  // integers of vector i.
  std::vector<std::byte> from(kPanelBlocks * 34), panel(kPanelBlocks * 34);
  for (std::size_t r = 0; r < kPanelBlocks; ++r) {
    for (std::size_t e = 0; e < 32; ++e) from[34 * r + 2 + e] = static_cast<std::byte>(32 * r + e);
  }
  pack_block_panel(DType::q8_0, from.data(), 34, kPanelBlocks, 1, panel.data());
  for (std::size_t r = 0; r < kPanelBlocks; ++r) {
    for (std::size_t i = 0; i < 8; ++i) {
      const std::byte* four = &panel[32 + 64 * i + 4 * r];
      const auto element = [&](std::size_t e) {
        return static_cast<std::byte>(32 * r + 4 * i + e);
      };
      EXPECT_EQ(four[0], element(0));
      EXPECT_EQ(four[1], element(2));
      EXPECT_EQ(four[2], element(1));
      EXPECT_EQ(four[3], element(3));
    }
  }
}

}  // namespace
}  // namespace heddle
