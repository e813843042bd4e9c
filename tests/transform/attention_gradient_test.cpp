// Gradients of attention over many blocks of queries, against those of the formula in float64.
#include <limits>

#include "array/array_test_support.h"
#include "base/team.h"
#include "heddle/compile.h"
#include "heddle/ops.h"
#include "host_math.h"

namespace heddle::test {
namespace {

struct AttentionCase {
  std::string name;
  Attention op;
  Shape q, k, v;  // [B, H, S, D], or with `sequence_first` [B, S, H, D]
};

Array heads_first(const Array& x, const Attention& op) {
  return op.sequence_first ? swapaxes(x, 1, 2) : x;
}

/// Which keys a query sees, [Sq, Sk].
Array seen(const Attention& op, std::int64_t queries, std::int64_t keys) {
  std::vector<double> sees;
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t place = keys - queries + i;
    for (std::int64_t k = 0; k < keys; ++k) {
      const bool past = op.mask != Attention::Mask::causal || k <= place;
      sees.push_back(past && (op.window == 0 || k > place - op.window));
    }
  }
  return Array(sees, {queries, keys}) != 0;
}

/// Each query head with keys and values of its own; a query that sees nothing has zeros.
Array by_formula(const Attention& op, const std::vector<Array>& in) {
  const Array q = heads_first(in[0], op);
  const int times = q.shape(1) / heads_first(in[1], op).shape(1);
  const Array k = repeat(heads_first(in[1], op), times, 1);
  const Array v = repeat(heads_first(in[2], op), times, 1);
  const Array visible = seen(op, q.shape(2), k.shape(2));
  const Array none = zeros({}, q.dtype());
  const Array scores = matmul(q, swapaxes(k, -1, -2)) * astype(Array(op.scale), q.dtype());
  const Array terms = where(visible, exp(where(visible, scores, none)), none);
  const Array total = sum(terms, -1, true);
  return heads_first(matmul(terms / where(total == 0, ones_like(total), total), v), op);
}

std::vector<Array> operands(std::mt19937& random, const AttentionCase& given, DType dtype) {
  return {random_array(random, given.q, -1, 1, dtype), random_array(random, given.k, -1, 1, dtype),
          random_array(random, given.v, -1, 1, dtype)};
}

ArraysFunction of_op(const Attention& op) {
  return [op](const std::vector<Array>& in) {
    return std::vector<Array>{attention(in[0], in[1], in[2], op)};
  };
}
ArraysFunction of_formula(const Attention& op) {
  return [op](const std::vector<Array>& in) { return std::vector<Array>{by_formula(op, in)}; };
}
ArraysFunction gradient_of(const ArraysFunction& f, const std::vector<Array>& g) {
  return [=](const std::vector<Array>& x) { return vjp(f, x, g).second; };
}

void expect_close(const std::vector<Array>& got, const std::vector<Array>& expected,
                  double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("array " + std::to_string(i));
    ASSERT_EQ(got[i].shape(), expected[i].shape());
    const std::vector<double> a = numbers({got[i]}), b = numbers({expected[i]});
    const double size = std::max(1e-3, length(b));
    for (std::size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], tolerance * size) << k;
  }
}

std::vector<AttentionCase> attention_cases() {
  using enum Attention::Mask;
  const Attention causal_op{.mask = causal, .scale = 0.4f};
  Attention window = causal_op, by_sequence = causal_op, narrow = causal_op;
  window.window = 40;
  narrow.window = 3;
  by_sequence.sequence_first = true;
  return {
      {"none", {.mask = none, .scale = 0.4f}, {2, 4, 37, 3}, {2, 2, 41, 3}, {2, 2, 41, 5}},
      {"one_block", causal_op, {1, 2, 32, 4}, {1, 1, 32, 4}, {1, 1, 32, 4}},
      {"a_query_more", causal_op, {1, 2, 33, 4}, {1, 1, 33, 4}, {1, 1, 33, 4}},
      {"some_blocks", causal_op, {2, 4, 70, 3}, {2, 2, 70, 3}, {2, 2, 70, 5}},
      {"long", causal_op, {1, 1, 300, 2}, {1, 1, 300, 2}, {1, 1, 300, 2}},
      {"keys_before", causal_op, {1, 2, 70, 3}, {1, 2, 90, 3}, {1, 2, 90, 3}},
      {"queries_that_see_nothing", causal_op, {1, 2, 70, 3}, {1, 2, 33, 3}, {1, 2, 33, 3}},
      {"window", window, {1, 2, 100, 3}, {1, 1, 100, 3}, {1, 1, 100, 3}},
      {"narrow_window", narrow, {1, 2, 100, 3}, {1, 1, 120, 3}, {1, 1, 120, 3}},
      {"by_sequence", by_sequence, {2, 70, 4, 3}, {2, 70, 2, 3}, {2, 70, 2, 5}},
  };
}

class AttentionGradient : public testing::TestWithParam<AttentionCase> {
 protected:
  std::mt19937 random_{20261130};
};

TEST_P(AttentionGradient, IsThatOfTheFormula) {
  const Attention& op = GetParam().op;
  const std::vector<Array> x = operands(random_, GetParam(), DType::f64);
  const std::vector<Array> g = random_like(random_, of_formula(op)(x));
  expect_close(gradient_of(of_op(op), g)(x), gradient_of(of_formula(op), g)(x), 1e-12);
}

TEST_P(AttentionGradient, SoAreItsOwnAndItsDerivativeForwards) {
  const Attention& op = GetParam().op;
  const std::vector<Array> x = operands(random_, GetParam(), DType::f64);
  const std::vector<Array> g = random_like(random_, of_formula(op)(x)), t = random_like(random_, x);
  const ArraysFunction mine = gradient_of(of_op(op), g), expected = gradient_of(of_formula(op), g);
  expect_close(gradient_of(mine, t)(x), gradient_of(expected, t)(x), 1e-11);
  expect_close(jvp(mine, x, t).second, jvp(expected, x, t).second, 1e-11);
  expect_close(jvp(of_op(op), x, t).second, jvp(of_formula(op), x, t).second, 1e-12);
}

TEST_P(AttentionGradient, OfEachOperandAlone) {
  const Attention& op = GetParam().op;
  const std::vector<Array> x = operands(random_, GetParam(), DType::f64);
  const std::vector<Array> g = random_like(random_, of_formula(op)(x));
  const std::vector<Array> all = gradient_of(of_op(op), g)(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const ArraysFunction alone = [&](const std::vector<Array>& one) {
      std::vector<Array> in = x;
      in[i] = one[0];
      return of_op(op)(in);
    };
    EXPECT_EQ(numbers(vjp(alone, {x[i]}, g).second), numbers({all[i]})) << "operand " << i;
  }
}

TEST_P(AttentionGradient, InFloatsAndHalves) {
  const Attention& op = GetParam().op;
  const std::vector<Array> exact = operands(random_, GetParam(), DType::f16);
  const auto as = [](const std::vector<Array>& from, DType dtype) {
    std::vector<Array> to;
    for (const Array& each : from) to.push_back(astype(each, dtype));
    return to;
  };
  const std::vector<Array> wide = as(exact, DType::f64);
  const std::vector<Array> g = as(random_like(random_, of_op(op)(exact)), DType::f64);
  const std::vector<Array> expected = gradient_of(of_formula(op), g)(wide);
  for (const auto& [dtype, tolerance] : {std::pair{DType::f32, 1e-5}, {DType::f16, 1e-2}}) {
    const std::vector<Array> got = gradient_of(of_op(op), as(g, dtype))(as(exact, dtype));
    for (const Array& each : got) EXPECT_EQ(each.dtype(), dtype);
    expect_close(got, expected, tolerance);
  }
}

TEST_P(AttentionGradient, TheSameBytesCompiledAndOnAnyNumberOfThreads) {
  const Attention& op = GetParam().op;
  const std::vector<Array> x = operands(random_, GetParam(), DType::f32);
  const std::vector<Array> g = random_like(random_, of_op(op)(x));
  const ArraysFunction f = gradient_of(of_op(op), g);
  const std::vector<double> expected = numbers(f(x));
  for (const int threads : {1, 2, 3}) {
    Team team(threads);
    const TeamScope scope(team);
    EXPECT_EQ(numbers(f(x)), expected) << threads << " threads";
    EXPECT_EQ(numbers(compile(f)(x)), expected) << threads << " threads, compiled";
  }
}

INSTANTIATE_TEST_SUITE_P(Of, AttentionGradient, testing::ValuesIn(attention_cases()),
                         [](const auto& of) { return of.param.name; });

TEST(AttentionOfNothing, HasGradientsOfZeros) {
  const Attention op{.mask = Attention::Mask::causal};
  const std::vector<std::pair<Shape, Shape>> shapes{{{1, 2, 0, 3}, {1, 2, 4, 3}},
                                                    {{1, 2, 40, 3}, {1, 2, 0, 3}},
                                                    {{0, 2, 40, 3}, {0, 2, 40, 3}},
                                                    {{1, 2, 0, 3}, {1, 2, 0, 3}}};
  for (const auto& [q, k] : shapes) {
    const std::vector<Array> x{ones(q), ones(k), ones(k)};
    const std::vector<Array> found = gradient_of(of_op(op), of_op(op)(x))(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(found[i].shape(), x[i].shape());
      for (const double each : numbers({found[i]})) EXPECT_EQ(each, 0);
    }
  }
}

}  // namespace
}  // namespace heddle::test
