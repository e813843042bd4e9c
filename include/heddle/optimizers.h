// Optimisers, schedules and clipping. Names, defaults and formulas follow mlx.optimizers.
//
// An optimiser replaces the parameters of a tree (heddle/nn_tree.h) by what a step makes of them
// and their gradients. It keeps its state, a tree itself, by their names: "step", "learning_rate",
// "layers.0.weight.m". So it is evaluated, saved and loaded as a model is, and a compiled step has
// both as its state:
//
//     optim::AdamW optimizer(1e-3);
//     optimizer.init(model);
//     const auto step = compile(
//         [&](const std::vector<Array>& batch) {
//           const auto [loss, gradients] = value_and_grad(loss_of, model, batch[0], batch[1]);
//           optimizer.update(model, gradients);
//           return std::vector<Array>{loss};
//         },
//         false, nn::state_of(model, optimizer));
//
// State and arithmetic of f16 and bf16 parameters are f32 (in MLX, of the parameter's own type).
// Parameters that train are f16, bf16, f32 or f64; what is frozen or not floating is left alone.
//
// Constructors throw invalid_argument for numbers out of their range, `init` and `update` for trees
// that do not fit, naming the parameter.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "heddle/nn_tree.h"

namespace heddle::optim {

using Where = std::source_location;  // of the call that errors name

/// The value for a step (an integer scalar; the first is 0), as a scalar f32.
using Schedule = std::function<Array(const Array& step)>;

/// A number, or a schedule.
struct LearningRate {
  template <class T>
  requires std::is_arithmetic_v<T> LearningRate(T number)  // NOLINT: a number is a rate
      : value(static_cast<double>(number)) {}
  template <class F>
  requires std::is_invocable_r_v<Array, F, const Array&> LearningRate(F f)  // NOLINT: as above
      : schedule(std::move(f)), is_schedule(true) {}

  double value = 0;
  Schedule schedule;
  bool is_schedule = false;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Gives each parameter that trains its state, zeros, if it has none.
  template <class Tree>
  void init(const Tree& parameters) {
    init_state(nn::parameters_in(parameters));
  }
  /// A step. What has no state yet gets it.
  template <class Tree>
  void update(Tree& parameters, const Tree& gradients, Where where = Where::current()) {
    apply_gradients(nn::parameters_in(parameters), nn::parameters_in(gradients), where);
  }

  /// Given a schedule, each step sets `learning_rate` to its value for the steps before it; else
  /// it may be set at any time.
  Array step, learning_rate;
  using State = std::map<std::string, Array>;  // "m", "v", ...
  std::map<std::string, State> state;          // by the parameter's name
  auto leaves() const { return nn::named("step", step, "learning_rate", learning_rate, "", state); }

 protected:
  /// (gradient, parameter, state), both in the state's dtype -> the next parameter
  using Rule = std::function<Array(const Array&, const Array&, State&)>;

  explicit Optimizer(const LearningRate& rate);
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;

  /// The state of a parameter, before its first step.
  virtual State initial_state(const Shape& shape, DType dtype) const = 0;
  /// What this step, the number `step` (the first is 1), does with each parameter.
  virtual Rule rule() const = 0;

 private:
  Array scheduled_rate() const;
  void init_state(const std::vector<nn::Parameter>& parameters);
  void apply_gradients(const std::vector<nn::Parameter>& parameters,
                       const std::vector<nn::Parameter>& gradients, Where where);

  Schedule schedule_;
};

struct SGDOptions {
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
};
/// v' = momentum v + (1 - dampening) (g + weight_decay w);  w' = w - rate v'
class SGD : public Optimizer {
 public:
  explicit SGD(const LearningRate& rate, const SGDOptions& options = {});

 protected:
  State initial_state(const Shape& shape, DType dtype) const override;
  Rule rule() const override;

 private:
  SGDOptions options_;
};

struct AdamOptions {
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  bool bias_correction = false;
};
/// m' = b1 m + (1 - b1) g;  v' = b2 v + (1 - b2) g^2;  w' = w - rate m' / (sqrt(v') + eps), with m'
/// / (1 - b1^step) and v' / (1 - b2^step) in their places if `bias_correction`.
class Adam : public Optimizer {
 public:
  explicit Adam(const LearningRate& rate, const AdamOptions& options = {});

 protected:
  State initial_state(const Shape& shape, DType dtype) const override;
  Rule rule() const override;

 private:
  AdamOptions options_;
};

struct AdamWOptions {
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool bias_correction = false;
};
/// Adam, of w (1 - rate weight_decay).
class AdamW : public Adam {
 public:
  explicit AdamW(const LearningRate& rate, const AdamWOptions& options = {});

 protected:
  Rule rule() const override;

 private:
  double weight_decay_;
};

struct LionOptions {
  std::pair<double, double> betas{0.9, 0.99};
  double weight_decay = 0;
};
/// w' = w (1 - rate weight_decay) - rate sign(b1 m + (1 - b1) g);  m' = b2 m + (1 - b2) g
class Lion : public Optimizer {
 public:
  explicit Lion(const LearningRate& rate, const LionOptions& options = {});

 protected:
  State initial_state(const Shape& shape, DType dtype) const override;
  Rule rule() const override;

 private:
  LionOptions options_;
};

struct AdafactorOptions {
  std::pair<double, double> eps{1e-30, 1e-3};  // of squared gradients; the least scale of w
  double clip_threshold = 1;
  double decay_rate = -0.8;
  std::optional<double> beta_1;
  double weight_decay = 0;
  bool scale_parameter = true;  // steps relative to the root mean square of w
  bool relative_step = true;    // the rate is min(1 / sqrt(step), 1e-2), not the one given
  bool warmup_init = false;     // with 1e-6 step instead of 1e-2
};
/// Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost". Second
/// moments of matrices (the last two axes) are kept as means of their rows and columns.
class Adafactor : public Optimizer {
 public:
  /// Without a rate, steps are relative; a rate needs `relative_step = false`.
  explicit Adafactor(const AdafactorOptions& options = {});
  Adafactor(const LearningRate& rate, const AdafactorOptions& options);

 protected:
  State initial_state(const Shape& shape, DType dtype) const override;
  Rule rule() const override;

 private:
  AdafactorOptions options_;
};

// ---- Schedules
Schedule constant(double value);
/// From `init` to `end` in `steps` steps, and `end` from then on.
Schedule linear_schedule(double init, double end, int steps);
/// init decay_rate^step
Schedule exponential_decay(double init, double decay_rate);
/// init decay_rate^floor(step / step_size)
Schedule step_decay(double init, double decay_rate, int step_size);
/// Half a cosine from `init` to 0 in `decay_steps` steps, but never below `minimum`.
Schedule cosine_decay(double init, int decay_steps, double minimum = 0);
/// schedules[i] from the step boundaries[i - 1] on, from where its steps count.
Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int> boundaries);

// ---- Clipping, of the gradients that train

namespace detail {

Array clip_grad_norm(const std::vector<nn::Parameter>& gradients, double max_norm, Where where);
void clip_grad_value(const std::vector<nn::Parameter>& gradients, double clip_value, Where where);

}  // namespace detail

/// Gradients scaled so that the norm of all of them together is at most `max_norm`, and that norm
/// (f32) as it was.
template <class Tree>
std::pair<Tree, Array> clip_grad_norm(const Tree& gradients, double max_norm,
                                      Where where = Where::current()) {
  Tree clipped = gradients;
  Array norm = detail::clip_grad_norm(nn::parameters_in(clipped), max_norm, where);
  return {std::move(clipped), std::move(norm)};
}
/// Gradients with each element within [-clip_value, clip_value].
template <class Tree>
Tree clip_grad_value(const Tree& gradients, double clip_value, Where where = Where::current()) {
  Tree clipped = gradients;
  detail::clip_grad_value(nn::parameters_in(clipped), clip_value, where);
  return clipped;
}

}  // namespace heddle::optim
