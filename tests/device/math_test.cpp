// How far the vectorised functions are from the exact value, over their whole domain.
#include <cmath>

#include "device/cpu/math_ops.h"
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

}  // namespace
}  // namespace heddle::test
