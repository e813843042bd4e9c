// A model as a whole against the machine: how near decoding comes to a plain read of the weights
// that a token needs, how fast prompts are read, and what sequences that decode together gain.
//
//   model_bench MODEL.gguf [ROUNDS]
//
// The machine's bandwidth swings within minutes, so the weights are read between runs of decoding,
// and the figure is the median of the ratios of neighbours.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/system.h"
#include "base/team.h"
#include "exec/parameters.h"
#include "heddle/device.h"
#include "heddle/error.h"
#include "heddle/llm.h"
#include "measure.h"

namespace heddle {
namespace {

using bench::median;
using bench::seconds;

constexpr int kTokens = 24;  // decoded between two reads
constexpr std::int64_t kPrompt = 512, kTogether = 4;
constexpr TokenId kToken = 10;

using Bytes = std::span<const std::byte>;

/// What a token reads: all weights but an embedding that is not the output as well, as they lie
/// after packing.
std::vector<Bytes> weights_of(const llm::Model& model) {
  std::vector<Bytes> weights;
  for (const gguf::Tensor& tensor : model.file().tensors()) {
    if (tensor.name == "token_embd.weight" && !model.config().tied_output) continue;
    const Parameters::Impl::Entry& entry = *model.parameters()->impl().find(tensor.name);
    const View& view = entry.packed.empty() ? entry.plain : entry.packed.begin()->second;
    weights.emplace_back(view.host(), span_bytes(view.operand));
  }
  return weights;
}

std::uint64_t sum_of(Bytes bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data());
  return std::accumulate(words, words + bytes.size() / sizeof *words, std::uint64_t{0});
}

/// Reads all of them once.
double read_seconds(const std::vector<Bytes>& weights) {
  constexpr std::size_t kPiece = std::size_t{512} << 10;
  std::vector<Bytes> pieces;
  for (Bytes left : weights) {
    while (!left.empty()) {
      pieces.push_back(left.first(std::min(kPiece, left.size())));
      left = left.subspan(pieces.back().size());
    }
  }
  static std::atomic<std::uint64_t> sum;
  return seconds([&] {
    current_team().parallel_for(static_cast<std::int64_t>(pieces.size()), 1,
                                [&](std::int64_t begin, std::int64_t end) {
                                  for (std::int64_t i = begin; i < end; ++i) {
                                    sum += sum_of(pieces[static_cast<std::size_t>(i)]);
                                  }
                                });
  });
}

/// A step of one token for each of the sequences, in seconds.
double decode_seconds(llm::Context& context, const std::vector<llm::SequenceId>& sequences) {
  std::vector<llm::StepItem> items;
  for (const llm::SequenceId sequence : sequences) items.push_back({sequence, {&kToken, 1}});
  return seconds([&] {
           for (int i = 0; i < kTokens; ++i) context.step(items);
         }) /
         kTokens;
}

double prompt_seconds(llm::Context& context) {
  const std::vector<TokenId> prompt(kPrompt, kToken);
  const llm::SequenceId sequence = context.create();
  const double taken = seconds([&] { context.step(sequence, prompt); });
  context.release(sequence);
  return taken;
}

void measure(const std::string& path, int rounds) {
  const std::shared_ptr<llm::Model> model = llm::Model::open(path);
  llm::ContextOptions options{.n_ctx = 1024, .n_seq_max = kTogether + 1};
  options.devices = {&cpu_device()};
  llm::Context context(model, options);
  std::vector<llm::SequenceId> sequences = {context.create()};
  const double load = seconds([&] { context.step(sequences[0], {&kToken, 1}); });
  const std::vector<Bytes> weights = weights_of(*model);
  std::size_t bytes = 0;
  for (const Bytes each : weights) bytes += each.size();

  std::vector<double> alone, read, ratios;
  for (int i = 0; i < rounds; ++i) {
    double reading = 1e9;
    for (int again = 0; again < 3; ++again) reading = std::min(reading, read_seconds(weights));
    alone.push_back(decode_seconds(context, sequences));
    read.push_back(reading);
    ratios.push_back(reading / alone.back());
  }
  while (static_cast<std::int64_t>(sequences.size()) < kTogether) {
    sequences.push_back(context.create());
    context.step(sequences.back(), {&kToken, 1});
  }
  std::vector<double> together, gains, prompts;
  for (int i = 0; i < rounds; ++i) {
    const double one = decode_seconds(context, {sequences[0]});
    together.push_back(decode_seconds(context, sequences));
    gains.push_back(kTogether * one / together.back());
  }
  prompt_seconds(context);
  for (int i = 0; i < std::min(rounds, 3); ++i) prompts.push_back(prompt_seconds(context));

  const auto rate = [&](double count, const std::vector<double>& taken) {
    return count / median(taken);
  };
  fmt::print("{}\n  weights {:.0f} MB, first step {:.2f} s, peak memory {:.0f} MB\n", path,
             static_cast<double>(bytes) / 1e6, load, static_cast<double>(peak_memory()) / 1e6);
  fmt::print("  read     {:8.1f} GB/s\n", rate(static_cast<double>(bytes), read) / 1e9);
  fmt::print("  decode   {:8.1f} tokens/s, {:.2f} of reading the weights\n", rate(1, alone),
             median(ratios));
  fmt::print("  together {:8.1f} tokens/s of {} sequences, {:.2f} times one\n",
             rate(kTogether, together), kTogether, median(gains));
  fmt::print("  prompt   {:8.1f} tokens/s of {}\n", rate(kPrompt, prompts), kPrompt);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "model_bench MODEL.gguf [ROUNDS]\n");
    return 2;
  }
  try {
    heddle::measure(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 9);
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "model_bench: {}\n", error.what());
    return 1;
  }
}
