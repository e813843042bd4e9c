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
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include "examples/fable/gradients_file.h"
#include "examples/fable/model.h"
#include "heddle/compile.h"
#include "heddle/gguf.h"
#include "heddle/observe.h"
#include "heddle/ops.h"
#include "heddle/optimizers.h"
#include "measure.h"

namespace heddle::bench {
namespace {

constexpr int kSequences = 16, kTokens = 128;

/// Of the shape and with the weights of the bundled file, in f32.
fable::Model read_model(const std::filesystem::path& path) {
  const gguf::File file = gguf::File::open(path);
  const auto number = [&](const char* key) {
    return static_cast<int>(file.metadata().get_int(std::string("qwen2.") + key));
  };
  const auto real = [&](const char* key) {
    return static_cast<float>(file.metadata().get_float(std::string("qwen2.") + key));
  };
  fable::Model model({.n_vocab = number("vocab_size"),
                      .n_embd = number("embedding_length"),
                      .n_layer = number("block_count"),
                      .n_head = number("attention.head_count"),
                      .n_head_kv = number("attention.head_count_kv"),
                      .n_ff = number("feed_forward_length"),
                      .n_ctx = number("context_length"),
                      .rms_eps = real("attention.layer_norm_rms_epsilon"),
                      .rope_base = real("rope.freq_base")},
                     1);
  ArrayMap weights;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const Array stored = Array::from_bytes({tensor.dtype, tensor.shape}, tensor.data);
    weights.emplace(tensor.name, astype(stored, DType::f32));
  }
  nn::load_parameters(model, weights);
  eval(model);
  return model;
}

/// Tokens, and those to come.
Array random_batch(int vocabulary) {
  std::mt19937 random(7);
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < kSequences * (kTokens + 1); ++i)
    tokens.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary)));
  return {tokens, {kSequences, kTokens + 1}};
}

auto loss_and_gradients(const fable::Model& model, const Array& batch) {
  return value_and_grad([](const fable::Model& m, const Array& tokens) { return m.loss(tokens); },
                        model, batch);
}

/// AdamW, on gradients clipped to a norm of 1.
struct Training {
  fable::Model model;
  optim::AdamW optimizer{1e-3, {.weight_decay = 0.01, .bias_correction = true}};
  ArraysFunction step;  // (batch) -> loss

  explicit Training(fable::Model m) : model(std::move(m)) {
    optimizer.init(model);
    eval(model, optimizer);
    step = compile(
        [this](const std::vector<Array>& batch) {
          const auto [loss, gradients] = loss_and_gradients(model, batch[0]);
          optimizer.update(model, optim::clip_grad_norm(gradients, 1.0).first);
          return std::vector<Array>{loss};
        },
        false, nn::state_of(model, optimizer));
  }
  Training(const Training&) = delete;  // the step knows where it lies
  Training& operator=(const Training&) = delete;
};

/// Of the memory that was resident, in MiB.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

void write_example(const fable::Model& model, const Array& batch, const std::string& file) {
  const auto [loss, gradients] = loss_and_gradients(model, batch);
  fable::write_gradients(file, model, batch, loss, nn::parameters(gradients));
}

void serve(const ArraysFunction& step, const Array& batch) {
  for (std::string line; std::getline(std::cin, line);) {
    float loss = 0;
    const double took = seconds([&] { loss = step({batch})[0].item<float>(); });
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

void profile(const ArraysFunction& step, const Array& batch) {
  constexpr int kRuns = 11;
  step({batch});
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) times.push_back(seconds([&] { step({batch}); }));
  fmt::print("{:.2f} ms a step, peak {:.1f} MiB\n", 1e3 * median(times), peak_mib());
  const auto costs = std::make_shared<Costs>();
  {
    const ObserveScope scope(costs);
    for (int i = 0; i < kRuns; ++i) step({batch});
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
  const fable::Model model = read_model(arguments[1]);
  const heddle::Array batch = random_batch(model.shape.n_vocab);
  if (count > 2) write_example(model, batch, arguments[2]);
  Training training(model);
  count > 2 ? serve(training.step, batch) : profile(training.step, batch);
}
