// A training step of the bundled model, for bench/train_step.py, which measures it beside
// PyTorch's.
//
//   train_step MODEL FILE    writes weights, a batch, and the loss and its gradients there to FILE
//                            (.safetensors); then, for each line on standard input, takes a step
//                            and prints its seconds and its loss. At the end of the input: the peak
//                            of its memory in MiB.
//   train_step MODEL         takes steps and prints what each op of one costs.
#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include "fable_step.h"
#include "heddle/io.h"
#include "heddle/observe.h"
#include "heddle/ops.h"
#include "measure.h"

namespace heddle::bench {
namespace {

std::vector<Array> random_batch(std::int64_t vocabulary) {
  std::mt19937 random(7);
  std::vector<std::int32_t> tokens, targets;
  for (std::int64_t i = 0; i < kSequences * kTokens; ++i) {
    tokens.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocabulary)));
    targets.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocabulary)));
  }
  return {Array(tokens, {kSequences, kTokens}), Array(targets, {kSequences, kTokens})};
}

/// Of the memory that was resident, in MiB.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

void write_example(const Fable& fable, const std::vector<Array>& batch, const std::string& file) {
  const auto loss = [&](const Weights& weights) {
    return fable_loss(fable.shape, weights, batch[0], batch[1]);
  };
  const auto [value, gradients] = value_and_grad(loss, fable.weights);
  ArrayMap arrays;
  for (const auto& [name, weight] : fable.weights) arrays.emplace(name, weight);
  for (const auto& [name, gradient] : gradients) arrays.emplace("gradient." + name, gradient);
  arrays.emplace("tokens", batch[0]);
  arrays.emplace("targets", batch[1]);
  arrays.emplace("loss", value);
  save_safetensors(file, arrays,
                   {{"layers", std::to_string(fable.shape.layers)},
                    {"heads", std::to_string(fable.shape.heads)},
                    {"kv_heads", std::to_string(fable.shape.kv_heads)},
                    {"eps", fmt::format("{}", fable.shape.eps)},
                    {"rope_base", fmt::format("{}", fable.shape.rope_base)}});
}

void serve(const ArraysFunction& step, const std::vector<Array>& batch) {
  for (std::string line; std::getline(std::cin, line);) {
    float loss = 0;
    const double took = seconds([&] { loss = step(batch)[0].item<float>(); });
    fmt::print("{} {}\n", took, loss);
    std::fflush(stdout);
  }
  fmt::print("{}\n", peak_mib());
}

/// Adds up what nodes with the same op and the same operands take.
class Costs final : public Observer {
 public:
  void node_ran(const ObservedRun& run, const ObservedRecord& record) override {
    std::string text = record.what.text + " ->";
    for (const ObservedNode::Source& input : record.what.inputs) {
      text.insert(text.size() - 3,
                  " " + to_string(run.plan->nodes[input.node].outputs[input.output]));
    }
    for (const TensorSpec& output : record.what.outputs) text += " " + to_string(output);
    Sum& sum = sums_[text];
    sum.seconds += std::chrono::duration<double>(record.end - record.begin).count();
    ++sum.count;
  }

  void print(int runs) const {
    std::vector<std::pair<std::string, Sum>> all(sums_.begin(), sums_.end());
    std::ranges::sort(all, {}, [](const auto& each) { return -each.second.seconds; });
    double total = 0;
    for (const auto& [text, sum] : all) total += sum.seconds;
    for (const auto& [text, sum] : all) {
      fmt::print("{:8.3f} ms {:5.1f} % {:5} x  {}\n", 1e3 * sum.seconds / runs,
                 100 * sum.seconds / total, sum.count / runs, text);
    }
    fmt::print("{:8.3f} ms in all\n", 1e3 * total / runs);
  }

 private:
  struct Sum {
    double seconds = 0;
    int count = 0;
  };
  std::map<std::string, Sum> sums_;
};

void profile(const ArraysFunction& step, const std::vector<Array>& batch) {
  constexpr int kRuns = 11;
  step(batch);
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) times.push_back(seconds([&] { step(batch); }));
  fmt::print("{:.2f} ms a step, peak {:.1f} MiB\n", 1e3 * median(times), peak_mib());
  const auto costs = std::make_shared<Costs>();
  {
    const ObserveScope scope(costs);
    for (int i = 0; i < kRuns; ++i) step(batch);
  }
  costs->print(kRuns);
}

}  // namespace
}  // namespace heddle::bench

int main(int count, char** arguments) {
  using namespace heddle::bench;
  if (count < 2) {
    fmt::print("usage: train_step MODEL [FILE]\n");
    return 2;
  }
  const Fable fable = read_fable(arguments[1]);
  const auto batch = random_batch(fable.weights.at("token_embd.weight").shape(0));
  if (count > 2) write_example(fable, batch, arguments[2]);
  Training training(fable);
  const heddle::ArraysFunction step = training_step(training);
  count > 2 ? serve(step, batch) : profile(step, batch);
}
