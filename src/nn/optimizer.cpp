// What all optimisers do, and clipping.
#include <cmath>

#include "array/ops_common.h"
#include "heddle/optimizers.h"
#include "nn/distinct_names.h"

namespace heddle::optim {

namespace {

constexpr const char* kName = "optimizer";

void require_positive(const char* what, double value) {
  require(std::isfinite(value) && value > 0, ErrorCode::invalid_argument,
          "{} is {}; it must be positive", what, value);
}

void require_number(const char* what, const Array& number, bool is_one, const char* kind) {
  require(number.ndim() == 0 && is_one, ErrorCode::invalid_argument,
          "{}: {} is {}; it must be one {} number", kName, what, number.spec(), kind);
}

/// Running means of numbers with eight or eleven bits stand still.
DType state_dtype(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

std::vector<const nn::Parameter*> trained(const std::vector<nn::Parameter>& parameters) {
  std::vector<const nn::Parameter*> chosen;
  for (const nn::Parameter& parameter : parameters) {
    if (parameter.trains) chosen.push_back(&parameter);
  }
  return chosen;
}

}  // namespace

Optimizer::Optimizer(const LearningRate& rate)
    : step(0), learning_rate(static_cast<float>(rate.value)), schedule_(rate.schedule) {
  require(std::isfinite(rate.value) && rate.value >= 0, ErrorCode::invalid_argument,
          "optimizer: the learning rate is {}; it must be finite and not negative", rate.value);
  require(!rate.is_schedule || schedule_, ErrorCode::invalid_argument,
          "optimizer: the schedule of the learning rate is empty");
  if (schedule_) learning_rate = scheduled_rate();
}

Array Optimizer::scheduled_rate() const {
  const Array rate = schedule_(step);
  require_number("what the schedule gives", rate, is_floating(rate.dtype()), "floating");
  return astype(rate, DType::f32);
}

void Optimizer::init_state(const std::vector<nn::Parameter>& parameters) {
  nn::require_distinct_names(kName, parameters);
  for (const nn::Parameter* parameter : trained(parameters)) {
    const Array& array = *parameter->array;
    const DType dtype = state_dtype(array.dtype());
    State& known = state[parameter->name];
    State begun = initial_state(array.shape(), dtype);
    for (auto& [part, zero] : begun) {
      const auto [at, is_new] = known.try_emplace(part, zero);
      require(is_new || at->second.spec() == zero.spec(), ErrorCode::invalid_argument,
              "optimizer: the state {} of {} is {}; for {} it must be {}", part, parameter->name,
              at->second.spec(), array.spec(), zero.spec());
    }
  }
}

namespace {

void require_pairs(const std::vector<const nn::Parameter*>& parameters,
                   const std::vector<const nn::Parameter*>& gradients) {
  require(parameters.size() == gradients.size(), ErrorCode::invalid_argument,
          "{} parameters train, and there are {} gradients", parameters.size(), gradients.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const nn::Parameter &parameter = *parameters[i], &gradient = *gradients[i];
    require(parameter.name == gradient.name, ErrorCode::invalid_argument,
            "the gradient in the place of {} is called {}", parameter.name, gradient.name);
    require(parameter.array->shape() == gradient.array->shape(), ErrorCode::invalid_argument,
            "{} is {}, and its gradient {}", parameter.name, parameter.array->spec(),
            gradient.array->spec());
  }
}

}  // namespace

void Optimizer::apply_gradients(const std::vector<nn::Parameter>& parameters,
                                const std::vector<nn::Parameter>& gradients, Where where) {
  within(kName, where, [&] {
    const auto to = trained(parameters), from = trained(gradients);
    require_pairs(to, from);
    init_state(parameters);
    if (schedule_) learning_rate = scheduled_rate();
    require_number("learning_rate", learning_rate, is_floating(learning_rate.dtype()), "floating");
    require_number("step", step, is_integer(step.dtype()), "whole");
    step = step + 1;
    const Rule next = rule();
    for (std::size_t i = 0; i < to.size(); ++i) {
      Array& parameter = *to[i]->array;
      const DType dtype = state_dtype(parameter.dtype());
      const Array moved =
          next(astype(*from[i]->array, dtype), astype(parameter, dtype), state[to[i]->name]);
      parameter = astype(moved, parameter.dtype());
    }
  });
}

namespace detail {

Array clip_grad_norm(const std::vector<nn::Parameter>& gradients, double max_norm, Where where) {
  return within("clip_grad_norm", where, [&] {
    require_positive("max_norm", max_norm);
    Array squares = 0.0f;
    for (const nn::Parameter* gradient : trained(gradients)) {
      const Array g = flatten(astype(*gradient->array, state_dtype(gradient->array->dtype())));
      squares = squares + astype(matmul(g, g), DType::f32);
    }
    const Array norm = sqrt(squares), most = static_cast<float>(max_norm);
    const Array scale = heddle::where(norm < most, Array(1.0f), most / (norm + 1e-6f));
    for (const nn::Parameter* gradient : trained(gradients)) {
      *gradient->array = astype(*gradient->array * scale, gradient->array->dtype());
    }
    return norm;
  });
}

void clip_grad_value(const std::vector<nn::Parameter>& gradients, double clip_value, Where where) {
  within("clip_grad_value", where, [&] {
    require_positive("clip_value", clip_value);
    for (const nn::Parameter* gradient : trained(gradients)) {
      const Array most = astype(Array(static_cast<float>(clip_value)), gradient->array->dtype());
      *gradient->array = clip(*gradient->array, -most, most);
    }
  });
}

}  // namespace detail

}  // namespace heddle::optim
