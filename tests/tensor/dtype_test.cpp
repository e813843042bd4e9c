#include "heddle/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>

#include "tensor/expect_invalid.h"

namespace heddle {
namespace {

struct Expected {
  DType dtype;
  const char* name;
  DTypeKind kind;
  int elements;
  int bytes;
};

using test::expect_invalid;
using Kind = DTypeKind;

// Block sizes from the GGUF specification (ggml's type traits).
constexpr Expected kExpected[] = {
    {DType::bool_, "bool", Kind::boolean, 1, 1},
    {DType::u8, "u8", Kind::unsigned_int, 1, 1},
    {DType::u16, "u16", Kind::unsigned_int, 1, 2},
    {DType::u32, "u32", Kind::unsigned_int, 1, 4},
    {DType::u64, "u64", Kind::unsigned_int, 1, 8},
    {DType::i8, "i8", Kind::signed_int, 1, 1},
    {DType::i16, "i16", Kind::signed_int, 1, 2},
    {DType::i32, "i32", Kind::signed_int, 1, 4},
    {DType::i64, "i64", Kind::signed_int, 1, 8},
    {DType::f16, "f16", Kind::floating, 1, 2},
    {DType::bf16, "bf16", Kind::floating, 1, 2},
    {DType::f32, "f32", Kind::floating, 1, 4},
    {DType::f64, "f64", Kind::floating, 1, 8},
    {DType::complex64, "complex64", Kind::complex, 1, 8},
    {DType::q4_0, "q4_0", Kind::block, 32, 2 + 16},
    {DType::q4_1, "q4_1", Kind::block, 32, 2 + 2 + 16},
    {DType::q5_0, "q5_0", Kind::block, 32, 2 + 4 + 16},
    {DType::q5_1, "q5_1", Kind::block, 32, 2 + 2 + 4 + 16},
    {DType::q8_0, "q8_0", Kind::block, 32, 2 + 32},
    {DType::q2_K, "q2_K", Kind::block, 256, 2 + 2 + 256 / 16 + 256 / 4},
    {DType::q3_K, "q3_K", Kind::block, 256, 2 + 256 / 4 + 256 / 8 + 12},
    {DType::q4_K, "q4_K", Kind::block, 256, 2 + 2 + 12 + 256 / 2},
    {DType::q5_K, "q5_K", Kind::block, 256, 2 + 2 + 12 + 256 / 2 + 256 / 8},
    {DType::q6_K, "q6_K", Kind::block, 256, 2 + 256 / 16 + 3 * 256 / 4},
    {DType::iq4_nl, "iq4_nl", Kind::block, 32, 2 + 16},
    {DType::iq4_xs, "iq4_xs", Kind::block, 256, 2 + 2 + 256 / 64 + 256 / 2},
};
static_assert(std::size(kExpected) == kDTypeCount);

TEST(DType, TableMatchesTheFormats) {
  for (const Expected& expected : kExpected) {
    const DTypeInfo& actual = info(expected.dtype);
    EXPECT_EQ(actual.name, expected.name);
    EXPECT_EQ(actual.kind, expected.kind) << expected.name;
    EXPECT_EQ(actual.block_elements, expected.elements) << expected.name;
    EXPECT_EQ(actual.block_bytes, expected.bytes) << expected.name;
    EXPECT_EQ(to_string(expected.dtype), expected.name);
  }
}

TEST(DType, KindsAnswerTheirQuestions) {
  EXPECT_TRUE(is_block(DType::iq4_xs));
  EXPECT_FALSE(is_block(DType::complex64));
  EXPECT_TRUE(is_floating(DType::bf16));
  EXPECT_FALSE(is_floating(DType::complex64));
  EXPECT_FALSE(is_floating(DType::q8_0));
  EXPECT_TRUE(is_integer(DType::u8));
  EXPECT_TRUE(is_integer(DType::i64));
  EXPECT_FALSE(is_integer(DType::bool_));
}

TEST(DType, IsFoundByNameInAnyCase) {
  for (const Expected& expected : kExpected) {
    EXPECT_EQ(dtype_from_name(expected.name), expected.dtype);
  }
  EXPECT_EQ(dtype_from_name("Q4_K"), DType::q4_K);
  EXPECT_EQ(dtype_from_name("q4_k"), DType::q4_K);
  EXPECT_EQ(dtype_from_name("BF16"), DType::bf16);
  for (const char* unknown : {"", "q4", "q4_K_M", "f1", "f166", "iq2_xxs"}) {
    EXPECT_EQ(dtype_from_name(unknown), std::nullopt) << unknown;
  }
}

TEST(DType, ItemSizeIsForPlainTypes) {
  EXPECT_EQ(item_size(DType::bool_), 1u);
  EXPECT_EQ(item_size(DType::bf16), 2u);
  EXPECT_EQ(item_size(DType::complex64), 8u);
  expect_invalid([] { item_size(DType::q6_K); }, "q6_K");
}

TEST(DType, RowBytesCountsBlocks) {
  EXPECT_EQ(row_bytes(DType::f32, 0), 0u);
  EXPECT_EQ(row_bytes(DType::f32, 3), 12u);
  EXPECT_EQ(row_bytes(DType::q4_0, 0), 0u);
  EXPECT_EQ(row_bytes(DType::q4_0, 64), 36u);
  EXPECT_EQ(row_bytes(DType::q6_K, 512), 420u);
}

TEST(DType, RowBytesRefusesPartialBlocksAndOverflow) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  expect_invalid([] { row_bytes(DType::q8_0, 33); }, "blocks of 32");
  expect_invalid([] { row_bytes(DType::q4_K, 32); }, "blocks of 256");
  expect_invalid([] { row_bytes(DType::f32, -1); }, "-1");
  expect_invalid([] { row_bytes(DType::q4_0, -32); }, "-32");
  EXPECT_EQ(row_bytes(DType::u8, kMax), static_cast<std::size_t>(kMax));
  EXPECT_EQ(row_bytes(DType::u16, kMax / 2), static_cast<std::size_t>(kMax - 1));
  expect_invalid([] { row_bytes(DType::u16, kMax / 2 + 1); }, "overflow");
  expect_invalid([] { row_bytes(DType::f64, kMax); }, "overflow");
  // 34 bytes for 32 elements: the product overflows although the count is representable.
  expect_invalid([] { row_bytes(DType::q8_0, kMax / 32 * 32); }, "overflow");
  EXPECT_GT(row_bytes(DType::q4_0, kMax / 32 * 32), 0u);
}

// MLX 0.32's table (which follows JAX's), with f64 as its widest float.
constexpr const char* kPromotions = R"(
       bool  u8    u16   u32   u64   i8    i16   i32   i64   f16   bf16  f32   f64   c64
  bool bool  u8    u16   u32   u64   i8    i16   i32   i64   f16   bf16  f32   f64   c64
  u8   u8    u8    u16   u32   u64   i16   i16   i32   i64   f16   bf16  f32   f64   c64
  u16  u16   u16   u16   u32   u64   i32   i32   i32   i64   f16   bf16  f32   f64   c64
  u32  u32   u32   u32   u32   u64   i64   i64   i64   i64   f16   bf16  f32   f64   c64
  u64  u64   u64   u64   u64   u64   f32   f32   f32   f32   f16   bf16  f32   f64   c64
  i8   i8    i16   i32   i64   f32   i8    i16   i32   i64   f16   bf16  f32   f64   c64
  i16  i16   i16   i32   i64   f32   i16   i16   i32   i64   f16   bf16  f32   f64   c64
  i32  i32   i32   i32   i64   f32   i32   i32   i32   i64   f16   bf16  f32   f64   c64
  i64  i64   i64   i64   i64   f32   i64   i64   i64   i64   f16   bf16  f32   f64   c64
  f16  f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   f32   f32   f64   c64
  bf16 bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  f32   bf16  f32   f64   c64
  f32  f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f64   c64
  f64  f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   c64
  c64  c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64
)";

DType read_type(std::istream& stream) {
  std::string name;
  stream >> name;
  const auto dtype = dtype_from_name(name == "c64" ? "complex64" : name);
  EXPECT_TRUE(dtype.has_value()) << name;
  return dtype.value_or(DType::bool_);
}

TEST(DType, PromotesByTheTable) {
  constexpr int kPlain = 14;
  std::istringstream table(kPromotions);
  DType columns[kPlain];
  for (DType& column : columns) column = read_type(table);
  for (int row = 0; row < kPlain; ++row) {
    const DType left = read_type(table);
    for (const DType right : columns) {
      const DType expected = read_type(table);
      EXPECT_EQ(promote_types(left, right), expected)
          << to_string(left) << " with " << to_string(right) << " gave "
          << to_string(promote_types(left, right));
    }
  }
}

TEST(DType, BlockTypesDoNotPromote) {
  expect_invalid([] { promote_types(DType::q4_K, DType::f32); }, "q4_K");
  expect_invalid([] { promote_types(DType::f32, DType::q4_K); }, "q4_K");
  expect_invalid([] { promote_types(DType::q4_K, DType::q4_K); }, "q4_K");
}

}  // namespace
}  // namespace heddle
