// How far the vectorised functions that Highway knows are from the exact value, over their whole
// domain and beyond it.
#include "device/cpu/wide_math.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "device/cpu/floor_division.h"
#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Domain {
  UnaryKind kind;
  float low, high;
};
constexpr Domain kDomains[] = {
    {UnaryKind::log, 0, 1e6f},        {UnaryKind::log2, 0, 1e6f},
    {UnaryKind::log10, 0, 1e6f},      {UnaryKind::log1p, -1, 1e6f},
    {UnaryKind::expm1, -105, 90},     {UnaryKind::sin, -45000, 45000},
    {UnaryKind::cos, -45000, 45000},  {UnaryKind::tan, -9000, 9000},
    {UnaryKind::sinh, -91, 91},       {UnaryKind::cosh, -91, 91},
    {UnaryKind::arcsin, -1, 1},       {UnaryKind::arccos, -1, 1},
    {UnaryKind::arctan, -1000, 1000}, {UnaryKind::arcsinh, -1e6f, 1e6f},
    {UnaryKind::arccosh, 1, 1e6f},    {UnaryKind::arctanh, -1, 1},
    {UnaryKind::erfinv, -1, 1},       {UnaryKind::floor, -9, 9},
    {UnaryKind::ceil, -9, 9},         {UnaryKind::trunc, -9, 9},
    {UnaryKind::round, -9, 9},        {UnaryKind::sign, -9, 9},
};

/// Evenly over the domain and over [-4, 4], by powers, and what no function is good at.
std::vector<float> samples(float low, float high) {
  std::vector<float> xs = {0.0f,   -0.0f,   NAN,     kInfinity, -kInfinity, 1.0f,   -1.0f,
                           1e-40f, -1e-40f, 3.4e38f, -3.4e38f,  1e30f,      -1e30f, 8388609.0f};
  constexpr int kCount = 40001;
  for (int i = 0; i < kCount; ++i) {
    const float part = static_cast<float>(i) / (kCount - 1);
    xs.push_back(low + (high - low) * part);
    xs.push_back(-4 + 8 * part);
  }
  for (int i = -200; i < 200; ++i) {  // and where sines and tangents have zeros and poles
    xs.push_back(static_cast<float>(i) * std::numbers::pi_v<float> / 2);
    xs.push_back(static_cast<float>(i) + 0.5f);
  }
  for (float x = 1e-38f; x < high; x *= 1.07f) {
    for (const float end : {low, 0.0f, 1.0f}) {
      xs.push_back(end + x);
      xs.push_back(end - x);
    }
  }
  return xs;
}

double ulps_between(float got, Number want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(static_cast<float>(want))) return got == static_cast<float>(want) ? 0 : 1e9;
  const int exponent = want == 0 ? -126 : std::max(-126, std::ilogb(want));
  return static_cast<double>(std::fabs(got - want) / std::ldexp(Number{1}, exponent - 23));
}

TEST(WideMath, UnaryAccuracy) {
  at_every_level([] {
    for (const Domain& domain : kDomains) {
      const cpu::FloatUnary function = cpu::wide_unary(domain.kind);
      if (!function) {  // no vectors, which every 64-bit Arm processor has
        EXPECT_EQ(cpu::isa(), cpu::Isa::portable);
        continue;
      }
      const std::vector<float> xs = samples(domain.low, domain.high);
      std::vector<float> ys(xs.size());
      function(xs.data(), ys.data(), static_cast<std::int64_t>(xs.size()));
      double worst = 0;
      float where = 0;
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const double error =
            ulps_between(ys[i], reference_activation(domain.kind, static_cast<Number>(xs[i])));
        if (error > worst) worst = error, where = xs[i];
      }
      EXPECT_LE(worst, 4) << to_string(domain.kind) << " at " << where;
      std::printf("%-10s %.2f ulp at %.9g\n", std::string(to_string(domain.kind)).c_str(), worst,
                  static_cast<double>(where));
    }
  });
}

TEST(WideMath, PowersOfTwoHaveWholeLogarithms) {
  at_every_level([] {
    const cpu::FloatUnary log2 = cpu::wide_unary(UnaryKind::log2);
    if (!log2) return;
    std::vector<float> xs, ys;
    for (int i = -126; i < 128; ++i) xs.push_back(std::ldexp(1.0f, i));
    ys.resize(xs.size());
    log2(xs.data(), ys.data(), static_cast<std::int64_t>(xs.size()));
    for (std::size_t i = 0; i < xs.size(); ++i) EXPECT_EQ(ys[i], static_cast<float>(i) - 126);
  });
}

TEST(WideMath, TheSameWhereverItStands) {
  at_every_level([] {
    std::vector<float> xs = samples(0.5f, 0.9f);
    xs.resize(120);
    for (const Domain& domain : kDomains) {
      const cpu::FloatUnary function = cpu::wide_unary(domain.kind);
      if (!function) continue;
      std::vector<float> all(xs.size());
      function(xs.data(), all.data(), static_cast<std::int64_t>(xs.size()));
      for (std::size_t begin = 0; begin < 20; ++begin) {
        std::vector<float> some(xs.begin() + static_cast<long>(begin), xs.end());
        function(some.data(), some.data(), static_cast<std::int64_t>(some.size()));  // in place
        ASSERT_EQ(std::memcmp(some.data(), all.data() + begin, some.size() * sizeof(float)), 0)
            << to_string(domain.kind) << " from " << begin;
      }
    }
  });
}

// ---- Of two arguments

struct Pairs {
  std::vector<float> a, b;
};

Pairs pairs() {
  const std::vector<float> odd = {0.0f,  -0.0f,  NAN,    kInfinity, -kInfinity, 1,       -1,
                                  2,     -2,     3,      -3,        0.5f,       -0.5f,   1e-40f,
                                  3e38f, -3e38f, 1e-30f, 100,       -100,       16777216};
  Pairs all;
  for (const float x : odd) {
    for (const float y : odd) all.a.push_back(x), all.b.push_back(y);
  }
  Random random(1);
  for (const float range : {2.0f, 30.0f, 1000.0f}) {
    std::uniform_real_distribution<float> any(-range, range);
    for (int i = 0; i < 40000; ++i) {
      all.a.push_back(any(random));
      all.b.push_back(i % 4 == 0 ? std::round(any(random)) : any(random));
      if (i % 8 == 0) all.a.back() = all.b.back() * std::round(any(random));  // whole multiples
    }
  }
  return all;
}

std::vector<float> computed(BinaryKind kind, const Pairs& x) {
  std::vector<float> out(x.a.size());
  cpu::wide_binary(kind)(x.a.data(), x.b.data(), out.data(), static_cast<std::int64_t>(out.size()));
  return out;
}

TEST(WideMath, DivisionThatRoundsDownIsExact) {
  at_every_level([] {
    if (!cpu::wide_binary(BinaryKind::remainder)) return;
    const Pairs x = pairs();
    const std::vector<float> quotients = computed(BinaryKind::floor_divide, x);
    const std::vector<float> rests = computed(BinaryKind::remainder, x);
    for (std::size_t i = 0; i < x.a.size(); ++i) {
      const float quotient = cpu::floor_quotient(x.a[i], x.b[i]);
      const float rest = cpu::floor_rest(x.a[i], x.b[i]);
      const auto same = [](float got, float want) {
        if (std::isnan(want)) return std::isnan(got);
        return got == want && std::signbit(got) == std::signbit(want);
      };
      ASSERT_TRUE(same(quotients[i], quotient))
          << x.a[i] << " // " << x.b[i] << " is " << quotients[i] << ", not " << quotient;
      ASSERT_TRUE(same(rests[i], rest))
          << x.a[i] << " % " << x.b[i] << " is " << rests[i] << ", not " << rest;
    }
  });
}

TEST(WideMath, BinaryAccuracy) {
  at_every_level([] {
    if (!cpu::wide_binary(BinaryKind::power)) return;
    const Pairs x = pairs();
    const auto check = [&](BinaryKind kind, double absolute, const auto& exact) {
      const std::vector<float> got = computed(kind, x);
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Number want = exact(static_cast<Number>(x.a[i]), static_cast<Number>(x.b[i]));
        if (std::fabs(got[i] - want) <= static_cast<Number>(absolute)) continue;
        const double error = ulps_between(got[i], want);
        ASSERT_LE(error, 4) << to_string(kind) << " of " << x.a[i] << ", " << x.b[i] << " is "
                            << got[i] << ", not " << static_cast<double>(want);
        worst = std::max(worst, error);
      }
      std::printf("%-10s %.2f ulp\n", std::string(to_string(kind)).c_str(), worst);
    };
    check(BinaryKind::power, 0, [](Number a, Number b) { return std::pow(a, b); });
    check(BinaryKind::arctan2, 0, [](Number a, Number b) { return std::atan2(a, b); });
    check(BinaryKind::logaddexp, 3e-7, [](Number a, Number b) {
      if (a == b) return a + std::log(Number{2});
      return (a > b || a != a ? a : b) + std::log1p(std::exp(-std::fabs(a - b)));
    });
  });
}

}  // namespace
}  // namespace heddle::test
