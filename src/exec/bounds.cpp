// What devices can do at best, measured.
#include <algorithm>
#include <limits>

#include "exec/profile.h"
#include "heddle/executable.h"
#include "heddle/ops.h"

namespace heddle {

namespace {

// A weight that is larger than the caches of most processors.
constexpr std::int64_t kInner = 1024, kWeightRows = 16384;
constexpr double kLongEnough = 0.02;  // seconds of one product, against the clock's and other noise
constexpr int kTries = 5;
constexpr double kMostTime = 0.3;  // seconds for all tries

/// The work and the time of the node that took longest.
class LongestNode final : public Observer {
 public:
  void node_ran(const ObservedRun&, const ObservedRecord& record) override {
    const double seconds = std::chrono::duration<double>(record.end - record.begin).count();
    if (seconds <= longest) return;
    longest = seconds;
    bytes = record.bytes;
    operations = record.operations;
  }
  double longest = 0, bytes = 0, operations = 0;
};

/// A product of `rows` rows with a weight, on the device.
class Product {
 public:
  Product(Device& device, std::int64_t rows, std::int64_t weight_rows)
      : rows_(rows), input_(static_cast<std::size_t>(rows * kInner), 0.5f) {
    GraphBuilder builder;
    const TensorSpec weight{DType::f32, {weight_rows, kInner}};
    const Array x = builder.input("x", {DType::f32, {rows, kInner}});
    builder.output("y", linear(x, builder.parameter("w", weight)));
    auto parameters = make_ref<Parameters>();
    const std::vector<float> values(static_cast<std::size_t>(elements(weight.shape)), 0.25f);
    parameters->set("w", Array(values, weight.shape));
    CompileOptions options;
    options.pin = &device;
    executable_ = Executable::compile(builder.build(), options, std::move(parameters));
  }

  /// The fastest of some runs.
  LongestNode best() {
    run();  // what happens only once
    LongestNode best;
    best.longest = std::numeric_limits<double>::infinity();
    double all = 0;
    for (int i = 0; i < kTries && all < kMostTime; ++i) {
      const LongestNode once = run();
      all += once.longest;
      if (once.longest < best.longest) best = once;
    }
    return best;
  }

 private:
  LongestNode run() {
    const auto watch = std::make_shared<LongestNode>();
    const ObserveScope scope(watch);
    executable_->run({{"x", HostTensor(input_, {rows_, kInner})}});
    return *watch;
  }

  std::int64_t rows_;
  std::vector<float> input_;
  std::shared_ptr<Executable> executable_;
};

}  // namespace

DeviceBounds measure_bounds(Device& device) {
  DeviceBounds bounds;
  const LongestNode read = Product(device, 1, kWeightRows).best();
  bounds.bytes_per_second = read.bytes / read.longest;
  for (std::int64_t rows = 64;; rows *= 4) {
    const LongestNode product = Product(device, rows, kInner).best();
    bounds.operations_per_second =
        std::max(bounds.operations_per_second, product.operations / product.longest);
    if (product.longest > kLongEnough || rows >= 16384) return bounds;
  }
}

}  // namespace heddle
