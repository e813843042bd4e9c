// How far the vectorised functions are from the exact value, over their whole domain.
#include <bit>
#include <cmath>
#include <memory>
#include <string_view>

#include "device/cpu/convert.h"
#include "device/cpu/math_ops.h"
#include "device/cpu/wide_math.h"
#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

struct Claim {
  UnaryKind kind;
  float low, high;  // outside, results are checked against their limits only
  double ulps;
};

// gelu_tanh's argument is of degree 3, so that its negative tail magnifies rounding.
constexpr Claim kClaims[] = {
    {UnaryKind::exp, -103.0f, 88.7f, 2},     {UnaryKind::sigmoid, -87.0f, 100.0f, 3},
    {UnaryKind::silu, -87.0f, 100.0f, 4},    {UnaryKind::tanh, -20.0f, 20.0f, 3},
    {UnaryKind::erf, -10.0f, 10.0f, 3},      {UnaryKind::gelu, -13.0f, 13.0f, 6},
    {UnaryKind::gelu_tanh, -2.0f, 10.0f, 9},
};

/// Units in the last place between a float and the exact value, subnormals included.
double ulps_between(float got, Number want) {
  const int exponent = want == 0 ? -126 : std::max(-126, std::ilogb(want));
  return static_cast<double>(std::fabs(got - want) / std::ldexp(Number{1}, exponent - 23));
}

std::vector<float> samples(float low, float high) {
  std::vector<float> xs;
  constexpr int kCount = 200001;
  for (int i = 0; i < kCount; ++i) {
    xs.push_back(low + (high - low) * static_cast<float>(i) / (kCount - 1));
  }
  for (float x = 1e-38f; x < high; x *= 1.01f) {
    xs.push_back(x);
    if (-x > low) xs.push_back(-x);
  }
  return xs;
}

TEST(Math, Accuracy) {
  at_every_level([] {
    for (const Claim& claim : kClaims) {
      const std::vector<float> xs = samples(claim.low, claim.high);
      std::vector<float> ys(xs.size());
      cpu::float_unary(claim.kind)(xs.data(), ys.data(), static_cast<std::int64_t>(xs.size()));
      double worst = 0;
      float where = 0;
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const double error =
            ulps_between(ys[i], reference_activation(claim.kind, static_cast<Number>(xs[i])));
        if (error > worst) worst = error, where = xs[i];
      }
      EXPECT_LE(worst, claim.ulps) << to_string(claim.kind) << " at " << where;
      std::printf("%-10s %.2f ulp at %g\n", std::string(to_string(claim.kind)).c_str(), worst,
                  static_cast<double>(where));
    }
  });
}

TEST(Math, TheSameWhereverItStands) {
  at_every_level([] {
    std::vector<float> xs = samples(-5.0f, 5.0f);
    xs.resize(200);
    for (const Claim& claim : kClaims) {
      const cpu::FloatUnary f = cpu::float_unary(claim.kind);
      std::vector<float> all(xs.size());
      f(xs.data(), all.data(), static_cast<std::int64_t>(xs.size()));
      for (std::size_t begin = 0; begin < 40; ++begin) {
        std::vector<float> some(xs.size() - begin);
        f(xs.data() + begin, some.data(), static_cast<std::int64_t>(some.size()));
        ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin() + static_cast<long>(begin)))
            << to_string(claim.kind) << " from " << begin;
      }
    }
  });
}

// ---- Streamed, or among others

/// What functions treat in other ways, among what they treat alike.
std::vector<float> mixed() {
  std::vector<float> xs = {0.0f,  -0.0f, 1e-40f, 1e-20f,  0.3f,  -0.3f,    1,        -1,  2,
                           -4.9f, -5.1f, -13,    -60,     14.9f, 15.1f,    16,       -16, 100,
                           -300,  1e9f,  -1e10f, 3.3e38f, NAN,   INFINITY, -INFINITY};
  for (int i = 0; i < 300; ++i) xs.push_back(std::sin(static_cast<float>(i * i)) * 3);
  for (std::size_t i = 0; i < 25; ++i) xs.push_back(xs[i * 7 % 25]);
  return xs;
}

bool same_bits(const float* a, const float* b, std::size_t n) {
  return std::equal(a, a + n, b, [](float x, float y) {
    return (std::isnan(x) && std::isnan(y)) || std::bit_cast<int>(x) == std::bit_cast<int>(y);
  });
}

TEST(Math, StreamedOrAloneTheBitsAreTheSame) {
  at_every_level([] {
    const std::vector<float> xs = mixed();
    const auto n = static_cast<std::int64_t>(xs.size());
    struct alignas(64) Results {
      float y[512];
    };
    for (int kind = 0; kind <= static_cast<int>(UnaryKind::arctanh); ++kind) {
      const auto unary = static_cast<UnaryKind>(kind);
      const auto find = [&](cpu::Stores stores) {
        const cpu::FloatUnary common = cpu::float_unary(unary, stores);
        return common ? common : cpu::wide_unary(unary, stores);
      };
      const cpu::FloatUnary f = find(cpu::Stores::cached);
      ASSERT_EQ(f == nullptr, find(cpu::Stores::streamed) == nullptr);
      if (!f) continue;
      Results all, streamed;
      f(xs.data(), all.y, n);
      {
        const cpu::StreamFence fence;
        find(cpu::Stores::streamed)(xs.data(), streamed.y, n);
      }
      EXPECT_TRUE(same_bits(all.y, streamed.y, xs.size())) << to_string(unary);
      for (std::size_t i = 0; i < xs.size(); ++i) {
        float alone = 0;
        f(&xs[i], &alone, 1);
        EXPECT_TRUE(same_bits(&alone, all.y + i, 1)) << to_string(unary) << " of " << xs[i];
      }
    }
  });
}

TEST(Math, PairsStreamedOrAloneHaveTheSameBits) {
  at_every_level([] {
    const std::vector<float> a = mixed(), b(a.rbegin(), a.rend());
    const auto n = static_cast<std::int64_t>(a.size());
    alignas(64) float all[512], streamed[512];
    const auto check = [&](cpu::FloatBinary cached, cpu::FloatBinary past, std::string_view name) {
      ASSERT_EQ(cached == nullptr, past == nullptr);
      if (!cached) return;
      cached(a.data(), b.data(), all, n);
      {
        const cpu::StreamFence fence;
        past(a.data(), b.data(), streamed, n);
      }
      EXPECT_TRUE(same_bits(all, streamed, a.size())) << name;
      for (std::size_t i = 0; i < a.size(); ++i) {
        float alone = 0;
        cached(&a[i], &b[i], &alone, 1);
        EXPECT_TRUE(same_bits(&alone, all + i, 1)) << name << " of " << a[i] << ", " << b[i];
      }
    };
    constexpr cpu::Stores kPast = cpu::Stores::streamed;
    for (int kind = 0; kind <= static_cast<int>(BinaryKind::logical_or); ++kind) {
      const auto binary = static_cast<BinaryKind>(kind);
      check(cpu::float_binary(binary), cpu::float_binary(binary, kPast), to_string(binary));
      check(cpu::wide_binary(binary), cpu::wide_binary(binary, kPast), to_string(binary));
    }
    for (const UnaryKind kind : {UnaryKind::silu, UnaryKind::gelu, UnaryKind::gelu_tanh}) {
      check(cpu::float_gated(kind), cpu::float_gated(kind, kPast), to_string(kind));
    }
  });
}

// ---- Halves in one pass: what widening, the float function and narrowing give, bit for bit.

constexpr UnaryKind kUnary[] = {UnaryKind::exp,      UnaryKind::sigmoid,   UnaryKind::silu,
                                UnaryKind::tanh,     UnaryKind::erf,       UnaryKind::gelu,
                                UnaryKind::relu,     UnaryKind::gelu_tanh, UnaryKind::sqrt,
                                UnaryKind::rsqrt,    UnaryKind::abs,       UnaryKind::reciprocal,
                                UnaryKind::negative, UnaryKind::square};
constexpr BinaryKind kBinary[] = {BinaryKind::add,    BinaryKind::subtract, BinaryKind::multiply,
                                  BinaryKind::divide, BinaryKind::maximum,  BinaryKind::minimum};

constexpr CompareKind kCompare[] = {CompareKind::equal,   CompareKind::not_equal,
                                    CompareKind::less,    CompareKind::less_equal,
                                    CompareKind::greater, CompareKind::greater_equal};

/// Every pattern there is, and a few more, so that the last vector is not whole.
std::vector<std::uint16_t> patterns(std::uint16_t step) {
  std::vector<std::uint16_t> bits(65536 + 5);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i * step);
  return bits;
}

/// Each as it is, or the next pattern to either side.
std::vector<std::uint16_t> near(std::vector<std::uint16_t> bits) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint16_t>(bits[i] + i % 3 - 1);
  }
  return bits;
}

std::vector<float> widened(DType dtype, const std::vector<std::uint16_t>& bits) {
  std::vector<float> values(bits.size());
  cpu::widen_function(dtype)(bits.data(), values.data(), static_cast<std::int64_t>(bits.size()));
  return values;
}

std::vector<std::uint16_t> narrowed(DType dtype, const std::vector<float>& values) {
  std::vector<std::uint16_t> bits(values.size());
  cpu::narrow_function(dtype)(values.data(), bits.data(), static_cast<std::int64_t>(bits.size()));
  return bits;
}

/// Of two NaN, which one a sum or a product hands on is the compiler's choice.
bool same_but_for_nan(DType dtype, const std::vector<std::uint16_t>& a,
                      const std::vector<std::uint16_t>& b) {
  const std::vector<float> x = widened(dtype, a), y = widened(dtype, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && !(std::isnan(x[i]) && std::isnan(y[i]))) return false;
  }
  return true;
}

/// The language's own comparison.
bool compared(CompareKind kind, float a, float b) {
  switch (kind) {
    case CompareKind::equal:
      return a == b;
    case CompareKind::not_equal:
      return a != b;
    case CompareKind::less:
      return a < b;
    case CompareKind::less_equal:
      return a <= b;
    case CompareKind::greater:
      return a > b;
    case CompareKind::greater_equal:
      return a >= b;
  }
  return false;
}

/// What every 64-bit Arm processor has, portable loops are compiled for.
bool has_vectors() {
#if defined(__aarch64__)
  return true;
#else
  return cpu::isa() != cpu::Isa::portable;
#endif
}

template <class T>
void expect_halves_as_floats(DType dtype, cpu::UnaryMap<T> (*find_unary)(UnaryKind),
                             cpu::BinaryMap<T> (*find_binary)(BinaryKind),
                             cpu::CompareMap<T> (*find_compare)(CompareKind)) {
  const std::vector<std::uint16_t> a = patterns(1), b = patterns(40503);
  const std::vector<float> x = widened(dtype, a), y = widened(dtype, b);
  const auto n = static_cast<std::int64_t>(a.size());
  const auto* from = reinterpret_cast<const T*>(a.data());
  std::vector<float> floats(a.size());
  for (const UnaryKind kind : kUnary) {
    std::vector<std::uint16_t> got(a.size());
    find_unary(kind)(from, reinterpret_cast<T*>(got.data()), n);
    cpu::float_unary(kind)(x.data(), floats.data(), n);
    EXPECT_TRUE(same_but_for_nan(dtype, got, narrowed(dtype, floats)))
        << to_string(kind) << " " << to_string(dtype);
  }
  for (const BinaryKind kind : kBinary) {
    std::vector<std::uint16_t> got = a;  // in place
    auto* to = reinterpret_cast<T*>(got.data());
    find_binary(kind)(to, reinterpret_cast<const T*>(b.data()), to, n);
    cpu::float_binary(kind)(x.data(), y.data(), floats.data(), n);
    EXPECT_TRUE(same_but_for_nan(dtype, got, narrowed(dtype, floats)))
        << to_string(kind) << " " << to_string(dtype);
  }
  const std::vector<std::uint16_t> c = near(a);
  const std::vector<float> z = widened(dtype, c);
  for (const CompareKind kind : kCompare) {
    ASSERT_EQ(find_compare(kind) != nullptr, has_vectors());
    if (!find_compare(kind)) continue;
    const auto flags = std::make_unique<bool[]>(a.size()),
               wide = std::make_unique<bool[]>(a.size());
    find_compare(kind)(from, reinterpret_cast<const T*>(c.data()), flags.get(), n);
    cpu::float_compare(kind)(x.data(), z.data(), wide.get(), n);
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(flags[i], compared(kind, x[i], z[i])) << to_string(kind) << x[i] << ", " << z[i];
      ASSERT_EQ(wide[i], flags[i]) << to_string(kind) << x[i] << ", " << z[i];
    }
  }
}

TEST(Math, HalvesAreComputedAsFloats) {
  at_every_level([] {
    expect_halves_as_floats(DType::bf16, cpu::bf16_unary, cpu::bf16_binary, cpu::bf16_compare);
    const bool converts = has_vectors();
    EXPECT_EQ(cpu::f16_unary(UnaryKind::exp) != nullptr, converts);
    if (converts)
      expect_halves_as_floats(DType::f16, cpu::f16_unary, cpu::f16_binary, cpu::f16_compare);
  });
}

}  // namespace
}  // namespace heddle::test
