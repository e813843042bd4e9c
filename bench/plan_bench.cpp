// What it takes to make a plan of a 24-layer model, step by step: medians, in milliseconds.
#include <fmt/format.h>

#include <functional>
#include <vector>

#include "exec/plan.h"
#include "exec/planner.h"
#include "exec/verify.h"
#include "graph/passes.h"
#include "heddle/device.h"
#include "llm/kv_blocks.h"
#include "llm/plans.h"
#include "measure.h"
#include "stacked_model.h"

namespace heddle {
namespace {

constexpr std::uint32_t kLayers = 24;
constexpr int kTimes = 21;

double median_ms(const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) times.push_back(1e3 * bench::seconds(work));
  return bench::median(times);
}

void measure(const llm::Model& model, std::int64_t tokens) {
  const llm::PlanShape shape{
      .sequences = 1, .blocks_each = 512 / llm::kBlockSize, .kv_type = DType::f16};
  const auto capture = [&] {
    return llm::build_graph(model.file(), model.config(), shape, {}, {.tokens = tokens});
  };
  const Graph graph = capture();
  const CompileOptions options{.verify = false};
  const PassOptions passes{.devices = default_devices()};
  const Plan plan = plan_graph(graph, options);
  fmt::print("{:>6} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>11.2f}\n", tokens,
             median_ms(capture), median_ms([&] { prepare_graph(graph, passes); }),
             median_ms([&] { plan_graph(graph, options); }), median_ms([&] { verify(plan); }),
             median_ms([&] { Executable::compile(graph, options, model.parameters()); }),
             median_ms([&] { Executable::compile(capture(), options, model.parameters()); }));
}

}  // namespace
}  // namespace heddle

int main() {
  const auto model = heddle::stacked_model(heddle::kLayers);
  fmt::print("{} layers, medians of {}, ms\n", heddle::kLayers, heddle::kTimes);
  fmt::print("{:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11}\n", "tokens", "capture", "passes", "plan",
             "verify", "compile", "both");
  for (const std::int64_t tokens : {1, 512}) heddle::measure(*model, tokens);
}
