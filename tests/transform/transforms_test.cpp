// What transforms do beside the numbers: arguments, nesting, looking at values, rules of one's own.
#include <map>
#include <thread>

#include "array/array_test_support.h"
#include "array/node.h"
#include "host_math.h"

namespace heddle::test {
namespace {

const ArrayFunction kSquare = [](const Array& x) { return x * x; };

TEST(Grad, OfAScalar) {
  EXPECT_EQ(grad(kSquare)(Array(3.0f)).item<float>(), 6.0f);
  const auto [value, gradient] = value_and_grad(kSquare)(Array(3.0f));
  EXPECT_EQ(value.item<float>(), 9.0f);
  EXPECT_EQ(gradient.item<float>(), 6.0f);
}

TEST(Grad, ByTheArgumentsNamed) {
  const ArraysFunction f = [](const std::vector<Array>& in) {
    return std::vector<Array>{sum(in[0] * in[1] * in[1]), in[0] + 1};
  };
  const Array a({1.0f, 2.0f}), b({3.0f, 4.0f});
  expect_near(grad(f)({a, b})[0], {9, 16});
  expect_near(grad(f, -1)({a, b})[0], {6, 16});
  const auto [values, gradients] = value_and_grad(f, {1, 0})({a, b});
  ASSERT_EQ(values.size(), 2u);
  expect_near(values[1], {2, 3});
  expect_near(gradients[0], {6, 16});
  expect_near(gradients[1], {9, 16});
}

TEST(Grad, OfWhatDoesNotDependOnTheArgumentIsZero) {
  expect_near(grad([](const Array&) { return Array(2.0f); })(Array({1.0f, 2.0f})), {0, 0});
  const auto steps = [](const Array& x) { return sum(floor(x)) + sum(astype(x > 0, DType::f32)); };
  expect_near(grad(steps)(Array({1.0f, 2.0f})), {0, 0});
}

TEST(Grad, TheArgumentItselfIsAnOutput) {
  expect_near(grad([](const Array& x) { return x; })(Array(5.0f)), {1});
}

TEST(Grad, RefusesWhatHasNone) {
  const ArraysFunction f = [](const std::vector<Array>& in) { return in; };
  expect_invalid([&] { grad(f)({Array(1)}); }, {"argument 0 is i32[]"});
  expect_invalid([&] { grad(f)({Array({1.0f})}); }, {"first output is f32[1]", "scalar"});
  expect_invalid([&] { grad(f, 1)({Array(1.0f)}); }, {"argument 1 is outside of the 1"});
  expect_invalid([&] { grad(f, {0, -1})({Array(1.0f)}); }, {"named twice"});
  expect_invalid([&] { grad(f, std::vector<int>{})({Array(1.0f)}); }, {"no arguments are named"});
  const ArraysFunction none = [](const std::vector<Array>&) { return std::vector<Array>{}; };
  expect_invalid([&] { grad(none)({Array(1.0f)}); }, {"gives no array"});
  expect_invalid([&] { vjp(f, {Array(1.0f)}, {}); }, {"vjp: there are 0 cotangents for 1 outputs"});
  expect_invalid([&] { vjp(f, {Array(1.0f)}, {Array(1)}); }, {"cotangent 0 is i32[]", "f32[]"});
  expect_invalid([&] { jvp(f, {Array(1.0f)}, {Array({1.0f})}); }, {"tangent 0 is f32[1]"});
}

TEST(Grad, NestsToAnyDepth) {
  ArrayFunction f = [](const Array& x) { return exp(x * 2); };
  double expected = std::exp(1.0);
  for (int depth = 0; depth < 5; ++depth) {
    EXPECT_NEAR(f(Array(0.5f)).item<float>(), expected, 1e-4 * expected) << depth;
    f = grad(f);
    expected *= 2;
  }
}

TEST(Grad, AValueOfAnOuterTransformIsAVariableToIt) {
  // d/dx of x * d/dy (x y^2) at y = x, which is 2 x^2.
  const ArrayFunction outer = [](const Array& x) {
    return x * grad([&](const Array& y) { return x * y * y; })(x);
  };
  EXPECT_NEAR(grad(outer)(Array(3.0f)).item<float>(), 6 * 9, 1e-4);
}

TEST(Grad, OfAFunctionThatLooksAtValues) {
  const ArrayFunction f = [](const Array& x) {
    const Array doubled = x * 2;
    return doubled.item<float>() > 0 ? doubled * doubled : -doubled;
  };
  EXPECT_EQ(grad(f)(Array(3.0f)).item<float>(), 24.0f);
  EXPECT_EQ(grad(f)(Array(-3.0f)).item<float>(), -2.0f);
  EXPECT_EQ(grad(grad(f))(Array(3.0f)).item<float>(), 8.0f);
}

TEST(Grad, AnInnerTransformsValuesStayKnownToTheOuter) {
  const ArrayFunction inner = [](const Array& x) {
    const Array y = sin(x);
    y.eval();
    return y * y;
  };
  const ArrayFunction outer = [&](const Array& x) {
    const auto [value, gradient] = value_and_grad(inner)(x);
    eval(value, gradient);
    return value + gradient;
  };
  const double x = 0.7;
  EXPECT_NEAR(grad(outer)(Array(0.7f)).item<float>(), std::sin(2 * x) + 2 * std::cos(2 * x), 1e-5);
}

TEST(Grad, KeepsNothingOnceItIsDone) {
  const Array x({1.0f, 2.0f});
  std::optional<Array> middle;
  const Array gradient = grad([&](const Array& in) {
    middle = exp(in);
    middle->eval();
    return sum(*middle);
  })(x);
  gradient.eval();
  std::size_t inputs = 0;
  EXPECT_FALSE(middle->node()->visit_retained([&](const Array&) { ++inputs; }));
}

TEST(Grad, OnManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<float> found(4);
  for (std::size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        found[t] = grad(grad(kSquare))(Array(static_cast<float>(t))).item<float>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, (std::vector<float>{2, 2, 2, 2}));
}

TEST(Grad, ErrorsOfTheFunctionGoThrough) {
  const ArrayFunction f = [](const Array& x) -> Array { return reshape(x, {7}); };
  expect_invalid([&] { grad(f)(Array({1.0f, 2.0f})); }, {"reshape"});
  // The thread traces nothing afterwards.
  EXPECT_EQ(grad(kSquare)(Array(3.0f)).item<float>(), 6.0f);
}

TEST(Jvp, OfIntegersIsZero) {
  const ArraysFunction f = [](const std::vector<Array>& in) {
    return std::vector<Array>{in[0] * in[1], in[1] + 1};
  };
  const auto [outputs, tangents] = jvp(f, {Array(2.0f), Array(3)}, {Array(1.0f), Array(5)});
  EXPECT_EQ(tangents[0].item<float>(), 3.0f);
  EXPECT_EQ(tangents[1].item<int>(), 0);
}

// ---- Complex

TEST(Complex, AgreesWithDifferencesOfBothParts) {
  std::mt19937 random(3);
  const auto complex = [&](const Shape& shape) {
    std::vector<std::complex<float>> values(static_cast<std::size_t>(elements(shape)));
    std::uniform_real_distribution<float> uniform(0.3f, 1.2f);
    for (auto& value : values) value = {uniform(random), uniform(random)};
    return Array(std::span<const std::complex<float>>(values), shape);
  };
  const std::map<std::string, ArraysFunction> functions{
      {"multiply", [](const auto& in) { return std::vector<Array>{in[0] * in[1]}; }},
      {"divide", [](const auto& in) { return std::vector<Array>{in[0] / in[1]}; }},
      {"sum", [](const auto& in) { return std::vector<Array>{sum(in[0] - in[1], 0)}; }},
      {"abs", [](const auto& in) { return std::vector<Array>{abs(in[0] * in[1])}; }}};
  const std::vector<Array> x{complex({2, 3}), complex({2, 3})};
  const std::vector<Array> t{complex({2, 3}), complex({2, 3})};
  for (const auto& [name, f] : functions) {
    const auto [outputs, pushed] = jvp(f, x, t);
    const std::vector<double> expected = central_difference(f, x, t, 1e-2);
    const std::vector<double> got = numbers(pushed);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 5e-3) << name;
    std::vector<Array> g;
    for (const Array& output : outputs) {
      g.push_back(output.dtype() == DType::complex64 ? complex(output.shape()) : ones_like(output));
    }
    const double pulled = inner(numbers(vjp(f, x, g).second), numbers(t));
    EXPECT_NEAR(pulled, inner(numbers(g), expected), 3e-2) << name;
  }
}

// ---- Trees

struct Layer {
  Array weight, bias;
  Array ids;
  auto leaves() const { return std::tie(weight, bias, ids); }
};

TEST(Tree, GradientsLookLikeTheParameters) {
  const std::map<std::string, Layer> parameters{
      {"a", {Array({1.0f, 2.0f}), Array(3.0f), Array({1, 0})}},
      {"b", {Array({4.0f, 5.0f}), Array(6.0f), Array({0, 0})}}};
  const auto loss = [](const std::map<std::string, Layer>& p, const Array& x) {
    const Layer &a = p.at("a"), &b = p.at("b");
    const Array y = sum(take(a.weight, a.ids, 0) * x * b.weight) + a.bias * b.bias;
    return std::pair(y, std::vector<Array>{x + 1});
  };
  const auto [result, gradients] = value_and_grad(loss, parameters, Array({1.0f, 10.0f}));
  EXPECT_EQ(result.first.item<float>(), 2 * 4 + 10 * 5 + 18);
  expect_near(result.second[0], {2, 11});
  expect_near(gradients.at("a").weight, {50, 4});
  expect_near(gradients.at("a").bias, {6});
  expect_near(gradients.at("b").weight, {2, 10});
  expect_near(gradients.at("b").ids, {0, 0});
  EXPECT_EQ(gradients.at("b").ids.dtype(), DType::i32);
}

// ---- Rules of one's own

TEST(StopGradient, IsAConstant) {
  const ArrayFunction f = [](const Array& x) { return stop_gradient(x) * x; };
  EXPECT_EQ(grad(f)(Array(3.0f)).item<float>(), 3.0f);
  EXPECT_EQ(jvp(f, Array(3.0f), Array(1.0f)).second.item<float>(), 3.0f);
  expect_near(vmap(grad(f))(Array({3.0f, 4.0f})), {3, 4});
  EXPECT_EQ(f(Array(3.0f)).item<float>(), 9.0f);
}

TEST(CustomFunction, GoesByItsRules) {
  CustomRules rules;
  rules.vjp = [](const auto& in, const auto& g, const auto& out) {
    return std::vector<Array>{g[0] * in[1] * 10, g[0] * out[0]};
  };
  rules.jvp = [](const auto& in, const auto& t) {
    return std::vector<Array>{t[0] * 100 + t[1] * in[0]};
  };
  rules.vmap = [](const auto& in, const auto& axes) {
    EXPECT_EQ(axes, (std::vector<int>{0, -1}));
    return std::pair(std::vector<Array>{in[0] * in[1] + 1000}, std::vector<int>{0});
  };
  const ArraysFunction product = [](const std::vector<Array>& in) {
    return std::vector<Array>{in[0] * in[1]};
  };
  const ArraysFunction f = custom_function(product, rules);
  const std::vector<Array> at{Array(2.0f), Array(3.0f)};
  EXPECT_EQ(f(at)[0].item<float>(), 6.0f);
  EXPECT_EQ(grad(f, {0, 1})(at)[0].item<float>(), 30.0f);
  EXPECT_EQ(grad(f, {0, 1})(at)[1].item<float>(), 6.0f);
  EXPECT_EQ(jvp(f, at, {Array(1.0f), Array(1.0f)}).second[0].item<float>(), 102.0f);
  expect_near(vmap(f, {0, -1})({Array({1.0f, 2.0f}), Array(3.0f)})[0], {1003, 1006});
  const ArraysFunction plain = custom_function(product, {});
  EXPECT_EQ(grad(plain)(at)[0].item<float>(), 3.0f);
  EXPECT_EQ(jvp(plain, at, {Array(1.0f), Array(1.0f)}).second[0].item<float>(), 5.0f);
  expect_near(vmap(plain, {0, -1})({Array({1.0f, 2.0f}), Array(3.0f)})[0], {3, 6});
}

TEST(CustomFunction, ARuleThatGivesTheWrongShapesIsNamed) {
  const ArraysFunction same = [](const std::vector<Array>& in) {
    return std::vector<Array>{sum(in[0])};
  };
  const ArraysFunction f = custom_vjp(
      same, [](const auto&, const auto& g, const auto&) { return std::vector<Array>{g[0]}; });
  expect_invalid(
      [&] {
        grad(f)({Array({1.0f, 2.0f})});
      },
      {"custom_function: vjp", "cotangent 0 is f32[]", "f32[2]"});
}

TEST(Checkpoint, GivesTheSameAndComputesAgain) {
  int calls = 0;
  const ArraysFunction f = [&](const std::vector<Array>& in) {
    ++calls;
    return std::vector<Array>{sum(sin(in[0]) * in[1])};
  };
  const std::vector<Array> at{Array({0.3f, 0.6f}), Array({2.0f, 3.0f})};
  const std::vector<Array> expected = grad(f, {0, 1})(at);
  calls = 0;
  const std::vector<Array> found = grad(checkpoint(f), {0, 1})(at);
  EXPECT_EQ(calls, 2);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(doubles(found[i]), doubles(expected[i]));
  const ArraysFunction second = grad([&](const std::vector<Array>& in) {
    return std::vector<Array>{sum(grad(checkpoint(f))(in)[0])};
  });
  expect_near(second(at)[0], {-2 * std::sin(0.3), -3 * std::sin(0.6)}, 1e-5);
}

}  // namespace
}  // namespace heddle::test
