// Every derivative against central differences, forwards against backwards, first and second order.
#include <gtest/gtest.h>

#include "host_math.h"

namespace heddle::test {
namespace {

class Gradient : public testing::TestWithParam<std::size_t> {
 protected:
  static const std::vector<GradientCase>& all() {
    static const std::vector<GradientCase> cases = gradient_cases();
    return cases;
  }
  const GradientCase& given() const { return all()[GetParam()]; }

  /// vjp and jvp of f at x against differences and each other.
  void check(const ArraysFunction& f, const std::vector<Array>& x, double tolerance) {
    const std::vector<Array> t = random_like(random_, x);
    const auto [outputs, pushed] = jvp(f, x, t);
    const std::vector<Array> g = random_like(random_, outputs);
    const std::vector<Array> pulled = vjp(f, x, g).second;
    ASSERT_EQ(numbers(outputs), numbers(f(x)));
    const std::vector<double> expected = central_difference(f, x, t, given().step);
    const std::vector<double> forwards = numbers(pushed);
    ASSERT_EQ(forwards.size(), expected.size());
    const double size = std::max(1.0, length(expected));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(forwards[i], expected[i], tolerance * size) << "output element " << i;
    }
    const double along = inner(numbers(g), expected);
    EXPECT_NEAR(inner(numbers(pulled), numbers(t)), along,
                tolerance * std::max(1.0, length(numbers(g)) * size));
  }

  std::mt19937 random_{7};
};

TEST_P(Gradient, IsWhatDifferencesSay) {
  check(given().function, given().inputs, given().tolerance);
}

TEST_P(Gradient, AndSoIsItsOwnGradient) {
  if (!given().second_order)
    GTEST_SKIP() << "computes in f32: differences of differences are noise";
  const std::vector<Array> outputs = given().function(given().inputs);
  const std::vector<Array> g = random_like(random_, outputs);
  const ArraysFunction& f = given().function;
  check([&](const std::vector<Array>& x) { return vjp(f, x, g).second; }, given().inputs,
        30 * given().tolerance);
}

TEST_P(Gradient, IsTheSameForAMapAsForALoop) {
  std::vector<Array> batch;
  for (const Array& input : given().inputs) {
    batch.push_back(stack({input, input * 0.75, input + 0.01}, 0));
  }
  const ArraysFunction& f = given().function;
  const ArraysFunction gradient = [&](const std::vector<Array>& x) {
    std::vector<Array> g;
    for (const Array& output : f(x)) g.push_back(ones_like(output));
    return vjp(f, x, g).second;
  };
  for (const ArraysFunction& each : {f, gradient}) {
    const std::vector<Array> mapped = vmap(each)(batch);
    for (int at = 0; at < 3; ++at) {
      std::vector<Array> example;
      for (const Array& input : batch) example.push_back(take(input, Array(at), 0));
      const std::vector<Array> expected = each(example);
      ASSERT_EQ(mapped.size(), expected.size());
      for (std::size_t i = 0; i < mapped.size(); ++i) {
        const Array got = take(mapped[i], Array(at), 0);
        ASSERT_EQ(got.spec(), expected[i].spec());
        const std::vector<double> a = numbers({got}), b = numbers({expected[i]});
        for (std::size_t k = 0; k < a.size(); ++k) {
          if (std::isnan(b[k])) continue;  // a difference of infinities, where the case has some
          EXPECT_NEAR(a[k], b[k], 1e-5 * std::max(1.0, std::abs(b[k]))) << "output " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Gradient, testing::Range<std::size_t>(0, gradient_cases().size()),
                         [](const auto& of) { return gradient_cases()[of.param].name; });

}  // namespace
}  // namespace heddle::test
