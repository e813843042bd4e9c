// Views: that they show the right elements, of the memory that is there; and slice_update.
#include <algorithm>
#include <cstring>
#include <limits>

#include "array/launch.h"
#include "array_test_support.h"
#include "support/view_program.h"
#include "test_device.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

Array grid() {
  return reshape(arange(24, DType::i32), {2, 3, 4});
}

/// Kernels that evaluating `a` takes.
std::uint64_t launches(const Array& a) {
  const std::uint64_t before = eval_counts().launches;
  a.eval();
  return eval_counts().launches - before;
}

// ---- slice

TEST(Slice, FollowsPython) {
  const Array a = arange(10, DType::i32);
  const auto of = [&](std::int64_t start, std::int64_t stop, std::int64_t step) {
    return values<int>(slice(a, {start}, {stop}, {step}));
  };
  EXPECT_THAT(of(2, 5, 1), ElementsAre(2, 3, 4));
  EXPECT_THAT(of(-3, kMost, 1), ElementsAre(7, 8, 9));
  EXPECT_THAT(of(kLeast, -7, 1), ElementsAre(0, 1, 2));
  EXPECT_THAT(of(1, 9, 3), ElementsAre(1, 4, 7));
  EXPECT_THAT(of(0, 10, 100), ElementsAre(0));
  EXPECT_THAT(of(5, 2, 1), ElementsAre());
  EXPECT_THAT(of(12, 20, 1), ElementsAre());
  EXPECT_THAT(of(8, -11, -3), ElementsAre(8, 5, 2));
  EXPECT_THAT(of(kMost, 6, -1), ElementsAre(9, 8, 7));
  EXPECT_THAT(of(3, kLeast, -2), ElementsAre(3, 1));
  EXPECT_THAT(of(3, kLeast, kLeast), ElementsAre(3));
  EXPECT_THAT(of(2, 5, -1), ElementsAre());
  EXPECT_THAT(of(kLeast, kLeast, -1), ElementsAre());
  EXPECT_THAT(of(9, -1, -1), ElementsAre());  // -1 is the last element, as in Python
}

TEST(Slice, OfSeveralAxes) {
  EXPECT_THAT(values<int>(slice(grid(), {0, 1, 0}, {2, 2, 4}, {1, 1, 3})),
              ElementsAre(4, 7, 16, 19));
  EXPECT_THAT(values<int>(slice(grid(), {1, 2, 3}, {2, -5, 0}, {1, -2, -2})),
              ElementsAre(23, 21, 15, 13));
  EXPECT_EQ(slice(Array(1), {}, {}).item<int>(), 1);
  EXPECT_EQ(slice(zeros({0, 2}), {5, 5}, {-9, -9}, {-1, -1}).shape(), Shape({0, 2}));
  const Array a = grid();
  EXPECT_EQ(slice(a, {0, -3, 0}, {9, 3, kMost}).node(), a.node());
  expect_invalid([] { slice(grid(), {0}, {1}); }, {"slice", "i32[2, 3, 4]"});
  expect_invalid([] { slice(grid(), {0, 0, 0}, {1, 1, 1}, {1, 0, 1}); }, {"slice", "axis 1"});
}

TEST(Slice, BackwardsIsAView) {
  const Array a = grid();
  a.eval();
  const Array turned = slice(a, {9, 9, 9}, {-9, -9, -9}, {-1, -1, -1});
  EXPECT_EQ(launches(turned), 0u);
  EXPECT_EQ(turned.view().host(), a.view().host());
  EXPECT_EQ(first_element(turned.view().operand), 23);
  std::vector<int> expected = values<int>(a);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(values<int>(turned), expected);
  EXPECT_EQ(values<int>(reshape(turned, {4, 6})), expected);
  EXPECT_EQ(launches(reshape(turned, {4, 6})), 0u);
  EXPECT_EQ(to_string(slice(a, {1, 0, 3}, {0, 1, -9}, {-1, 1, -1})),
            "array([[[15, 14, 13, 12]]], dtype=i32)");
}

TEST(Slice, BackwardsGoesIntoEveryOp) {
  const Array x = reshape(arange(12.0), {3, 4});
  const Array turned = slice(x, {2, 0}, {-4, 4}, {-1, 1});
  const Array copied = contiguous(turned);
  const auto same = [](const Array& a, const Array& b) {
    EXPECT_EQ(values<float>(a), values<float>(b));
  };
  same(turned + x, copied + x);
  same(sum(turned, 0), sum(copied, 0));
  same(softmax(turned, -1), softmax(copied, -1));
  same(matmul(transpose(x), turned), matmul(transpose(x), copied));
  same(linear(turned, x), linear(copied, x));
  same(fast::rms_norm(turned, std::nullopt, 1e-5f), fast::rms_norm(copied, std::nullopt, 1e-5f));
  same(take(turned, Array({1, 2}), 0), take(copied, Array({1, 2}), 0));
  same(take(x, slice(Array({0, 1, 2}), {2}, {-4}, {-1}), 0), turned);
  same(write_rows(turned, x, Array({2, -1, 0})), write_rows(copied, x, Array({2, -1, 0})));
  same(write_rows(x, turned, Array({2, -1, 0})), write_rows(x, copied, Array({2, -1, 0})));
  const Array heads = reshape(turned, {3, 1, 4});
  same(rope(heads, Array({1, 2, 3}), {.dims = 4}),
       rope(contiguous(heads), Array({1, 2, 3}), {.dims = 4}));
  const Array q = reshape(x, {1, 1, 3, 4}), k = reshape(turned, {1, 1, 3, 4});
  same(fast::scaled_dot_product_attention(q, k, k),
       fast::scaled_dot_product_attention(q, contiguous(k), contiguous(k)));
}

TEST(Slice, BackwardsOfBlocks) {
  std::vector<std::byte> blocks(3 * row_bytes(DType::q8_0, 32));
  for (std::size_t row = 0; row < 3; ++row) {
    const std::uint16_t scale = f32_to_f16_bits(static_cast<float>(row + 1));
    std::memcpy(&blocks[row * 34], &scale, 2);
    blocks[row * 34 + 2] = std::byte{5};
  }
  const Array a = Array::from_bytes({DType::q8_0, {3, 32}}, blocks);
  const Array turned = slice(a, {2, 0}, {-9, 32}, {-2, 1});
  EXPECT_THAT(values<float>(slice(dequantize(turned), {0, 0}, {2, 1})), ElementsAre(15, 5));
  EXPECT_EQ(launches(turned), 0u);
}

// ---- as_strided

TEST(AsStrided, ShowsElementsOfTheFlattenedArray) {
  const Array a = arange(8, DType::i32);
  EXPECT_THAT(values<int>(as_strided(a, {3, 2}, {2, 1}, 1)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(values<int>(as_strided(a, {3, 4}, {1, 1}, 0)),
              ElementsAre(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5));
  EXPECT_THAT(values<int>(as_strided(a, {3}, {-3}, 7)), ElementsAre(7, 4, 1));
  EXPECT_THAT(values<int>(as_strided(a, {2, 3}, {0, -1}, 2)), ElementsAre(2, 1, 0, 2, 1, 0));
  EXPECT_EQ(as_strided(a, {}, {}, 5).item<int>(), 5);
  EXPECT_EQ(as_strided(Array(3), {1, 1}, {kMost, kLeast}, 0).item<int>(), 3);
  EXPECT_EQ(as_strided(zeros({0}), {0, 4}, {1, 1}, 3).shape(), Shape({0, 4}));
  // Of the elements, wherever they lie.
  EXPECT_THAT(values<int>(as_strided(transpose(reshape(a, {2, 4})), {4}, {1}, 2)),
              ElementsAre(1, 5, 2, 6));
}

TEST(AsStrided, IsAViewOfWhatIsContiguous) {
  const Array a = arange(8, DType::i32);
  a.eval();
  const Array windows = as_strided(a, {3, 4}, {1, 1}, 2);
  EXPECT_EQ(launches(windows), 0u);
  EXPECT_EQ(windows.view().host(), a.view().host() + 8);
  EXPECT_EQ(launches(as_strided(slice(a, {7}, {-9}, {-1}), {8}, {1}, 0)), 1u);
}

TEST(AsStrided, RefusesWhatLiesBeyond) {
  const Array a = arange(8, DType::i32);
  expect_invalid([&] { as_strided(a, {9}, {1}, 0); }, {"as_strided", "i32[8]"});
  expect_invalid([&] { as_strided(a, {2}, {-1}, 0); }, {"as_strided", "beyond"});
  expect_invalid([&] { as_strided(a, {2, 2}, {1}, 0); }, {"as_strided", "[1]", "[2, 2]"});
  expect_invalid([&] { as_strided(a, {-1}, {1}, 0); }, {"as_strided"});
  expect_invalid([&] { as_strided(a, {kMost}, {kMost}, 0); }, {"as_strided"});
}

TEST(AsStrided, OverlappingMemoryIsNotWrittenOver) {
  Array a = arange(4096.0);
  const Array windows = as_strided(a, {4095, 2}, {1, 1}, 0);
  a = Array(0);
  const Array sums = windows + windows;
  const std::uint64_t before = eval_counts().donations;
  EXPECT_EQ(values<float>(sums)[3], 4);
  EXPECT_EQ(eval_counts().donations, before);
  Array base = exp(zeros({4096}));
  const Array repeated = as_strided(base, {2, 4096}, {0, 1}, 0);
  base = Array(0);
  const Array updated = slice_update(repeated, Array(7.0f), {0, 0}, {1, 4096});
  EXPECT_EQ(values<float>(updated)[0], 7);
  EXPECT_EQ(values<float>(updated)[4096], 1);
}

// ---- view

TEST(ViewAs, SharesMemoryWhereTheBytesLieWholeAndCopiesElsewhere) {
  const Array halves = astype(arange(16.0), DType::f16);
  const auto shares = [&](const Array& part) {
    const Array words = view(part, DType::u32);
    const std::vector<std::byte> expected = part.to_bytes();
    EXPECT_EQ(words.to_bytes(), expected);
    return words.view().buffer == halves.view().buffer;
  };
  EXPECT_TRUE(shares(halves));
  EXPECT_TRUE(shares(slice(halves, {4}, {12})));
  EXPECT_TRUE(shares(slice(reshape(halves, {4, 4}), {0, 2}, {4, 4})));
  EXPECT_FALSE(shares(slice(halves, {1}, {13})));       // begins within a word
  EXPECT_FALSE(shares(slice(halves, {0}, {16}, {2})));  // words would have gaps
}

TEST(ViewAs, KeepsTheBytes) {
  const Array a({1.0f, -2.0f});
  EXPECT_THAT(values<std::uint32_t>(view(a, DType::u32)), ElementsAre(0x3F800000u, 0xC0000000u));
  EXPECT_THAT(values<std::uint16_t>(view(a, DType::u16)), ElementsAre(0, 0x3F80, 0, 0xC000));
  EXPECT_EQ(view(a, DType::u64).to_vector<std::uint64_t>()[0], 0xC00000003F800000u);
  EXPECT_EQ(view(a, DType::complex64).shape(), Shape({1}));
  EXPECT_EQ(view(a, DType::f32).node(), a.node());
  EXPECT_EQ(view(Array(1.0f), DType::i32).item<int>(), 0x3F800000);
  EXPECT_EQ(view(zeros({2, 0}), DType::u8).shape(), Shape({2, 0}));
  EXPECT_THAT(values<std::uint8_t>(view(Array({1, 0}) == Array(1), DType::u8)), ElementsAre(1, 0));
  expect_invalid(
      [&] {
        view(astype(Array({1, 0}), DType::u8), DType::bool_);
      },
      {"view", "u8[2] as bool", "compare with 0"});
  // Of the row-major elements, wherever they lie.
  const Array turned = transpose(reshape(arange(4, DType::i32), {2, 2}));
  EXPECT_THAT(values<std::uint64_t>(view(turned, DType::u64)),
              ElementsAre(std::uint64_t{2} << 32, std::uint64_t{3} << 32 | 1));
  EXPECT_THAT(values<int>(view(slice(Array({1, 2, 3}), {2}, {-4}, {-2}), DType::i32)),
              ElementsAre(3, 1));
}

TEST(ViewAs, RefusesWhatDoesNotDivide) {
  expect_invalid([] { view(Array({1.0f}), DType::f64); }, {"view", "f32[1]", "f64"});
  expect_invalid([] { view(Array(1.0f), DType::u8); }, {"view", "f32[]"});
  expect_invalid([] { view(zeros({32}), DType::q8_0); }, {"view", "block"});
  const std::vector<std::byte> blocks(34);
  const Array quantized = Array::from_bytes({DType::q8_0, {32}}, blocks);
  expect_invalid([&] { view(quantized, DType::u8); }, {"view", "q8_0[32]"});
}

// ---- slice_update

TEST(SliceUpdate, ReplacesTheSlice) {
  const Array a = reshape(arange(12, DType::i32), {3, 4});
  EXPECT_THAT(values<int>(slice_update(a, Array({-1, -2}), {0, 1}, {2, 3})),
              ElementsAre(0, -1, -2, 3, 4, -1, -2, 7, 8, 9, 10, 11));
  EXPECT_THAT(values<int>(slice_update(a, Array({-1, -2}), {2, 3}, {-4, 0}, {-2, -2})),
              ElementsAre(0, -2, 2, -1, 4, 5, 6, 7, 8, -2, 10, -1));
  EXPECT_THAT(values<int>(slice_update(a, Array(2.9f), {-1, -1}, {kMost, kMost})),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 2));  // cast to the type of `src`
  EXPECT_EQ(values<int>(slice_update(a, Array(9), {1, 1}, {1, 4})), values<int>(a));
  EXPECT_EQ(values<int>(slice_update(a, a * 2, {0, 0}, {3, 4})), values<int>(a * 2));
  EXPECT_EQ(slice_update(Array(1.0f), Array(2.0f), {}, {}).item<float>(), 2);
  EXPECT_EQ(slice_update(zeros({0, 2}), Array(1.0f), {0, 0}, {0, 2}).shape(), Shape({0, 2}));
  EXPECT_THAT(values<int>(slice_update(transpose(a), Array(0), {0, 0}, {4, 2})),
              ElementsAre(0, 0, 8, 0, 0, 9, 0, 0, 10, 0, 0, 11));
}

TEST(SliceUpdate, RefusesWhatDoesNotFit) {
  const Array a = reshape(arange(12, DType::i32), {3, 4});
  expect_invalid(
      [&] {
        slice_update(a, Array({1, 2, 3}), {0, 0}, {3, 4});
      },
      {"slice_update", "i32[3]", "[3, 4]"});
  expect_invalid([&] { slice_update(a, a, {0}, {3}); }, {"slice_update", "i32[3, 4]"});
  expect_invalid([&] { slice_update(a, a, {0, 0}, {3, 4}, {1, 0}); }, {"slice_update", "axis 1"});
  const std::vector<std::byte> blocks(34);
  const Array quantized = Array::from_bytes({DType::q8_0, {32}}, blocks);
  expect_invalid([&] { slice_update(quantized, Array(1.0f), {0}, {32}); },
                 {"slice_update", "q8_0[32]"});
}

TEST(SliceUpdate, WritesOverABaseThatNobodyElseHas) {
  Array a = exp(zeros({64, 64}));
  a.eval();
  const std::byte* memory = a.view().host();
  a = slice_update(a, Array(5.0f), {1, 0}, {2, 64});
  EXPECT_EQ(launches(a), 1u);  // the update, and no copy
  EXPECT_EQ(a.view().host(), memory);
  EXPECT_EQ(values<float>(a)[63], 1);
  EXPECT_EQ(values<float>(a)[64], 5);
}

TEST(SliceUpdate, LeavesABaseThatOthersSee) {
  const Array a = exp(zeros({64}));
  const Array b = slice_update(a, Array(5.0f), {0}, {1});
  EXPECT_EQ(values<float>(b)[0], 5);
  EXPECT_EQ(values<float>(a)[0], 1);
  // The update looks at the base.
  Array c = arange(4096.0);
  c.eval();
  c = slice_update(c, slice(c, {4095}, {-4097}, {-1}), {0}, {4096});
  EXPECT_EQ(values<float>(c)[0], 4095);
  EXPECT_EQ(values<float>(c)[4095], 0);
}

// ---- Programs

void expect_known(const ViewProgram& program) {
  for (const Known& known : program.values()) {
    ASSERT_EQ(known.array.spec(), known.spec) << program.text();
    ASSERT_TRUE(known.array.to_bytes() == known.bytes) << program.text() << to_string(known.spec);
  }
}

/// Grows, evaluating some values on the way.
void run_program(unsigned seed) {
  ViewProgram program(seed);
  for (int i = 0; i < 2; ++i) {
    ViewProgram::Base base = program.make_base();
    Array array = Array::from_bytes(base.spec, base.bytes);
    program.add(std::move(array), std::move(base));
  }
  for (int part = 0; part < 4; ++part) {
    program.grow(1 + static_cast<int>(seed % 7));
    program.values()[seed % program.values().size()].array.eval();
  }
  expect_known(program);
}

TEST(ViewPrograms, OnTheCpu) {
  for (unsigned seed = 0; seed < 3000 && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    run_program(seed);
  }
}

TEST(ViewPrograms, OnADeviceThatWorksLater) {
  for (const bool hidden : {false, true}) {
    TestDevice device("later", {.later = true, .hide_memory = hidden});
    const DeviceScope scope(device);
    for (unsigned seed = 5000; seed < 5400 && !testing::Test::HasFatalFailure(); ++seed) {
      SCOPED_TRACE(seed);
      run_program(seed);
    }
    EXPECT_GT(device.launches, 100);
  }
}

}  // namespace
}  // namespace heddle::test
