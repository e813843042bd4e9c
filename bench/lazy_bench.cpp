// What lazy evaluation costs beyond the work: nanoseconds per node to build and to evaluate graphs
// of scalar additions, the smallest work there is. Medians of several runs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "measure.h"

namespace heddle {
namespace {

constexpr int kNodes = 100'000;
constexpr int kRuns = 15;

double nanoseconds(const std::function<void()>& body) {
  return 1e9 * bench::seconds(body) / kNodes;
}

/// `build` gives the arrays to evaluate; they die within the time for evaluation.
void measure(const std::string& name, const std::function<std::vector<Array>()>& build) {
  std::vector<double> building, evaluating, dying;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<Array> results;
    building.push_back(nanoseconds([&] { results = build(); }));
    evaluating.push_back(nanoseconds([&] { eval(results); }));
    dying.push_back(nanoseconds([&] { results.clear(); }));
  }
  std::printf("%-28s build %6.0f ns  eval %6.0f ns  free %6.0f ns a node\n", name.c_str(),
              bench::median(building), bench::median(evaluating), bench::median(dying));
}

std::vector<Array> chain() {
  const Array one(1.0f);
  Array sum(0.0f);
  for (int i = 0; i < kNodes; ++i) sum = sum + one;
  return {sum};
}

/// Each node adds two earlier ones; all are kept.
std::vector<Array> random_graph(std::uint32_t reach) {
  std::mt19937 random(1);
  std::vector<Array> nodes = {Array(0.5f), Array(0.25f)};
  nodes.reserve(kNodes + 2);
  const auto pick = [&] {
    const auto size = static_cast<std::uint32_t>(nodes.size());
    return size - 1 - random() % std::min(size, reach);
  };
  for (int i = 0; i < kNodes; ++i) nodes.push_back(nodes[pick()] + nodes[pick()]);
  return nodes;
}

}  // namespace
}  // namespace heddle

/// Arguments: parts of names, to choose from; without any, all.
int main(int count, char** arguments) {
  const auto measure = [&](const std::string& name, const auto& build) {
    bool chosen = count == 1;
    for (int i = 1; i < count; ++i) chosen = chosen || name.find(arguments[i]) != name.npos;
    if (chosen) heddle::measure(name, build);
  };
  measure("chain", heddle::chain);
  measure("random graph, all kept", [] { return heddle::random_graph(heddle::kNodes); });
  measure("random graph, ends only", [] {
    std::vector<heddle::Array> nodes = heddle::random_graph(1000);
    return std::vector<heddle::Array>(nodes.end() - 100, nodes.end());
  });
}
