// What all optimisers do, and clipping.
#include <cmath>

#include "array/ops_common.h"
#include "heddle/optimizers.h"

namespace heddle::optim {

namespace {

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

void require_fits(const std::string& name, const Array& array, const Shape& shape, DType dtype,
                  const char* what) {
  require(array.shape() == shape && array.dtype() == dtype, ErrorCode::invalid_argument,
          "optimizer: {} of {} is {}; it must be {}", what, name, array.spec(),
          TensorSpec{dtype, shape});
}

}  // namespace

Optimizer::Optimizer(const LearningRate& rate)
    : step(0), learning_rate(static_cast<float>(rate.value)), schedule_(rate.schedule) {
  require(std::isfinite(rate.value) && rate.value >= 0, ErrorCode::invalid_argument,
          "optimizer: the learning rate is {}; it must be finite and not negative", rate.value);
  if (schedule_) learning_rate = astype(schedule_(step), DType::f32);
}

void Optimizer::init_state(const std::vector<nn::Parameter>& parameters) {
  for (const nn::Parameter* parameter : trained(parameters)) {
    const Array& array = *parameter->array;
    const DType dtype = state_dtype(array.dtype());
    State& known = state[parameter->name];
    State begun = initial_state(array.shape(), dtype);
    for (auto& [part, zero] : begun) {
      const auto [at, is_new] = known.try_emplace(part, zero);
      if (!is_new) require_fits(parameter->name, at->second, zero.shape(), dtype, part.c_str());
    }
  }
}

void Optimizer::apply_gradients(const std::vector<nn::Parameter>& parameters,
                                const std::vector<nn::Parameter>& gradients) {
  const auto to = trained(parameters), from = trained(gradients);
  require(to.size() == from.size(), ErrorCode::invalid_argument,
          "optimizer: {} parameters train, and there are {} gradients", to.size(), from.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    require(to[i]->name == from[i]->name, ErrorCode::invalid_argument,
            "optimizer: the gradient in the place of {} is called {}", to[i]->name, from[i]->name);
    require_fits(to[i]->name, *from[i]->array, to[i]->array->shape(), to[i]->array->dtype(),
                 "the gradient");
  }
  init_state(parameters);
  if (schedule_) learning_rate = astype(schedule_(step), DType::f32);
  step = step + 1;
  const Rule next = rule();
  for (std::size_t i = 0; i < to.size(); ++i) {
    Array& parameter = *to[i]->array;
    const DType dtype = state_dtype(parameter.dtype());
    parameter =
        astype(next(astype(*from[i]->array, dtype), astype(parameter, dtype), state[to[i]->name]),
               parameter.dtype());
  }
}

namespace detail {

Array clip_grad_norm(const std::vector<nn::Parameter>& gradients, double max_norm) {
  require(std::isfinite(max_norm) && max_norm > 0, ErrorCode::invalid_argument,
          "clip_grad_norm: max_norm is {}; it must be positive", max_norm);
  Array squares = 0.0f;
  for (const nn::Parameter* gradient : trained(gradients)) {
    squares = squares +
              astype(sum(square(astype(*gradient->array, state_dtype(gradient->array->dtype())))),
                     DType::f32);
  }
  Array norm = sqrt(squares);
  const Array most = static_cast<float>(max_norm);
  const Array scale = where(norm < most, Array(1.0f), most / (norm + 1e-6f));
  for (const nn::Parameter* gradient : trained(gradients)) {
    *gradient->array = astype(*gradient->array * scale, gradient->array->dtype());
  }
  return norm;
}

void clip_grad_value(const std::vector<nn::Parameter>& gradients, double clip_value) {
  require(std::isfinite(clip_value) && clip_value > 0, ErrorCode::invalid_argument,
          "clip_grad_value: clip_value is {}; it must be positive", clip_value);
  for (const nn::Parameter* gradient : trained(gradients)) {
    const Array most = astype(Array(static_cast<float>(clip_value)), gradient->array->dtype());
    *gradient->array = clip(*gradient->array, -most, most);
  }
}

}  // namespace detail

}  // namespace heddle::optim
