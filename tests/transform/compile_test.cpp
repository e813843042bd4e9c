// Compiled functions give what the functions give, trace once a signature, and keep out of the way
// of what surrounds them.
#include "heddle/compile.h"

#include <thread>

#include "array/array_test_support.h"
#include "heddle/device.h"
#include "host_math.h"

namespace heddle::test {
namespace {

class Compile : public testing::TestWithParam<CompileMode> {
 protected:
  void SetUp() override { set_compile_mode(GetParam()); }
  void TearDown() override { enable_compile(); }
};

TEST_P(Compile, EveryFunctionOfTheGradientCasesAndItsGradient) {
  std::mt19937 random(5);
  for (const GradientCase& given : gradient_cases()) {
    SCOPED_TRACE(given.name);
    const std::vector<Array> g = random_like(random, given.function(given.inputs));
    const ArraysFunction gradient = [&](const std::vector<Array>& x) {
      return vjp(given.function, x, g).second;
    };
    for (const ArraysFunction& f : {given.function, gradient}) {
      const std::vector<double> eager = numbers(f(given.inputs));
      const std::vector<double> compiled = numbers(compile(f)(given.inputs));
      ASSERT_EQ(compiled.size(), eager.size());
      for (std::size_t i = 0; i < eager.size(); ++i) {
        if (std::isnan(eager[i])) continue;
        ASSERT_NEAR(compiled[i], eager[i], 1e-6 * std::max(1.0, std::abs(eager[i]))) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Compile,
                         testing::Values(CompileMode::no_simplify, CompileMode::no_fuse,
                                         CompileMode::enabled));

TEST(Compiled, TracesOnceASignature) {
  int calls = 0;
  const ArrayFunction f = compile([&](const Array& x) {
    ++calls;
    return x * 2;
  });
  const auto call = [&](const Array& x, const std::vector<double>& expected, int calls_then) {
    expect_near(f(x), expected);
    EXPECT_EQ(calls, calls_then);
  };
  call(Array({1.0f, 2.0f}), {2, 4}, 1);
  call(Array({3.0f, 4.0f}), {6, 8}, 1);
  call(Array({3, 4}), {6, 8}, 2);
  call(Array({1.0f, 2.0f, 3.0f}), {2, 4, 6}, 3);
  call(Array({5.0f, 6.0f}), {10, 12}, 3);
  const DeviceScope scope(cpu_device());
  call(Array({5.0f, 6.0f}), {10, 12}, 4);
}

TEST(Compiled, ResultsOutliveTheNextCall) {
  const ArrayFunction f = compile([](const Array& x) { return x + 1; });
  const Array first = f(Array({1.0f, 2.0f})), second = f(Array({3.0f, 4.0f}));
  expect_near(first, {2, 3});
  expect_near(second, {4, 5});
}

TEST(Compiled, ArgumentsAreLeftAsTheyAre) {
  const ArrayFunction f = compile([](const Array& x) { return exp(x) * x + x; });
  const Array x({1.0f, 2.0f});
  f(x);
  expect_near(x, {1, 2});
  Array alone({1.0f, 2.0f});
  const Array view = alone;
  alone = f(std::move(alone));
  expect_near(view, {1, 2});
}

TEST(Compiled, GivesArgumentsConstantsAndNothing) {
  const Array captured({7.0f, 8.0f});
  const ArraysFunction f = compile([&](const std::vector<Array>& in) {
    return std::vector<Array>{in[0], captured, in[0], captured * 2};
  });
  const std::vector<Array> out = f({Array({1.0f})});
  expect_near(out[0], {1});
  expect_near(out[1], {7, 8});
  expect_near(out[2], {1});
  expect_near(out[3], {14, 16});
  EXPECT_TRUE(compile([](const std::vector<Array>&) { return std::vector<Array>{}; })({}).empty());
}

TEST(Compiled, TakesViewsOfEveryStride) {
  const ArraysFunction plain = [](const std::vector<Array>& in) {
    return std::vector<Array>{in[0] * 2 + in[1]};
  };
  const ArraysFunction f = compile(plain);
  const Array x = reshape(arange(24.0), {4, 6});
  const std::vector<Array> views{slice(x, {0, 0}, {4, 6}, {2, 3}), flip(slice(x, {0, 0}, {2, 2})),
                                 transpose(slice(x, {1, 1}, {3, 3})),
                                 broadcast_to(Array({1.0f, 2.0f}), {2, 2}),
                                 as_strided(x, {2, 2}, {-3, 0}, 9)};
  for (const Array& a : views) {
    for (const Array& b : views) EXPECT_EQ(doubles(f({a, b})[0]), doubles(plain({a, b})[0]));
  }
}

TEST(Compiled, EmptyAndScalar) {
  const ArrayFunction f = compile([](const Array& x) { return x * x + 1; });
  EXPECT_EQ(f(zeros({0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(f(Array(3.0f)).item<float>(), 10.0f);
}

TEST(Compiled, InsideAndAroundTransforms) {
  const ArrayFunction cube = compile([](const Array& x) { return x * x * x; });
  EXPECT_EQ(grad(cube)(Array(2.0f)).item<float>(), 12.0f);
  EXPECT_EQ(compile(grad(cube))(Array(2.0f)).item<float>(), 12.0f);
  EXPECT_EQ(compile(grad(compile(grad(cube))))(Array(2.0f)).item<float>(), 12.0f);
  expect_near(vmap(cube)(Array({1.0f, 2.0f})), {1, 8});
  expect_near(compile(vmap(grad(cube)))(Array({1.0f, 2.0f})), {3, 12});
  EXPECT_EQ(jvp(cube, Array(2.0f), Array(1.0f)).second.item<float>(), 12.0f);
}

TEST(Compiled, AFunctionThatLooksAtItsArgumentIsRefused) {
  const ArrayFunction f = compile([](const Array& x) { return x.item<float>() > 0 ? x : -x; });
  expect_invalid([&] { f(Array(1.0f)); }, {"input"});
  // And may look at what it captured.
  const Array captured(2.0f);
  const ArrayFunction g =
      compile([&](const Array& x) { return captured.item<float>() > 0 ? x * captured : x; });
  EXPECT_EQ(g(Array(3.0f)).item<float>(), 6.0f);
}

TEST(Compiled, AnErrorIsTheFunctionsOwnAndTheNextCallWorks) {
  bool fails = true;
  const ArrayFunction f = compile([&](const Array& x) { return fails ? reshape(x, {5}) : x; });
  expect_invalid([&] { f(Array({1.0f})); }, {"reshape"});
  fails = false;
  expect_near(f(Array({1.0f})), {1});
}

TEST(Compiled, BadIndicesAreSeenAtEachCall) {
  const ArraysFunction f = compile([](const std::vector<Array>& in) {
    return std::vector<Array>{take_along_axis(in[0], in[1], 0)};
  });
  expect_near(f({Array({1.0f, 2.0f}), Array({1})})[0], {2});
  expect_invalid([&] { f({Array({1.0f, 2.0f}), Array({7})}); }, {"7"});
  expect_near(f({Array({1.0f, 2.0f}), Array({0})})[0], {1});
}

TEST(Shapeless, IsTracedOnceForARank) {
  int calls = 0;
  const ArrayFunction f = compile(
      [&](const Array& x) {
        ++calls;
        return sum(exp(x) * 2, 0);
      },
      true);
  const ArrayFunction plain = [](const Array& x) { return sum(exp(x) * 2, 0); };
  for (const Shape& shape : {Shape{2, 3}, Shape{5, 1}, Shape{2, 3}, Shape{0, 4}}) {
    const Array x = reshape(arange(static_cast<double>(elements(shape))), shape);
    EXPECT_EQ(doubles(f(x)), doubles(plain(x)));
  }
  EXPECT_EQ(calls, 1);
  f(Array({1.0f, 2.0f}));
  EXPECT_EQ(calls, 2);
}

TEST(Shapeless, AShapeThatWasWrittenDownNoLongerFits) {
  const ArrayFunction f = compile([](const Array& x) { return reshape(x, {6}); }, true);
  f(zeros({2, 3}));
  expect_invalid([&] { f(zeros({2, 4})); }, {"compile", "shapeless", "reshape"});
}

TEST(CompiledState, IsReadAndLeftBehind) {
  Array total(0.0f), count(0);
  int calls = 0;
  const ArraysFunction step = compile(
      [&](const std::vector<Array>& in) {
        ++calls;
        total = total + sum(in[0]);
        count = count + 1;
        return std::vector<Array>{total / astype(count, DType::f32)};
      },
      false, {&total, &count});
  EXPECT_EQ(step({Array({1.0f, 2.0f})})[0].item<float>(), 3.0f);
  EXPECT_EQ(step({Array({4.0f, 5.0f})})[0].item<float>(), 6.0f);
  EXPECT_EQ(total.item<float>(), 12.0f);
  EXPECT_EQ(count.item<int>(), 2);
  total = Array(100.0f);
  EXPECT_EQ(step({Array({0.0f, 2.0f})})[0].item<float>(), 34.0f);
  EXPECT_EQ(calls, 1);
}

TEST(CompiledState, StaysAsItWasAfterAnError) {
  Array state({1.0f, 2.0f});
  const ArraysFunction grows = compile(
      [&](const std::vector<Array>&) {
        state = concatenate({state, state});
        return std::vector<Array>{};
      },
      false, {&state});
  expect_invalid([&] { grows({}); }, {"compile: state 0 is f32[2]", "f32[4]"});
  expect_near(state, {1, 2});
}

TEST(Compiled, OnManyThreads) {
  const ArrayFunction f = compile([](const Array& x) { return sum(x * x); });
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 50; ++i) {
        const auto n = static_cast<float>(t + 1);
        wrong[t] +=
            f(full({i % 3 + 1}, Array(n))).item<float>() != n * n * static_cast<float>(i % 3 + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace heddle::test
