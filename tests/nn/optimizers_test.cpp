// Optimisers against references in float64, written from the papers, and against PyTorch's;
// schedules and clipping.
#include "heddle/optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "array/numpy_oracle.h"
#include "heddle/compile.h"
#include "heddle/ops.h"
#include "heddle/random.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

constexpr int kSteps = 20;
constexpr float kRate = 0.03f;

struct Weights {
  Array matrix, vector;
  auto leaves() const { return nn::named("matrix", matrix, "vector", vector); }
};

/// A parameter of rows by columns in plain numbers; a vector has one row, and is not factored.
struct Plain {
  std::size_t rows, columns;
  bool is_matrix;
  std::vector<double> values;
};
/// Gradients at step t (from 1) of a loss with its least value elsewhere, wherever w is.
std::vector<double> gradient_at(const std::vector<double>& w, int t) {
  std::vector<double> g;
  for (std::size_t i = 0; i < w.size(); ++i) {
    g.push_back(0.5 * w[i] + std::sin(1.3 * static_cast<double>(i) + 0.7 * t));
  }
  return g;
}
/// What a step (from 1) makes of w, given g; with memory of its own.
using PlainRule =
    std::function<std::vector<double>(std::vector<double> w, const std::vector<double>& g, int t)>;
using MakeRule = std::function<PlainRule(const Plain&)>;
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>()>;

Plain random_plain(std::size_t rows, std::size_t columns, bool is_matrix) {
  std::mt19937 random(static_cast<unsigned>(rows));
  std::normal_distribution<double> normal;
  Plain plain{rows, columns, is_matrix, std::vector<double>(rows * columns)};
  for (double& value : plain.values) value = static_cast<float>(normal(random));
  return plain;
}

std::vector<double> trajectory_end(const Plain& plain, const PlainRule& rule) {
  std::vector<double> w = plain.values;
  for (int t = 1; t <= kSteps; ++t) w = rule(w, gradient_at(w, t), t);
  return w;
}

Array gradient_of(const Array& w, const Array& t) {
  const Array index = reshape(arange(0.0, static_cast<double>(w.size()), DType::f64), w.shape());
  return astype(0.5f * w + sin(index * 1.3f + t * 0.7f), w.dtype());
}

Weights weights_end(optim::Optimizer& optimizer, Weights weights, bool compiled) {
  optimizer.init(weights);
  ArraysFunction step = [&](const std::vector<Array>& in) {
    const Weights gradients{gradient_of(weights.matrix, in[0]), gradient_of(weights.vector, in[0])};
    optimizer.update(weights, gradients);
    return std::vector<Array>{};
  };
  if (compiled) step = compile(step, false, nn::state_of(weights, optimizer));
  for (int t = 1; t <= kSteps; ++t) {
    step({astype(Array(t), DType::f64)});
    eval(weights, optimizer);
  }
  return weights;
}

void expect_near(const Array& actual, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = astype(actual, DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
  }
}

Array array_of(const Plain& plain, DType dtype) {
  Shape shape{static_cast<std::int64_t>(plain.columns)};
  if (plain.is_matrix) shape.insert(0, static_cast<std::int64_t>(plain.rows));
  const std::span<const double> values(plain.values);
  return astype(Array(values, shape), dtype);
}

void expect_follows(const MakeOptimizer& make, const MakeRule& rule) {
  const Plain matrix = random_plain(4, 3, true), vector = random_plain(1, 5, false);
  const std::vector<double> matrix_end = trajectory_end(matrix, rule(matrix));
  const std::vector<double> vector_end = trajectory_end(vector, rule(vector));
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::f64, 2e-6), {DType::f32, 2e-5}, {DType::bf16, 0.1}}) {
    for (const bool compiled : {false, true}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + (compiled ? " compiled" : ""));
      const std::unique_ptr<optim::Optimizer> optimizer = make();
      const Weights begin{array_of(matrix, dtype), array_of(vector, dtype)};
      const Weights end = weights_end(*optimizer, begin, compiled);
      EXPECT_EQ(end.matrix.dtype(), dtype);
      EXPECT_EQ(optimizer->step.item<int>(), kSteps);
      expect_near(end.matrix, matrix_end, tolerance);
      expect_near(end.vector, vector_end, tolerance);
    }
  }
}

template <class Optimizer, class Options>
MakeOptimizer maker(const Options& options) {
  return [options] { return std::make_unique<Optimizer>(kRate, options); };
}

// ---- The references

MakeRule plain_sgd(const optim::SGDOptions& o) {
  return [o](const Plain& plain) -> PlainRule {
    return [o, v = std::vector<double>(plain.values.size())](
               std::vector<double> w, const std::vector<double>& gradients, int) mutable {
      for (std::size_t i = 0; i < w.size(); ++i) {
        const double g = gradients[i] + o.weight_decay * w[i];
        v[i] = o.momentum * v[i] + (1 - o.dampening) * g;
        const double step = o.momentum == 0 ? g : o.nesterov ? g + o.momentum * v[i] : v[i];
        w[i] -= kRate * step;
      }
      return w;
    };
  };
}

MakeRule plain_adamw(const optim::AdamWOptions& o) {
  return [o](const Plain& plain) -> PlainRule {
    const std::vector<double> zeros(plain.values.size());
    return [o, m = zeros, v = zeros](std::vector<double> w, const std::vector<double>& g,
                                     int t) mutable {
      const auto [b1, b2] = o.betas;
      for (std::size_t i = 0; i < w.size(); ++i) {
        m[i] = b1 * m[i] + (1 - b1) * g[i];
        v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
        const double m_hat = o.bias_correction ? m[i] / (1 - std::pow(b1, t)) : m[i];
        const double v_hat = o.bias_correction ? v[i] / (1 - std::pow(b2, t)) : v[i];
        w[i] = w[i] * (1 - kRate * o.weight_decay) - kRate * m_hat / (std::sqrt(v_hat) + o.eps);
      }
      return w;
    };
  };
}

MakeRule plain_lion(const optim::LionOptions& o) {
  return [o](const Plain& plain) -> PlainRule {
    return [o, m = std::vector<double>(plain.values.size())](
               std::vector<double> w, const std::vector<double>& g, int) mutable {
      const auto [b1, b2] = o.betas;
      for (std::size_t i = 0; i < w.size(); ++i) {
        const double direction = b1 * m[i] + (1 - b1) * g[i];
        m[i] = b2 * m[i] + (1 - b2) * g[i];
        const double sign = direction > 0 ? 1 : direction < 0 ? -1 : 0;
        w[i] = w[i] - kRate * (sign + o.weight_decay * w[i]);
      }
      return w;
    };
  };
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

/// Algorithms 4 and 5 of the paper, with the relative steps of its section 8.
struct PlainAdafactor {
  optim::AdafactorOptions o;
  Plain plain;
  std::vector<double> rows = std::vector<double>(plain.rows);
  std::vector<double> columns = std::vector<double>(plain.columns);
  std::vector<double> average = std::vector<double>(plain.values.size());

  double second_moment(std::size_t i, std::size_t j) const {
    if (!plain.is_matrix) return columns[j];
    double total = 0;
    for (const double row : rows) total += row;
    return rows[i] * columns[j] / (total / static_cast<double>(rows.size()));
  }

  std::vector<double> operator()(std::vector<double> w, const std::vector<double>& g, int t) {
    const double kept = 1 - std::pow(t, o.decay_rate);
    for (double& row : rows) row *= kept;
    for (double& column : columns) column *= kept;
    const auto square = [&](std::size_t k) { return g[k] * g[k] + o.eps.first; };
    for (std::size_t k = 0; k < w.size(); ++k) {
      rows[k / plain.columns] += (1 - kept) * square(k) / static_cast<double>(plain.columns);
      columns[k % plain.columns] += (1 - kept) * square(k) / static_cast<double>(plain.rows);
    }
    std::vector<double> u(w.size());
    for (std::size_t k = 0; k < w.size(); ++k) {
      u[k] = g[k] / std::sqrt(second_moment(k / plain.columns, k % plain.columns));
    }
    const double clip = std::max(1.0, root_mean_square(u) / o.clip_threshold);
    double rate = kRate;
    if (o.relative_step) rate = std::min(o.warmup_init ? 1e-6 * t : 1e-2, 1 / std::sqrt(t));
    if (o.scale_parameter) rate *= std::max(o.eps.second, root_mean_square(w));
    for (std::size_t k = 0; k < w.size(); ++k) {
      double step = rate * u[k] / clip;
      if (o.beta_1) step = average[k] = *o.beta_1 * average[k] + (1 - *o.beta_1) * step;
      w[k] = w[k] * (1 - o.weight_decay * rate) - step;
    }
    return w;
  }
};
MakeRule plain_adafactor(const optim::AdafactorOptions& o) {
  return [o](const Plain& plain) -> PlainRule { return PlainAdafactor{o, plain}; };
}

TEST(Optimizers, SGDFollowsItsFormula) {
  for (const optim::SGDOptions& options :
       {optim::SGDOptions{},
        {.weight_decay = 0.1},
        {.momentum = 0.9},
        {.momentum = 0.9, .weight_decay = 0.1, .dampening = 0.3},
        {.momentum = 0.8, .weight_decay = 0.05, .nesterov = true}}) {
    expect_follows(maker<optim::SGD>(options), plain_sgd(options));
  }
}

TEST(Optimizers, AdamAndAdamWFollowTheirFormulas) {
  for (const bool corrects : {false, true}) {
    expect_follows(maker<optim::Adam>(optim::AdamOptions{.bias_correction = corrects}),
                   plain_adamw({.weight_decay = 0, .bias_correction = corrects}));
    const optim::AdamWOptions options{{0.8, 0.95}, 1e-3, 0.1, corrects};
    expect_follows(maker<optim::AdamW>(options), plain_adamw(options));
  }
}

TEST(Optimizers, LionFollowsItsFormula) {
  for (const optim::LionOptions& options : {optim::LionOptions{}, {{0.8, 0.95}, 0.3}}) {
    expect_follows(maker<optim::Lion>(options), plain_lion(options));
  }
}

TEST(Optimizers, AdafactorFollowsItsPaper) {
  for (const optim::AdafactorOptions& options :
       {optim::AdafactorOptions{},
        {.clip_threshold = 0.3, .beta_1 = 0.9, .weight_decay = 0.1},
        {.decay_rate = -0.5, .scale_parameter = false, .warmup_init = true},
        {.relative_step = false}}) {
    const MakeOptimizer make = [options]() -> std::unique_ptr<optim::Optimizer> {
      if (options.relative_step) return std::make_unique<optim::Adafactor>(options);
      return std::make_unique<optim::Adafactor>(kRate, options);
    };
    expect_follows(make, plain_adafactor(options));
  }
}

TEST(Optimizers, AdafactorKeepsARowAndAColumnOfEachMatrix) {
  struct Stack {
    Array weight = ones({5, 4, 3});
    auto leaves() const { return nn::named("weight", weight); }
  } stack;
  optim::Adafactor optimizer;
  optimizer.init(stack);
  EXPECT_EQ(optimizer.state["weight"].at("exp_avg_sq_row").shape(), (Shape{5, 4}));
  EXPECT_EQ(optimizer.state["weight"].at("exp_avg_sq_col").shape(), (Shape{5, 3}));
  optimizer.update(stack, Stack{random::normal({5, 4, 3}, random::key(1))});
  EXPECT_TRUE(all(isfinite(stack.weight)).item<bool>());
}

// ---- PyTorch's

/// Where a parameter is after steps with each of `gradients`.
Array end_of(optim::Optimizer&& optimizer, const Array& begin, const Array& gradients) {
  struct One {
    Array w;
    auto leaves() const { return nn::named("w", w); }
  } one{begin};
  for (int t = 0; t < gradients.shape(0); ++t) optimizer.update(one, One{take(gradients, t, 0)});
  return one.w;
}

TEST(Optimizers, AgreeWithPyTorch) {
  const std::string operands = "f32[4, 3], f32[20, 4, 3]";
  const auto torch = [](const std::string& optimizer) {
    return "[w := torch.nn.Parameter(T(a)), o := torch.optim." + optimizer +
           ", [(setattr(w, 'grad', T(g)), o.step()) for g in b], w.detach()][-1]";
  };
  // clang-format off
  expect_torch_agrees({
      NUMPY(operands, torch("SGD([w], lr=0.03)"), end_of(optim::SGD(0.03), a, b)).loose(10),
      NUMPY(operands, torch("SGD([w], lr=0.03, momentum=0.9, weight_decay=0.1)"),
            end_of(optim::SGD(0.03, {.momentum = 0.9, .weight_decay = 0.1}), a, b)).loose(10),
      NUMPY(operands, torch("SGD([w], lr=0.03, momentum=0.9, nesterov=True)"),
            end_of(optim::SGD(0.03, {.momentum = 0.9, .nesterov = true}), a, b)).loose(10),
      NUMPY(operands, torch("Adam([w], lr=0.03)"), end_of(optim::Adam(0.03, {.bias_correction = true}), a, b)).loose(10),
      NUMPY(operands, torch("AdamW([w], lr=0.03, betas=(0.8, 0.95), weight_decay=0.2)"),
            end_of(optim::AdamW(0.03, {.betas = {0.8, 0.95}, .weight_decay = 0.2, .bias_correction = true}), a, b)).loose(10),
  });
  // clang-format on
}

// ---- What all have in common

TEST(Optimizers, KeepStateOfHalfTypesInF32) {
  Weights weights{ones({2, 3}), ones({4})};
  nn::set_dtype(weights, DType::bf16);
  optim::Adam optimizer(1e-3);
  optimizer.update(weights, weights);
  EXPECT_EQ(weights.matrix.dtype(), DType::bf16);
  EXPECT_EQ(optimizer.state["matrix"].at("v").dtype(), DType::f32);
}

TEST(Optimizers, LeaveAloneWhatIsFrozenOrWhole) {
  struct Model {
    Array weight = ones({2}), table = ones({2}), counts = Array({1, 2});
    auto leaves() const {
      return nn::named("weight", weight, "table", nn::frozen(table), "counts", counts);
    }
  } model;
  optim::SGD optimizer(0.5, {.momentum = 0.9});
  optimizer.update(model, Model());
  EXPECT_THAT(model.weight.to_vector<float>(), ElementsAre(0.5f, 0.5f));
  EXPECT_THAT(model.table.to_vector<float>(), ElementsAre(1, 1));
  EXPECT_THAT(model.counts.to_vector<int>(), ElementsAre(1, 2));
  std::vector<std::string> names;
  for (const auto& [name, array] : nn::parameters(optimizer)) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("step", "learning_rate", "weight.v"));
}

TEST(Optimizers, TakeAnotherRateBetweenCompiledSteps) {
  Weights weights{zeros({2, 3}), zeros({1})};
  optim::SGD optimizer(1.0);
  optimizer.init(weights);
  int traces = 0;
  const ArraysFunction step = compile(
      [&](const std::vector<Array>&) {
        ++traces;
        optimizer.update(weights, Weights{ones({2, 3}), ones({1})});
        return std::vector<Array>{};
      },
      false, nn::state_of(weights, optimizer));
  step({});
  optimizer.learning_rate = 10.0f;
  step({});
  EXPECT_EQ(weights.vector.item<float>(), -11.0f);
  EXPECT_EQ(traces, 1);
}

// ---- Schedules

std::vector<float> rates(const optim::Schedule& schedule, std::initializer_list<int> steps) {
  std::vector<float> values;
  for (const int step : steps) values.push_back(schedule(Array(step)).item<float>());
  return values;
}

void expect_rates(const optim::Schedule& schedule, std::initializer_list<int> steps,
                  const std::function<double(int)>& expected) {
  const std::vector<float> values = rates(schedule, steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const int step = *(steps.begin() + i);
    EXPECT_NEAR(values[i], expected(step), 2e-6) << "step " << step;
    const Array compiled = compile([&](const Array& at) { return schedule(at); })(Array(step));
    EXPECT_NEAR(compiled.item<float>(), values[i], 1e-7) << "step " << step;
    EXPECT_EQ(compiled.dtype(), DType::f32);
  }
}

TEST(Schedules, HaveTheValuesOfTheirFormulas) {
  expect_rates(optim::constant(0.3), {0, 1, 1000000}, [](int) { return 0.3; });
  expect_rates(optim::linear_schedule(0.1, 0.5, 10), {0, 1, 9, 10, 11, 1000},
               [](int t) { return 0.1 + 0.4 * std::min(t, 10) / 10; });
  expect_rates(optim::exponential_decay(0.5, 0.9), {0, 1, 5, 50},
               [](int t) { return 0.5 * std::pow(0.9, t); });
  expect_rates(optim::step_decay(0.5, 0.9, 10), {0, 9, 10, 21, 100},
               [](int t) { return 0.5 * std::pow(0.9, t / 10); });
  expect_rates(optim::cosine_decay(0.1, 1000), {0, 5, 500, 1000, 2000}, [](int t) {
    return 0.05 * (1 + std::cos(std::acos(-1.0) * std::min(t, 1000) / 1000));
  });
  EXPECT_THAT(rates(optim::cosine_decay(0.1, 10, 0.02), {9, 10, 100}),
              testing::Each(testing::FloatEq(0.02f)));
}

TEST(Schedules, AreJoinedAtTheirBoundaries) {
  const optim::Schedule joined = optim::join_schedules(
      {optim::linear_schedule(0, 1, 10), optim::constant(7), optim::linear_schedule(1, 0, 4)},
      {10, 12});
  EXPECT_THAT(rates(joined, {0, 5, 9, 10, 11, 12, 14, 16, 99}),
              testing::Pointwise(testing::FloatNear(1e-6f),
                                 {0.0f, 0.5f, 0.9f, 7.0f, 7.0f, 1.0f, 0.5f, 0.0f, 0.0f}));
  EXPECT_EQ(rates(optim::join_schedules({optim::constant(3)}, {}), {5}).front(), 3);
}

TEST(Schedules, CountTheStepsBeforeEachUpdate) {
  Weights weights{zeros({2, 3}), zeros({1})};
  optim::SGD optimizer(optim::linear_schedule(1, 3, 2));
  EXPECT_EQ(optimizer.learning_rate.item<float>(), 1);
  std::vector<float> seen;
  for (int t = 0; t < 4; ++t) {
    optimizer.update(weights, Weights{ones({2, 3}), ones({1})});
    seen.push_back(optimizer.learning_rate.item<float>());
  }
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 3));
  EXPECT_EQ(weights.vector.item<float>(), -9);
  optim::SGD own([](const Array& step) { return 0.5f * (step + 1); });
  EXPECT_EQ(own.learning_rate.item<float>(), 0.5f);
}

// ---- Clipping

TEST(Clipping, ScalesGradientsOfTooLargeANorm) {
  const Weights gradients{Array(std::vector<float>{3, 0, 0, 4}, {2, 2}), Array({12.0f})};
  const auto [clipped, norm] = optim::clip_grad_norm(gradients, 1.0);
  EXPECT_FLOAT_EQ(norm.item<float>(), 13);
  EXPECT_NEAR(clipped.matrix.to_vector<float>()[3], 4.0 / 13, 1e-6);
  EXPECT_NEAR(clipped.vector.item<float>(), 12.0 / 13, 1e-6);
  const auto [same, same_norm] = optim::clip_grad_norm(gradients, 13.5);
  EXPECT_EQ(same.vector.item<float>(), 12);
  EXPECT_FLOAT_EQ(same_norm.item<float>(), 13);
  EXPECT_EQ(gradients.vector.item<float>(), 12);
}

TEST(Clipping, SumsHalfTypesInF32AndKeepsThem) {
  Weights gradients{full({300, 300}, 200.0f), zeros({1})};
  nn::set_dtype(gradients, DType::f16);
  const auto [clipped, norm] = optim::clip_grad_norm(gradients, 6.0);
  EXPECT_FLOAT_EQ(norm.item<float>(), 60000);
  EXPECT_EQ(clipped.matrix.dtype(), DType::f16);
  EXPECT_NEAR(astype(take(clipped.matrix, 0), DType::f32).item<float>(), 0.02, 1e-4);
}

TEST(Clipping, BoundsEachElement) {
  const Weights clipped = optim::clip_grad_value(
      Weights{Array(std::vector<float>{3, -0.25f, 0, -4}, {2, 2}), Array({0.5f})}, 0.5);
  EXPECT_THAT(clipped.matrix.to_vector<float>(), ElementsAre(0.5f, -0.25f, 0, -0.5f));
  EXPECT_EQ(clipped.vector.item<float>(), 0.5f);
}

}  // namespace
}  // namespace heddle::test
