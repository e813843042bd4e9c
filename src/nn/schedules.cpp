// Learning rates as functions of the step, in f32.
#include <cmath>
#include <numbers>

#include "array/ops_common.h"
#include "heddle/optimizers.h"

namespace heddle::optim {

namespace {

void require_finite(const char* schedule, double value) {
  require(std::isfinite(value), ErrorCode::invalid_argument, "{}: {} is no finite number", schedule,
          value);
}

void require_steps(const char* schedule, const char* what, int steps) {
  require(steps >= 1, ErrorCode::invalid_argument, "{}: {} is {}; it must be positive", schedule,
          what, steps);
}

Array number(double value) {
  return Array(static_cast<float>(value));
}

/// rate^count
Array repeated(double rate, const Array& count) {
  return power(number(rate), astype(count, DType::f32));
}

void require_rate(const char* schedule, double init, double decay_rate) {
  require_finite(schedule, init);
  require(std::isfinite(decay_rate) && decay_rate > 0, ErrorCode::invalid_argument,
          "{}: decay_rate is {}; it must be positive", schedule, decay_rate);
}

}  // namespace

Schedule constant(double value) {
  require_finite("constant", value);
  return [value](const Array&) { return number(value); };
}

Schedule linear_schedule(double init, double end, int steps) {
  require_finite("linear_schedule", init);
  require_finite("linear_schedule", end);
  require_steps("linear_schedule", "steps", steps);
  return [=](const Array& step) {
    return minimum(step, steps) * number((end - init) / steps) + number(init);
  };
}

Schedule exponential_decay(double init, double decay_rate) {
  require_rate("exponential_decay", init, decay_rate);
  return [=](const Array& step) { return number(init) * repeated(decay_rate, step); };
}

Schedule step_decay(double init, double decay_rate, int step_size) {
  require_rate("step_decay", init, decay_rate);
  require_steps("step_decay", "step_size", step_size);
  return [=](const Array& step) {
    return number(init) * repeated(decay_rate, floor_divide(step, step_size));
  };
}

Schedule cosine_decay(double init, int decay_steps, double minimum) {
  require_finite("cosine_decay", init);
  require_finite("cosine_decay", minimum);
  require_steps("cosine_decay", "decay_steps", decay_steps);
  return [=](const Array& step) {
    const Array angle = heddle::minimum(step, decay_steps) * number(std::numbers::pi / decay_steps);
    return maximum(number(init) * (0.5f * (1 + cos(angle))), number(minimum));
  };
}

Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int> boundaries) {
  require(!schedules.empty() && schedules.size() == boundaries.size() + 1,
          ErrorCode::invalid_argument,
          "join_schedules: {} schedules and {} boundaries; there must be one less",
          schedules.size(), boundaries.size());
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    require(schedules[i] != nullptr, ErrorCode::invalid_argument,
            "join_schedules: schedule {} is empty", i);
  }
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    const int before = i == 0 ? 0 : boundaries[i - 1];
    require(boundaries[i] >= before, ErrorCode::invalid_argument,
            "join_schedules: boundary {} is {}; it must not be below {}", i, boundaries[i], before);
  }
  return [=](const Array& step) {
    Array rate = schedules[0](step);
    for (std::size_t i = 0; i < boundaries.size(); ++i) {
      rate = where(step < boundaries[i], rate, schedules[i + 1](step - boundaries[i]));
    }
    return rate;
  };
}

}  // namespace heddle::optim
