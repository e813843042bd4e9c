// Element-wise functions: values against double arithmetic, types against MLX's rules.
#include <cmath>

#include "array_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

struct UnaryCase {
  const char* name;
  Array (*function)(const Arg&);
  double (*reference)(double);
  std::vector<double> inputs;
  bool keeps_integers = false;
};

double erf_gelu(double x) {
  return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
}
double tanh_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

const std::vector<double> kAny = {-2.5, -1, -0.5, 0, 0.25, 1, 3.5};
const std::vector<double> kPositive = {0.01, 0.5, 1, 2, 100};
const std::vector<double> kUnit = {-1, -0.5, 0, 0.3, 1};

const UnaryCase kCases[] = {
    {"abs", abs, [](double x) { return std::abs(x); }, kAny, true},
    {"negative", negative, [](double x) { return -x; }, kAny, true},
    {"sign", sign, [](double x) { return double((x > 0) - (x < 0)); }, kAny, true},
    {"square", square, [](double x) { return x * x; }, kAny, true},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, kPositive},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, kPositive},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }, kPositive},
    {"exp", exp, [](double x) { return std::exp(x); }, kAny},
    {"expm1", expm1, [](double x) { return std::expm1(x); }, kAny},
    {"log", log, [](double x) { return std::log(x); }, kPositive},
    {"log2", log2, [](double x) { return std::log2(x); }, kPositive},
    {"log10", log10, [](double x) { return std::log10(x); }, kPositive},
    {"log1p", log1p, [](double x) { return std::log1p(x); }, kPositive},
    {"sin", sin, [](double x) { return std::sin(x); }, kAny},
    {"cos", cos, [](double x) { return std::cos(x); }, kAny},
    {"tan", tan, [](double x) { return std::tan(x); }, kAny},
    {"sinh", sinh, [](double x) { return std::sinh(x); }, kAny},
    {"cosh", cosh, [](double x) { return std::cosh(x); }, kAny},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, kAny},
    {"arcsin", arcsin, [](double x) { return std::asin(x); }, kUnit},
    {"arccos", arccos, [](double x) { return std::acos(x); }, kUnit},
    {"arctan", arctan, [](double x) { return std::atan(x); }, kAny},
    {"sigmoid", sigmoid, logistic, kAny},
    {"silu", silu, [](double x) { return x * logistic(x); }, kAny},
    {"gelu", gelu, erf_gelu, kAny},
    {"gelu_tanh", gelu_tanh, tanh_gelu, kAny},
    {"relu", relu, [](double x) { return std::max(x, 0.0); }, kAny, true},
    {"erf", erf, [](double x) { return std::erf(x); }, kAny},
    {"floor", floor, [](double x) { return std::floor(x); }, kAny, true},
    {"ceil", ceil, [](double x) { return std::ceil(x); }, kAny, true},
    {"round", round, [](double x) { return std::nearbyint(x); }, kAny, true},
};

TEST(Unary, ValuesOfEveryFunctionInEveryFloatType) {
  for (const UnaryCase& c : kCases) {
    SCOPED_TRACE(c.name);
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(to_string(dtype));
      const auto count = static_cast<std::int64_t>(c.inputs.size());
      const Array x = astype(Array(c.inputs, {count}), dtype);
      std::vector<double> expected;
      for (const double v : doubles(x)) expected.push_back(c.reference(v));
      const Array y = c.function(x);
      EXPECT_EQ(y.spec(), x.spec());
      const double tolerance = dtype == DType::f16 ? 1e-3 : dtype == DType::bf16 ? 8e-3 : 2e-6;
      expect_near(y, expected, tolerance);
    }
  }
}

TEST(Unary, IntegersStayOrBecomeF32) {
  for (const UnaryCase& c : kCases) {
    SCOPED_TRACE(c.name);
    const Array x({1, 1, 1});
    const Array y = c.function(x);
    EXPECT_EQ(y.dtype(), c.keeps_integers ? DType::i32 : DType::f32);
    expect_near(y, std::vector<double>(3, c.reference(1.0)), 2e-6);
  }
  EXPECT_THAT(values<int>(relu(Array({-3, 4}))), ElementsAre(0, 4));
  EXPECT_THAT(values<int>(abs(Array({-3, 4}))), ElementsAre(3, 4));
  EXPECT_EQ(abs(Array({true})).dtype(), DType::bool_);
  EXPECT_EQ(exp(Array({true})).dtype(), DType::f32);
}

TEST(Unary, Classification) {
  const Array x({1.0f, std::nanf(""), INFINITY, -INFINITY});
  EXPECT_THAT(values<bool>(isnan(x)), ElementsAre(false, true, false, false));
  EXPECT_THAT(values<bool>(isinf(x)), ElementsAre(false, false, true, true));
  EXPECT_THAT(values<bool>(isfinite(x)), ElementsAre(true, false, false, false));
  EXPECT_THAT(values<bool>(isnan(Array({1, 2}))), ElementsAre(false, false));
  EXPECT_THAT(values<bool>(isfinite(Array({1, 2}))), ElementsAre(true, true));
  EXPECT_THAT(values<bool>(logical_not(Array({0, 2}))), ElementsAre(true, false));
  EXPECT_THAT(values<bool>(logical_not(Array({0.0f, 0.5f}))), ElementsAre(true, false));
}

TEST(Unary, RefusesWhatHasNoMeaning) {
  expect_invalid([] { negative(Array({true})); }, {"negative", "bool"});
  const Array blocks =
      Array::from_bytes({DType::q8_0, {32}}, std::vector<std::byte>(row_bytes(DType::q8_0, 32)));
  for (const UnaryCase& c : kCases) {
    SCOPED_TRACE(c.name);
    expect_invalid([&] { c.function(blocks); }, {c.name, "q8_0"});
  }
}

struct BinaryCase {
  const char* name;
  Array (*function)(const Arg&, const Arg&);
  double (*reference)(double, double);
};

double python_remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

const BinaryCase kBinary[] = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"subtract", subtract, [](double a, double b) { return a - b; }},
    {"multiply", multiply, [](double a, double b) { return a * b; }},
    {"divide", divide, [](double a, double b) { return a / b; }},
    {"floor_divide", floor_divide, [](double a, double b) { return std::floor(a / b); }},
    {"remainder", remainder, python_remainder},
    {"maximum", maximum, [](double a, double b) { return std::max(a, b); }},
    {"minimum", minimum, [](double a, double b) { return std::min(a, b); }},
    {"logaddexp", logaddexp,
     [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }},
    {"arctan2", arctan2, [](double a, double b) { return std::atan2(a, b); }},
};

TEST(Binary, ValuesBroadcast) {
  const std::vector<double> rows = {-3.5, 0.5, 2, 7}, columns = {-2, 0.75, 3};
  for (const BinaryCase& c : kBinary) {
    SCOPED_TRACE(c.name);
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      const Array a = astype(Array(rows, {4, 1}), dtype), b = astype(Array(columns, {3}), dtype);
      std::vector<double> expected;
      for (const double x : rows) {
        for (const double y : columns) expected.push_back(c.reference(x, y));
      }
      const Array result = c.function(a, b);
      EXPECT_EQ(result.spec(), (TensorSpec{dtype, {4, 3}}));
      const double tolerance = dtype == DType::f16 ? 2e-3 : dtype == DType::bf16 ? 1.6e-2 : 2e-6;
      expect_near(result, expected, tolerance);
    }
  }
  expect_near(power(Array({2.0f, 9.0f, 4.0f}), Array({3.0f, 0.5f, -1.0f})), {8, 3, 0.25});
  EXPECT_THAT(values<int>(power(Array({2, 3}), Array({5, 0}))), ElementsAre(32, 1));
}

TEST(Binary, Integers) {
  const Array a({7, -7, 7, -7}), b({2, 2, -2, -2});
  EXPECT_THAT(values<int>(remainder(a, b)), ElementsAre(1, 1, -1, -1));
  EXPECT_THAT(values<int>(a % b), ElementsAre(1, 1, -1, -1));
  EXPECT_EQ(divide(a, b).dtype(), DType::f32);
  expect_near(a / b, {3.5, -3.5, -3.5, 3.5});
  EXPECT_THAT(values<int>(bitwise_and(Array({12}), Array({10}))), ElementsAre(8));
  EXPECT_THAT(values<int>(bitwise_or(Array({12}), Array({10}))), ElementsAre(14));
  EXPECT_THAT(values<int>(bitwise_xor(Array({12}), Array({10}))), ElementsAre(6));
  EXPECT_THAT(values<int>(left_shift(Array({3}), Array({4}))), ElementsAre(48));
  EXPECT_THAT(values<int>(right_shift(Array({48}), Array({4}))), ElementsAre(3));
  EXPECT_THAT(values<bool>(logical_and(Array({0, 2}), Array({true, true}))),
              ElementsAre(false, true));
  EXPECT_THAT(values<bool>(logical_or(Array({0.0f, 2.0f}), Array(0))), ElementsAre(false, true));
}

TEST(Binary, OperatorsAreTheFunctions) {
  const Array a({1.0f, 4.0f}), b({3.0f, 2.0f});
  expect_near(a + b, {4, 6});
  expect_near(a - b, {-2, 2});
  expect_near(a * b, {3, 8});
  expect_near(a / b, {1.0 / 3, 2});
  expect_near(-a, {-1, -4});
  expect_near(2.0f * a + 1, {3, 9});
  EXPECT_THAT(values<bool>(a < b), ElementsAre(true, false));
  EXPECT_THAT(values<bool>(a <= 1.0f), ElementsAre(true, false));
  EXPECT_THAT(values<bool>(a > b), ElementsAre(false, true));
  EXPECT_THAT(values<bool>(a >= 4.0f), ElementsAre(false, true));
  EXPECT_THAT(values<bool>(a == 4.0f), ElementsAre(false, true));
  EXPECT_THAT(values<bool>(a != 4.0f), ElementsAre(true, false));
}

TEST(Binary, NanComparesWithNothing) {
  const Array nan(std::nanf(""));
  EXPECT_FALSE((nan == nan).item<bool>());
  EXPECT_TRUE((nan != nan).item<bool>());
  EXPECT_FALSE((nan < 1.0f).item<bool>());
}

TEST(Promotion, FollowsMlx) {
  using enum DType;
  const struct {
    DType a, b, together;
  } cases[] = {
      {f16, f32, f32}, {f16, bf16, f32},  {bf16, f32, f32}, {i32, f16, f16}, {i64, bf16, bf16},
      {bool_, u8, u8}, {bool_, f16, f16}, {u8, i8, i16},    {u16, i8, i32},  {u16, i32, i32},
      {u32, i32, i64}, {u32, i64, i64},   {u64, i8, f32},   {u64, u8, u64},  {i8, i64, i64},
      {f32, f64, f64}, {i64, f32, f32},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(to_string(c.a)) + " with " + std::string(to_string(c.b)));
    const Array a = ones({2}, c.a), b = ones({2}, c.b);
    EXPECT_EQ(add(a, b).dtype(), c.together);
    EXPECT_EQ(multiply(b, a).dtype(), c.together);
    EXPECT_EQ(where(true, a, b).dtype(), c.together);
    EXPECT_EQ(less(a, b).dtype(), bool_);
    EXPECT_EQ(concatenate({a, b}).dtype(), c.together);
    expect_near(add(a, b), {2, 2});
  }
  EXPECT_EQ((ones({1}, f16) * 2.0f).dtype(), f32);  // scalars are typed, as in MLX's C++
  EXPECT_EQ((ones({1}, f16) * 2).dtype(), f16);
}

TEST(Binary, RefusesWhatDoesNotFit) {
  const Array a = zeros({2, 3}), b = zeros({4});
  for (const BinaryCase& c : kBinary) {
    expect_invalid([&] { c.function(a, b); }, {c.name, "f32[2, 3]", "f32[4]"});
  }
  expect_invalid([&] { less(a, b); }, {"less", "f32[4]"});
  expect_invalid([] { bitwise_and(Array(1.0f), Array(1)); }, {"bitwise_and", "f32"});
  expect_invalid([] { left_shift(Array(1.0f), Array(1)); }, {"left_shift", "f32"});
  expect_invalid([] { subtract(Array(true), Array(true)); }, {"subtract", "bool"});
}

TEST(Select, WhereAndClip) {
  const Array x({1, 2, 3, 4});
  EXPECT_THAT(values<int>(where(x > 2, x, -x)), ElementsAre(-1, -2, 3, 4));
  EXPECT_THAT(values<float>(where(Array({1.0f, 0.0f}), Array(2), Array(3.5f))),
              ElementsAre(2, 3.5));
  const Array column = reshape(Array({true, false}), {2, 1});
  EXPECT_THAT(values<int>(where(column, Array({1, 2}), Array(0))), ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(values<int>(clip(x, Array(2), Array(3))), ElementsAre(2, 2, 3, 3));
  EXPECT_THAT(values<int>(clip(x, std::nullopt, Array(3))), ElementsAre(1, 2, 3, 3));
  EXPECT_THAT(values<int>(clip(x, Array(2), std::nullopt)), ElementsAre(2, 2, 3, 4));
  expect_invalid([&] { clip(x, std::nullopt, std::nullopt); }, {"clip"});
  expect_invalid([&] { where(x, zeros({3}), x); }, {"where", "f32[3]"});
}

}  // namespace
}  // namespace heddle::test
