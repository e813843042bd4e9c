// What each optimiser does with a parameter. Factors that are the same for all parameters are
// scalars, computed once a step.
#include <cmath>

#include "array/ops_common.h"
#include "heddle/optimizers.h"

namespace heddle::optim {

namespace {

/// `value` in a's dtype.
Array like(const Array& a, double value) {
  if (a.dtype() != DType::f64) return Array(static_cast<float>(value));
  return Array(std::span<const double>(&value, 1), {});
}

/// a' = decay a + (1 - decay) b
Array moving(const Array& a, const Array& b, double decay) {
  return like(a, decay) * a + like(a, 1 - decay) * b;
}

/// 1 - decay^step, which loses all its digits at the first steps if it is computed like that.
Array bias_left(double decay, const Array& step) {
  return -expm1(step * static_cast<float>(std::log(decay)));
}

void require_betas(const char* optimizer, const std::pair<double, double>& betas) {
  require(betas.first >= 0 && betas.first < 1 && betas.second >= 0 && betas.second < 1,
          ErrorCode::invalid_argument, "{}: the betas are {} and {}; they must be in [0, 1)",
          optimizer, betas.first, betas.second);
}

void require_at_least_zero(const char* optimizer, const char* what, double value) {
  require(std::isfinite(value) && value >= 0, ErrorCode::invalid_argument,
          "{}: {} is {}; it must be finite and not negative", optimizer, what, value);
}

Array root_mean_square(const Array& a) {
  return sqrt(mean(square(a)));
}

}  // namespace

// ---- SGD

SGD::SGD(const LearningRate& rate, const SGDOptions& options) : Optimizer(rate), options_(options) {
  require_at_least_zero("SGD", "momentum", options.momentum);
  require_at_least_zero("SGD", "weight_decay", options.weight_decay);
  require_at_least_zero("SGD", "dampening", options.dampening);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          ErrorCode::invalid_argument,
          "SGD: Nesterov's momentum needs a momentum (it is {}) and no dampening (it is {})",
          options.momentum, options.dampening);
}

Optimizer::State SGD::initial_state(const Shape& shape, DType dtype) const {
  if (options_.momentum == 0) return {};
  return {{"v", zeros(shape, dtype)}};
}

Optimizer::Rule SGD::rule() const {
  return [options = options_, rate = learning_rate](const Array& g, const Array& w, State& own) {
    Array gradient = g;
    if (options.weight_decay != 0) gradient = g + like(w, options.weight_decay) * w;
    if (options.momentum == 0) return w - rate * gradient;
    Array& v = own.at("v");
    v = like(w, options.momentum) * v + like(w, 1 - options.dampening) * gradient;
    if (!options.nesterov) return w - rate * v;
    return w - rate * (gradient + like(w, options.momentum) * v);
  };
}

// ---- Adam

Adam::Adam(const LearningRate& rate, const AdamOptions& options)
    : Optimizer(rate), options_(options) {
  require_betas("Adam", options.betas);
  require_at_least_zero("Adam", "eps", options.eps);
}

Optimizer::State Adam::initial_state(const Shape& shape, DType dtype) const {
  return {{"m", zeros(shape, dtype)}, {"v", zeros(shape, dtype)}};
}

Optimizer::Rule Adam::rule() const {
  Array rate = learning_rate;
  std::optional<Array> root;  // of what is left of v's bias
  if (options_.bias_correction) {
    rate = rate / bias_left(options_.betas.first, step);
    root = rsqrt(bias_left(options_.betas.second, step));
  }
  return [options = options_, rate, root](const Array& g, const Array& w, State& own) {
    Array &m = own.at("m"), &v = own.at("v");
    m = moving(m, g, options.betas.first);
    v = moving(v, square(g), options.betas.second);
    const Array size = root ? sqrt(v) * *root : sqrt(v);
    return w - rate * m / (size + like(w, options.eps));
  };
}

AdamW::AdamW(const LearningRate& rate, const AdamWOptions& options)
    : Adam(rate, {options.betas, options.eps, options.bias_correction}),
      weight_decay_(options.weight_decay) {
  require_at_least_zero("AdamW", "weight_decay", options.weight_decay);
}

Optimizer::Rule AdamW::rule() const {
  const Array kept = 1 - learning_rate * static_cast<float>(weight_decay_);
  return [adam = Adam::rule(), kept](const Array& g, const Array& w, State& own) {
    return adam(g, w * kept, own);
  };
}

// ---- Lion

Lion::Lion(const LearningRate& rate, const LionOptions& options)
    : Optimizer(rate), options_(options) {
  require_betas("Lion", options.betas);
  require_at_least_zero("Lion", "weight_decay", options.weight_decay);
}

Optimizer::State Lion::initial_state(const Shape& shape, DType dtype) const {
  return {{"m", zeros(shape, dtype)}};
}

Optimizer::Rule Lion::rule() const {
  const Array kept = 1 - learning_rate * static_cast<float>(options_.weight_decay);
  return
      [options = options_, rate = learning_rate, kept](const Array& g, const Array& w, State& own) {
        Array& m = own.at("m");
        const Array direction = sign(moving(m, g, options.betas.first));
        m = moving(m, g, options.betas.second);
        return (options.weight_decay == 0 ? w : w * kept) - rate * direction;
      };
}

// ---- Adafactor

namespace {

void require_good(const AdafactorOptions& options) {
  require_at_least_zero("Adafactor", "eps", options.eps.first);
  require_at_least_zero("Adafactor", "eps", options.eps.second);
  require_at_least_zero("Adafactor", "weight_decay", options.weight_decay);
  require(std::isfinite(options.clip_threshold) && options.clip_threshold > 0,
          ErrorCode::invalid_argument, "Adafactor: clip_threshold is {}; it must be positive",
          options.clip_threshold);
  require(std::isfinite(options.decay_rate) && options.decay_rate <= 0, ErrorCode::invalid_argument,
          "Adafactor: decay_rate is {}; it must not be positive", options.decay_rate);
  require(!options.beta_1 || (*options.beta_1 >= 0 && *options.beta_1 < 1),
          ErrorCode::invalid_argument, "Adafactor: beta_1 is {}; it must be in [0, 1)",
          options.beta_1.value_or(0));
}

}  // namespace

Adafactor::Adafactor(const AdafactorOptions& options) : Optimizer(0), options_(options) {
  require(options.relative_step, ErrorCode::invalid_argument,
          "Adafactor: steps that are not relative need a learning rate");
  require_good(options);
}

Adafactor::Adafactor(const LearningRate& rate, const AdafactorOptions& options)
    : Optimizer(rate), options_(options) {
  require(!options.relative_step, ErrorCode::invalid_argument,
          "Adafactor: with a learning rate, steps cannot be relative: see relative_step");
  require_good(options);
}

Optimizer::State Adafactor::initial_state(const Shape& shape, DType dtype) const {
  State begun;
  if (shape.size() >= 2) {
    Shape rows = shape, columns = shape;
    rows.erase(shape.size() - 1);
    columns.erase(shape.size() - 2);
    begun.emplace("exp_avg_sq_row", zeros(rows, dtype));
    begun.emplace("exp_avg_sq_col", zeros(columns, dtype));
  } else {
    begun.emplace("exp_avg_sq", zeros(shape, dtype));
  }
  if (options_.beta_1) begun.emplace("exp_avg", zeros(shape, dtype));
  return begun;
}

namespace {

/// g over the root of its mean square, after the means have moved.
Array scaled_gradient(const Array& g, Optimizer::State& own, const Array& kept, double eps) {
  const Array squares = square(g) + like(g, eps);
  const auto move = [&](const char* name, const Array& now) -> const Array& {
    Array& mean_square = own.at(name);
    mean_square = kept * mean_square + (1 - kept) * now;
    return mean_square;
  };
  if (g.ndim() < 2) return g * rsqrt(move("exp_avg_sq", squares));
  const Array& rows = move("exp_avg_sq_row", mean(squares, -1));
  const Array& columns = move("exp_avg_sq_col", mean(squares, -2));
  const Array row_factors = rsqrt(rows / mean(rows, -1, true));
  return g * expand_dims(row_factors, -1) * expand_dims(rsqrt(columns), -2);
}

}  // namespace

Optimizer::Rule Adafactor::rule() const {
  const Array count = astype(step, DType::f32);
  const Array kept = 1 - power(count, static_cast<float>(options_.decay_rate));
  Array rate = learning_rate;
  if (options_.relative_step) {
    rate = minimum(options_.warmup_init ? 1e-6f * count : Array(1e-2f), rsqrt(count));
  }
  return [options = options_, rate, kept](const Array& g, const Array& w, State& own) {
    const Array direction = scaled_gradient(g, own, kept, options.eps.first);
    const Array excess =
        maximum(like(w, 1), root_mean_square(direction) / like(w, options.clip_threshold));
    Array pace = rate;
    if (options.scale_parameter) {
      pace = pace * maximum(like(w, options.eps.second), root_mean_square(w));
    }
    Array update = direction * (pace / excess);
    if (options.beta_1) {
      Array& average = own.at("exp_avg");
      average = moving(average, update, *options.beta_1);
      update = average;
    }
    if (options.weight_decay == 0) return w - update;
    return w * (1 - like(w, options.weight_decay) * pace) - update;
  };
}

}  // namespace heddle::optim
