// Keys, bits and what MLX and JAX make of them; errors; the implicit sequence.
#include "heddle/random.h"

#include <algorithm>
#include <set>
#include <thread>

#include "array_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;
using Words = std::vector<std::uint32_t>;

Words words(const Array& a) {
  return values<std::uint32_t>(a);
}

TEST(RandomKeys, AreASeedsHalves) {
  EXPECT_EQ(random::key(0).spec(), (TensorSpec{DType::u32, {2}}));
  EXPECT_THAT(words(random::key(1)), ElementsAre(0u, 1u));
  EXPECT_THAT(words(random::key((std::uint64_t{7} << 32) + 5)), ElementsAre(7u, 5u));
}

// The numbers of these three tests are in MLX's tests, where they were made by JAX.
TEST(RandomKeys, SplitAsInMlx) {
  const auto [key, subkey] = random::split(random::key(0));
  EXPECT_EQ(key.shape(), Shape({2}));
  EXPECT_THAT(words(key), ElementsAre(4146024105u, 967050713u));
  EXPECT_THAT(words(subkey), ElementsAre(2718843009u, 1272950319u));
  const Array three = random::split(random::key(0), 3);
  EXPECT_EQ(three.shape(), Shape({3, 2}));
  EXPECT_THAT(words(three), ElementsAre(2467461003u, 428148500u, 3186719485u, 3840466878u,
                                        2562233961u, 1946702221u));
  EXPECT_EQ(random::split(random::key(0), 0).shape(), Shape({0, 2}));
}

TEST(RandomBitsOf, KeysAreAsInMlx) {
  EXPECT_EQ(random::bits({}, random::key(0)).item<std::uint32_t>(), 1797259609u);
  EXPECT_EQ(random::bits({}, 2, random::key(0)).item<std::uint16_t>(), 345);
  EXPECT_EQ(random::bits({}, 1, random::key(0)).item<std::uint8_t>(), 89);
  EXPECT_EQ(random::bits({}, random::key(1)).item<std::uint32_t>(), 507451445u);
  EXPECT_EQ(random::bits({}, 2, random::key(1)).item<std::uint16_t>(), 6197);
  EXPECT_EQ(random::bits({}, 1, random::key(1)).item<std::uint8_t>(), 53);
  const Array three = random::bits({3, 1}, random::key(0));
  EXPECT_EQ(three.shape(), Shape({3, 1}));
  EXPECT_THAT(words(three), ElementsAre(4146024105u, 1351547692u, 2718843009u));
  const auto halves = [](int count) {
    return values<std::uint16_t>(random::bits({count}, 2, random::key(0)));
  };
  EXPECT_THAT(halves(5), ElementsAre(20137, 63263, 64300, 20622, 16513));
  EXPECT_THAT(halves(6), ElementsAre(20137, 63263, 64300, 20622, 16513, 41486));
  EXPECT_THAT(halves(7), ElementsAre(20137, 63263, 1497, 14756, 16513, 41486, 44591));
  EXPECT_THAT(halves(8), ElementsAre(20137, 63263, 1497, 14756, 16513, 41486, 44591, 19423));
}

TEST(RandomBitsOf, ManyKeysAreAsUnderMlxVmap) {
  const Array keys(Words{0, 0, 1, 1}, {2, 2});
  EXPECT_THAT(
      words(apply(RandomBits{{3}, 4}, {keys})),
      ElementsAre(4146024105u, 1351547692u, 2718843009u, 3725146706u, 1802982961u, 1349634643u));
  const Array columns = apply(RandomBits{{3}, 4}, {transpose(keys)});
  EXPECT_THAT(words(columns), ElementsAre(2441914641u, 1110694964u, 3819641963u, 2441914641u,
                                          1110694964u, 3819641963u));
  const Array nested(Words{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, {3, 2, 2});
  EXPECT_THAT(
      words(apply(RandomBits{{2}, 4}, {nested})),
      ElementsAre(928981903u, 3453687069u, 3606183818u, 460005496u, 2799733733u, 856293553u,
                  4081856343u, 3445925136u, 2775548010u, 1430281703u, 305173070u, 2615843348u));
}

TEST(RandomBitsOf, WidthEightIsPairsOfWords) {
  const auto wide = values<std::uint64_t>(random::bits({5}, 8, random::key(3)));
  const Words narrow = words(random::bits({10}, random::key(3)));
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(wide[i], narrow[2 * i] | std::uint64_t{narrow[2 * i + 1]} << 32);
  }
}

TEST(RandomBitsOf, ChainsOfKeysRunLazilyAndInGraphs) {
  Array key = random::key(9);
  Words drawn;
  for (int i = 0; i < 100; ++i) {
    auto [next, now] = random::split(key);
    key = next;
    drawn.push_back(random::bits({}, now).item<std::uint32_t>());
  }
  EXPECT_EQ(std::set<std::uint32_t>(drawn.begin(), drawn.end()).size(), drawn.size());
}

// ---- The implicit sequence

TEST(RandomSequence, GoesOnAsMlxSplitsItsKey) {
  random::seed(4);
  Array key = random::key(4);
  for (int i = 0; i < 3; ++i) {
    const auto [next, now] = random::split(key);
    EXPECT_EQ(words(random::bits({5})), words(random::bits({5}, now)));
    key = next;
  }
  random::seed(4);
  const Words first = words(random::bits({5}));
  EXPECT_NE(first, words(random::bits({5})));
  random::seed(4);
  EXPECT_EQ(first, words(random::bits({5})));
}

TEST(RandomSequence, ThreadsGetDifferentKeys) {
  random::seed(11);
  constexpr int kThreads = 4, kDraws = 200;
  std::vector<Words> drawn(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&drawn, t] {
      for (int i = 0; i < kDraws; ++i) drawn[t].push_back(words(random::bits({}))[0]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::multiset<std::uint32_t> all;
  for (const Words& some : drawn) all.insert(some.begin(), some.end());
  random::seed(11);
  std::multiset<std::uint32_t> alone;
  for (int i = 0; i < kThreads * kDraws; ++i) alone.insert(words(random::bits({}))[0]);
  EXPECT_EQ(all, alone);
}

// ---- Bounds and errors

TEST(RandomUniform, IsAsInMlx) {
  const auto as_float = [](std::uint32_t n) { return static_cast<float>(n) / 4294967296.0f; };
  EXPECT_EQ(random::uniform({}, random::key(0)).item<float>(), as_float(1797259609u));
  EXPECT_EQ(random::uniform({}, random::key(1)).item<float>(), as_float(507451445u));
  EXPECT_THAT(values<float>(random::uniform({3, 1}, random::key(0))),
              ElementsAre(as_float(4146024105u), as_float(1351547692u), as_float(2718843009u)));
}

TEST(RandomUniform, KeepsItsBoundsInEveryType) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const Array unit = random::uniform({100000}, dtype, random::key(2));
    EXPECT_EQ(unit.dtype(), dtype);
    const std::vector<double> numbers = doubles(unit);
    EXPECT_GE(*std::min_element(numbers.begin(), numbers.end()), 0);
    EXPECT_LT(*std::max_element(numbers.begin(), numbers.end()), 1);
    const Array within =
        random::uniform(Array({-3.0f, 2.0f}), Array(4.0f), {1000, 2}, dtype, random::key(3));
    const std::vector<double> pairs = doubles(within);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_GE(pairs[i], i % 2 ? 2 : -3);
      EXPECT_LE(pairs[i], 4);
    }
  }
  // More than 32 bits.
  bool finer = false;
  for (const double x : doubles(random::uniform({100}, DType::f64, random::key(4)))) {
    finer |= x != std::floor(x * 0x1p32) / 0x1p32;
  }
  EXPECT_TRUE(finer);
}

TEST(RandomRandint, StaysWithinAndReachesBothEnds) {
  const DType types[] = {DType::bool_, DType::u8,  DType::u16, DType::u32, DType::u64,
                         DType::i8,    DType::i16, DType::i32, DType::i64};
  for (const DType dtype : types) {
    const bool is_signed = info(dtype).kind == DTypeKind::signed_int;
    const int low = is_signed ? -3 : 0, high = dtype == DType::bool_ ? 2 : 5;
    const Array drawn = random::randint(low, high, {2000}, dtype, random::key(5));
    EXPECT_EQ(drawn.dtype(), dtype);
    const std::vector<double> numbers = doubles(drawn);
    const std::set<double> seen(numbers.begin(), numbers.end());
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(high - low)) << to_string(dtype);
    EXPECT_EQ(*seen.begin(), low);
    EXPECT_EQ(*seen.rbegin(), high - 1);
  }
}

TEST(RandomRandint, RangesBeyondFloatsAndInt64AreExact) {
  using Limits = std::numeric_limits<std::int64_t>;
  const Array least(std::int64_t{Limits::min()}), most(std::int64_t{Limits::max()});
  const auto wide =
      values<std::int64_t>(random::randint(least, most, {1000}, DType::i64, random::key(6)));
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), Limits::min() / 2);
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), Limits::max() / 2);
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const auto near = values<std::int64_t>(
      random::randint(Array(big), Array(big + 3), {300}, DType::i64, random::key(7)));
  EXPECT_EQ(std::set<std::int64_t>(near.begin(), near.end()),
            (std::set<std::int64_t>{big, big + 1, big + 2}));
  const std::uint64_t top = ~std::uint64_t{0};
  const auto unsigned_ones = values<std::uint64_t>(
      random::randint(Array(top - 2), Array(top), {200}, DType::u64, random::key(8)));
  EXPECT_EQ(std::set<std::uint64_t>(unsigned_ones.begin(), unsigned_ones.end()),
            (std::set<std::uint64_t>{top - 2, top - 1}));
}

TEST(RandomRandint, AnEmptyRangeGivesItsLowEnd) {
  EXPECT_THAT(values<int>(random::randint(20.0, -10.0, {3})), ElementsAre(20, 20, 20));
  EXPECT_THAT(values<int>(random::randint(Array({1, 5}), Array({1, 6}), {2})), ElementsAre(1, 5));
}

TEST(RandomBernoulli, ChancesOfNoneAndAll) {
  const auto all = values<bool>(random::bernoulli(5.0, {1000}));
  EXPECT_EQ(std::count(all.begin(), all.end(), true), 1000);
  const auto sure = values<bool>(random::bernoulli(1.0f, {100000}));
  EXPECT_EQ(std::count(sure.begin(), sure.end(), true), 100000);
  const auto none = values<bool>(random::bernoulli(-1.0, {1000}));
  EXPECT_EQ(std::count(none.begin(), none.end(), true), 0);
  EXPECT_EQ(random::bernoulli().spec(), (TensorSpec{DType::bool_, {}}));
  EXPECT_EQ(random::bernoulli(Array({0.1f, 0.9f})).shape(), Shape({2}));
  EXPECT_EQ(random::bernoulli(Array({0.1f, 0.9f}), {4, 2}).shape(), Shape({4, 2}));
}

TEST(RandomErrors, SayWhatIsWrong) {
  const Array wrong(std::vector<std::int32_t>{0, 0}, {2});
  const Array matrix(Words{0, 0}, {1, 2});
  for (const Array& key : {wrong, matrix}) {
    expect_invalid([&] { random::bits({}, key); }, {"bits: ", "it must be u32[2]"});
    expect_invalid([&] { random::split(key); }, {"split: ", "it must be u32[2]"});
    expect_invalid([&] { random::uniform({}, key); }, {"uniform: ", "it must be u32[2]"});
    expect_invalid([&] { random::normal({}, key); }, {"normal: ", "it must be u32[2]"});
    expect_invalid([&] { random::bernoulli(0.5f, {2}, key); }, {"bernoulli: ", "u32[2]"});
    expect_invalid([&] { random::randint(0, 1, {2}, DType::i32, key); }, {"randint: ", "u32[2]"});
  }
  expect_invalid([] { random::bits({}, 3); }, {"bits: ", "a width of 3"});
  expect_invalid([] { random::bits({-1}); }, {"bits: ", "negative"});
  expect_invalid([] { random::split(random::key(0), -1); }, {"split: -1 keys"});
  expect_invalid([] { random::uniform({}, DType::i32); }, {"uniform: i32 is not"});
  expect_invalid([] { random::uniform({}, DType::complex64); }, {"uniform: complex64"});
  expect_invalid(
      [] {
        random::uniform(zeros({3, 3}), 1.0, {1, 3});
      },
      {"uniform: bounds", "[3, 3]", "[1, 3]", "random_test.cpp:"});
  expect_invalid([] { random::uniform(zeros({2}), zeros({3}), {3}); }, {"do not broadcast"});
  expect_invalid([] { random::normal({}, DType::u8); }, {"normal: u8 is neither"});
  expect_invalid([] { random::randint(3, 5, {1}, DType::f32); }, {"randint: f32 is neither"});
  expect_invalid([] { random::bernoulli(Array(1)); }, {"bernoulli: ", "i32[]"});
  expect_invalid([] { random::bernoulli(Array({0.1f, 0.2f, 0.3f}), {2}); }, {"bernoulli: ", "[3]"});
  expect_invalid([] { random::truncated_normal(-1.0, 1.0, {2}, DType::i8); }, {"i8 is not"});
  expect_invalid([] { random::categorical(zeros({10, 20}), 2); }, {"categorical: ", "2"});
  expect_invalid([] { random::categorical(zeros({10, 20}), -3); }, {"categorical: ", "-3"});
  expect_invalid([] { random::categorical(zeros({10, 20}), 1, Shape{1}); }, {"categorical: "});
  expect_invalid([] { random::categorical(zeros({10, 20}), 1, Shape{11}); }, {"categorical: "});
  expect_invalid([] { random::categorical(zeros({10, 20}), 1, -2); }, {"-2 samples"});
  expect_invalid([] { random::laplace({}, DType::i32); }, {"laplace: i32"});
  expect_invalid([] { random::permutation(-1); }, {"permutation: -1"});
  expect_invalid([] { random::permutation(zeros({3}), 1); }, {"permutation: ", "1"});
  expect_invalid(
      [] {
        random::multivariate_normal(zeros({2}), zeros({3, 3}), {});
      },
      {"multivariate_normal: ", "f32[3, 3]"});
  expect_invalid(
      [] {
        random::multivariate_normal(zeros({2}), zeros({2, 2}), {}, DType::f16);
      },
      {"multivariate_normal: f16"});
  expect_invalid(
      [] {
        random::multivariate_normal(zeros({}), zeros({2, 2}), {});
      },
      {"multivariate_normal: ", "f32[]"});
}

}  // namespace
}  // namespace heddle::test
