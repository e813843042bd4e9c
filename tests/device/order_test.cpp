// Sorting, the largest, and searching.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

constexpr SortKind kSorts[] = {SortKind::sort, SortKind::argsort};
constexpr double kInf = std::numeric_limits<double>::infinity();

/// Few different values and many, special ones among them.
std::vector<Fill> fills(DType dtype) {
  if (dtype == DType::bool_) return {{0, 1.9}};
  return {{-3, 3, true}, {is_integer(dtype) ? -100.0 : -1e4, is_integer(dtype) ? 100.0 : 1e4}};
}

TEST(Sort, EveryDtypeAndLength) {
  Random random(1);
  for (const SortKind kind : kSorts) {
    for (const DType dtype : kPlain) {
      for (const Fill& fill : fills(dtype)) {
        for (const std::int64_t n : {1, 2, 3, 24, 25, 33, 64, 513, 3000}) {
          expect_on_cpu(Sort{kind}, {random_tensor(dtype, {2, 3, n}, random, fill)});
        }
        expect_on_cpu(Sort{kind}, {random_tensor(dtype, {70}, random, fill)});
        expect_on_cpu(Sort{kind}, {random_tensor(dtype, {700, 30}, random, fill)});
      }
      expect_on_cpu(Sort{kind}, {random_tensor(dtype, {2, 0}, random)});
      expect_on_cpu(Sort{kind}, {random_tensor(dtype, {0, 3}, random)});
    }
  }
}

// In parts that threads sort and merge.
TEST(Sort, LongLines) {
  Random random(2);
  for (const SortKind kind : kSorts) {
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64, DType::complex64}) {
      expect_on_cpu(Sort{kind}, {random_tensor(dtype, {1, 140'001}, random, fills(dtype)[0])});
    }
    expect_on_cpu(Sort{kind}, {random_tensor(DType::i32, {2, 132'000}, random, {-1e9, 1e9})});
  }
  constexpr int kLength = 132'000;
  std::vector<double> rising, falling, equal(kLength, 7);
  for (int i = 0; i < kLength; ++i) {
    rising.push_back(i);
    falling.push_back(kLength - i);
  }
  for (const auto& values : {rising, falling, equal}) {
    for (const SortKind kind : kSorts) {
      expect_on_cpu(Sort{kind}, {tensor_of(DType::f32, {kLength}, values)});
    }
  }
}

template <class T>
std::vector<T> sorted_bits(DType dtype, const std::vector<T>& bits) {
  Tensor x =
      tensor_of(dtype, {static_cast<std::int64_t>(bits.size())}, std::vector<double>(bits.size()));
  std::memcpy(x.bytes.data(), bits.data(), x.bytes.size());
  const Ran ran = run_op(cpu_device(), Sort{SortKind::sort}, {x});
  std::vector<T> out(bits.size());
  std::memcpy(out.data(), ran.outputs.at(0).bytes.data(), x.bytes.size());
  return out;
}

TEST(Sort, MinusZeroStandsBeforeZeroAndNansLoseTheirSign) {
  constexpr std::uint32_t kMinusZero = 0x8000'0000, kNan = 0x7fc0'0001, kMinusNan = 0xffc0'0000;
  EXPECT_EQ(sorted_bits<std::uint32_t>(DType::f32, {kNan, 0, kMinusNan, kMinusZero, 0x7f80'0000, 0,
                                                    kMinusZero, 0xff80'0000}),
            (std::vector<std::uint32_t>{0xff80'0000, kMinusZero, kMinusZero, 0, 0, 0x7f80'0000,
                                        0x7fc0'0000, kNan}));
  EXPECT_EQ(sorted_bits<std::uint16_t>(DType::bf16, {0xffc1, 0, 0x8000, 0x3f80, 0xbf80}),
            (std::vector<std::uint16_t>{0xbf80, 0x8000, 0, 0x3f80, 0x7fc1}));
  EXPECT_EQ(sorted_bits<std::uint16_t>(DType::f16, {0xfe01, 0, 0x8000, 0x7c00, 0xfc00, 1}),
            (std::vector<std::uint16_t>{0xfc00, 0x8000, 0, 1, 0x7c00, 0x7e01}));
}

TEST(Sort, ArgsortIsStable) {
  for (const DType dtype : kFloats) {
    const Tensor x = tensor_of(dtype, {8}, {1, NAN, -0.0, 2, 0.0, NAN, -kInf, 1});
    const Ran ran = run_op(cpu_device(), Sort{SortKind::argsort}, {x});
    const Values out = decode(ran.outputs.at(0).operand, ran.outputs.at(0).bytes.data());
    EXPECT_EQ(out.real, (std::vector<Number>{6, 2, 4, 0, 7, 3, 1, 5})) << to_string(dtype);
  }
}

TEST(Sort, ComplexNumbersAreOrderedAsInNumPy) {
  Tensor x = tensor_of(DType::complex64, {7}, std::vector<double>(7));
  const float values[][2] = {{NAN, NAN}, {1, NAN}, {2, 1}, {NAN, 3}, {-0.0f, 5}, {0, 3}, {2, -1}};
  std::memcpy(x.bytes.data(), values, sizeof values);
  const Ran ran = run_op(cpu_device(), Sort{SortKind::argsort}, {x});
  const Values out = decode(ran.outputs.at(0).operand, ran.outputs.at(0).bytes.data());
  EXPECT_EQ(out.real, (std::vector<Number>{5, 4, 6, 2, 1, 3, 0}));
}

TEST(Sort, RowsAlone) {
  Random random(3);
  for (const SortKind kind : kSorts) {
    expect_rows_alone(cpu_device(), Sort{kind}, {random_tensor(DType::f32, {5, 2, 70}, random)});
    expect_rows_alone(cpu_device(), Sort{kind}, {random_tensor(DType::f64, {3, 140'000}, random)});
  }
}

TEST(Sort, OtherLayoutsAreRefusedAndNamed) {
  Random random(4);
  const Tensor x = random_tensor(arranged(DType::f32, {3, 4}, Arrangement::transposed), random);
  EXPECT_NE(run_op(cpu_device(), Sort{}, {x}).refused.find("sort: operand 0 must be contiguous"),
            std::string::npos);
}

// ---- The largest, where few of many stay, and where all do

TEST(TopK, LongLines) {
  Random random(5);
  constexpr std::int64_t kLength = 132'000;
  for (const DType dtype : {DType::i8, DType::f32, DType::f64}) {
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{3000}, kLength}) {
      expect_on_cpu(TopK{k}, {random_tensor(dtype, {1, kLength}, random, fills(dtype)[0])});
    }
  }
  std::vector<double> rising;
  for (int i = 0; i < 20'000; ++i) rising.push_back(i);
  for (const std::int64_t k : {1, 700, 9'000}) {
    expect_on_cpu(TopK{k}, {tensor_of(DType::f32, {20'000}, rising)});
  }
}

// ---- Searching

Tensor sorted(const Tensor& x) {
  return run_op(cpu_device(), Sort{SortKind::sort}, {x}).outputs.at(0);
}

TEST(SearchSorted, EveryDtypeAndLength) {
  Random random(6);
  for (const DType dtype : kPlain) {
    for (const Fill& fill : fills(dtype)) {
      for (const std::int64_t n : {0, 1, 2, 3, 7, 8, 9, 1000}) {
        const Tensor in = sorted(random_tensor(dtype, {n}, random, fill));
        for (const bool right : {false, true}) {
          expect_on_cpu(SearchSorted{right}, {in, random_tensor(dtype, {3, 70}, random, fill)});
          expect_on_cpu(SearchSorted{right}, {in, random_tensor(dtype, {}, random, fill)});
          expect_on_cpu(SearchSorted{right}, {in, random_tensor(dtype, {0, 2}, random, fill)});
        }
      }
    }
  }
}

TEST(SearchSorted, WhatIsNotSortedGivesSomePlace) {
  Random random(7);
  const Tensor x = random_tensor(DType::f32, {1000}, random, {-9, 9, true});
  const Ran ran = run_op(cpu_device(), SearchSorted{}, {x, x});
  const Values out = decode(ran.outputs.at(0).operand, ran.outputs.at(0).bytes.data());
  for (const Number place : out.real) EXPECT_TRUE(0 <= place && place <= 1000);
}

TEST(SearchSorted, RowsAlone) {
  Random random(8);
  const Tensor in = sorted(random_tensor(DType::f32, {100}, random));
  Tensor values = random_tensor(DType::f32, {5, 700}, random);
  expect_rows_alone(cpu_device(), SearchSorted{true}, {in, values});
}

}  // namespace
}  // namespace heddle::test
