// Selective state spaces: features side by side, step after step.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/math_ops.h"
#include "device/cpu/parallel.h"
#include "device/cpu/row_ops.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kFeatures = 16;  // of a task; of one group of b and c
constexpr std::int64_t kStatesAtOnce = kBlock / kFeatures;

struct StateSpace {
  std::int64_t batch = 0, length = 0, features = 0, groups = 1, width = 0;
  bool has_d = false;
  FloatUnary exp = nullptr;

  std::int64_t per_group() const { return features / groups; }
  std::int64_t tasks_per_group() const { return (per_group() + kFeatures - 1) / kFeatures; }
  std::int64_t tasks_per_batch() const { return groups * tasks_per_group(); }
  /// Of a task: a and the state, as rows of kFeatures for each of the `width` numbers.
  std::int64_t task_floats() const { return 2 * width * kFeatures; }
  std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(batch * tasks_per_batch() * task_floats()) * sizeof(float);
  }

  void run(const Launch& launch) const {
    const std::int64_t count = launch.extent < 0 ? batch : std::min(batch, launch.extent);
    parallel(launch.team, count * tasks_per_batch(),
             row_grain(4 * kFeatures * width * std::max<std::int64_t>(1, length)),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) run_task(launch, i);
             });
  }

 private:
  /// What a task works on: features [first, first + count) of a batch element.
  struct Task {
    std::int64_t element, group, first, count;
    float *a, *state;
  };

  void run_task(const Launch& launch, std::int64_t index) const {
    const std::int64_t within = index % tasks_per_batch();
    const std::int64_t group = within / tasks_per_group();
    const std::int64_t offset = within % tasks_per_group() * kFeatures;
    float* scratch = reinterpret_cast<float*>(launch.workspace) + index * task_floats();
    const Task task{index / tasks_per_batch(),
                    group,
                    group * per_group() + offset,
                    std::min(kFeatures, per_group() - offset),
                    scratch,
                    scratch + width * kFeatures};
    const float* state = launch.inputs[5 + std::size_t{has_d}].as<float>();
    const std::int64_t states = (task.element * features + task.first) * width;
    std::fill_n(task.a, task_floats(), 0.0f);  // of the features that are not there
    for (std::int64_t i = 0; i < task.count; ++i) {
      for (std::int64_t n = 0; n < width; ++n) {
        task.a[n * kFeatures + i] = launch.inputs[2].as<float>()[(task.first + i) * width + n];
        task.state[n * kFeatures + i] = state[states + i * width + n];
      }
    }
    for (std::int64_t t = 0; t < length; ++t) step(launch, task, t);
    float* last = launch.outputs[1].as<float>() + states;
    for (std::int64_t i = 0; i < task.count; ++i) {
      for (std::int64_t n = 0; n < width; ++n) {
        last[i * width + n] = task.state[n * kFeatures + i];
      }
    }
  }

  void step(const Launch& launch, const Task& task, std::int64_t t) const {
    const std::int64_t row = task.element * length + t;
    const std::int64_t at = row * features + task.first;
    alignas(64) float x[kFeatures] = {}, dt[kFeatures] = {}, y[kFeatures] = {};
    std::copy_n(launch.inputs[0].as<float>() + at, task.count, x);
    std::copy_n(launch.inputs[1].as<float>() + at, task.count, dt);
    const float* b = launch.inputs[3].as<float>() + (row * groups + task.group) * width;
    const float* c = launch.inputs[4].as<float>() + (row * groups + task.group) * width;
    for (std::int64_t n = 0; n < width; n += kStatesAtOnce) {
      const std::int64_t count = std::min(kStatesAtOnce, width - n);
      update(task.a + n * kFeatures, task.state + n * kFeatures, x, dt, b + n, c + n, count, y);
    }
    if (has_d) {
      const float* d = launch.inputs[5].as<float>() + task.first;
      for (std::int64_t i = 0; i < task.count; ++i) y[i] += d[i] * x[i];
    }
    std::copy_n(y, task.count, launch.outputs[0].as<float>() + at);
  }

  /// `count` of the state's numbers, and what they add to y.
  void update(const float* a, float* state, const float* x, const float* dt, const float* b,
              const float* c, std::int64_t count, float* y) const {
    alignas(64) float decay[kBlock] = {};
    for (std::int64_t n = 0; n < count; ++n) {
      for (std::int64_t i = 0; i < kFeatures; ++i) {
        decay[n * kFeatures + i] = dt[i] * a[n * kFeatures + i];
      }
    }
    exp(decay, decay, count * kFeatures);
    for (std::int64_t n = 0; n < count; ++n) {
      float* h = state + n * kFeatures;
      for (std::int64_t i = 0; i < kFeatures; ++i) {
        h[i] = decay[n * kFeatures + i] * h[i] + dt[i] * x[i] * b[n];
        y[i] += h[i] * c[n];
      }
    }
  }
};

}  // namespace

Prepared prepare_selective_scan(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const Shape &x = args.inputs[0].spec.shape, &b = args.inputs[3].spec.shape;
  const StateSpace space{x[0],
                         x[1],
                         x[2],
                         b[2],
                         b[3],
                         std::get<SelectiveScan>(args.op).has_d,
                         float_unary(UnaryKind::exp)};
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = true;
  traits.workspace_bytes = space.workspace_bytes();
  // A task reads its features of a step before it writes them, and its state before all steps.
  traits.aliases = {{0, 0, false}, {0, 1, false}, {1, args.inputs.size() - 1, false}};
  return make_kernel(std::move(traits), [space](const Launch& launch) { space.run(launch); });
}

}  // namespace heddle::cpu
