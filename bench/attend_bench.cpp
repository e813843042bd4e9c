// How fast Attend is on states that caches do not hold. Decoding: bytes of keys and values a second
// as a share of the rate at which the same threads read the same memory, in pairs that take turns.
// Prompts: operations a second, and their share of what the kernel's own tiles reach in caches.
//
// Arguments: words that a case's line must contain ("decode llama-3.2-1b f16 x2"); none: all cases.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/team.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernel.h"
#include "device/cpu/products.h"
#include "heddle/half.h"
#include "tensor/quantize.h"

namespace heddle::cpu {
namespace {

constexpr std::int64_t kBlockSize = 32;
constexpr std::size_t kBeyondCaches = std::size_t{160} << 20;  // keys and values of all layers
constexpr int kPairs = 9;

struct ModelShape {
  const char* name;
  std::int64_t heads, kv_heads, features;
};
constexpr ModelShape kShapes[] = {
    {"qwen2.5-0.5b", 14, 2, 64}, {"llama-3.2-1b", 32, 8, 64}, {"llama-3.1-8b", 32, 8, 128}};
constexpr DType kTypes[] = {DType::f16, DType::f32, DType::q8_0};

struct Case {
  ModelShape shape;
  DType dtype;
  std::int64_t tokens, sequences, positions;
  int threads;

  bool prompt() const { return tokens > 8; }
  std::string line() const {
    return fmt::format("{:6} {:12} {:4} {:4} tokens of {} {:4} positions x{}",
                       prompt() ? "prompt" : "decode", shape.name, to_string(dtype), tokens,
                       sequences, positions, threads);
  }
  std::int64_t rows() const { return sequences * positions; }
  std::size_t state_bytes() const {
    return static_cast<std::size_t>(rows() * shape.kv_heads) * row_bytes(dtype, shape.features);
  }
  double operations() const {  // two products of two operations for what each row sees
    const double seen = static_cast<double>(positions) - static_cast<double>(tokens - 1) / 2;
    return 4.0 * static_cast<double>(shape.heads * shape.features * tokens) * seen;
  }
};

double seconds(const auto& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Stored rows of random numbers, the same ones again and again.
void fill(DType dtype, std::vector<std::byte>& memory) {
  constexpr std::int64_t kCount = 32 * 1024;
  std::vector<float> values(kCount);
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(generator);
  std::vector<std::byte> stored(row_bytes(dtype, kCount));
  if (dtype == DType::q8_0) {
    quantize_row(dtype, values.data(), stored.data(), kCount);
  } else if (dtype == DType::f16) {
    std::ranges::transform(values, reinterpret_cast<f16*>(stored.data()),
                           [](float value) { return f16(value); });
  } else {
    std::memcpy(stored.data(), values.data(), stored.size());
  }
  for (std::size_t at = 0; at < memory.size(); at += stored.size()) {
    std::memcpy(memory.data() + at, stored.data(), std::min(stored.size(), memory.size() - at));
  }
}

volatile std::uint64_t sink;

void read(Team& team, const std::byte* memory, std::size_t bytes) {
  constexpr std::size_t kLine = 8;  // words; sums of their own, so that none waits for another
  const auto* words = reinterpret_cast<const std::uint64_t*>(memory);
  team.parallel_for(static_cast<std::int64_t>(bytes / 64), 1 << 12,
                    [&](std::int64_t begin, std::int64_t end) {
                      std::uint64_t sums[kLine] = {};
                      for (std::int64_t line = begin; line < end; ++line) {

#pragma GCC unroll 8
                        for (std::size_t i = 0; i < kLine; ++i) {
                          sums[i] += words[static_cast<std::size_t>(line) * kLine + i];
                        }
                      }
                      sink = std::accumulate(sums, sums + kLine, std::uint64_t{0});
                    });
}

/// Layers of states that are attended to one after the other.
class Bench {
 public:
  explicit Bench(const Case& c)
      : case_(c),
        layers_(std::max<std::size_t>(1, c.prompt() ? 1 : kBeyondCaches / (2 * c.state_bytes()))),
        team_(c.threads),
        states_(2 * layers_ * c.state_bytes()),
        queries_(static_cast<std::size_t>(c.tokens * c.shape.heads * c.shape.features)),
        out_(queries_.size()) {
    fill(c.dtype, states_);
    std::mt19937 generator(2);
    std::normal_distribution<float> normal;
    for (float& value : queries_) value = normal(generator);
    set_tokens();
    prepare();
  }

  void attend_all() {
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      std::byte* keys = states_.data() + 2 * layer * case_.state_bytes();
      const auto ints = [](std::vector<std::int32_t>& values) {
        return Operand{reinterpret_cast<std::byte*>(values.data()), values.size() * 4};
      };
      const auto floats = [](std::vector<float>& values) {
        return Operand{reinterpret_cast<std::byte*>(values.data()), values.size() * 4};
      };
      const Operand in[] = {floats(queries_),
                            {keys, case_.state_bytes()},
                            {keys + case_.state_bytes(), case_.state_bytes()},
                            ints(table_),
                            ints(sequence_),
                            ints(position_),
                            ints(length_)};
      const Operand to[] = {floats(out_)};
      const auto address = reinterpret_cast<std::uintptr_t>(workspace_.data());
      static_cast<const CpuKernel&>(*prepared_.kernel)
          .run({in, to, workspace_.data() + (64 - address % 64) % 64, -1, team_});
    }
  }
  void read_all() { read(team_, states_.data(), states_.size()); }
  std::size_t bytes() const { return states_.size(); }
  Team& team() { return team_; }

 private:
  void set_tokens() {
    const std::int64_t width = case_.positions / kBlockSize;
    table_.resize(static_cast<std::size_t>(case_.sequences * width));
    std::iota(table_.begin(), table_.end(), 0);
    length_.assign(static_cast<std::size_t>(case_.sequences),
                   static_cast<std::int32_t>(case_.positions));
    const std::int64_t each = case_.tokens / case_.sequences;
    for (std::int64_t t = 0; t < case_.tokens; ++t) {
      sequence_.push_back(static_cast<std::int32_t>(t / each));
      position_.push_back(static_cast<std::int32_t>(case_.positions - each + t % each));
    }
  }

  void prepare() {
    const ModelShape& s = case_.shape;
    const auto spec = [](DType dtype, const Shape& shape) {
      return OperandSpec::contiguous({dtype, shape});
    };
    const Shape state{case_.rows(), s.kv_heads, s.features};
    const OperandSpec inputs[] = {spec(DType::f32, {case_.tokens, s.heads, s.features}),
                                  spec(case_.dtype, state),
                                  spec(case_.dtype, state),
                                  spec(DType::i32, {case_.sequences, case_.positions / kBlockSize}),
                                  spec(DType::i32, {case_.tokens}),
                                  spec(DType::i32, {case_.tokens}),
                                  spec(DType::i32, {case_.sequences})};
    const OperandSpec outputs[] = {inputs[0]};
    prepared_ = prepare_attend({Attend{.scale = 0.1f, .block_size = kBlockSize}, inputs, outputs});
    if (!prepared_) throw std::runtime_error(prepared_.reason);
    workspace_.resize(prepared_.kernel->traits().workspace_bytes + 64);
  }

  Case case_;
  std::size_t layers_;
  Team team_;
  std::vector<std::byte> states_, workspace_;
  std::vector<float> queries_, out_;
  std::vector<std::int32_t> table_, sequence_, position_, length_;
  Prepared prepared_;
};

/// Operations a second of tiles whose operands lie in the first level of cache.
double tile_rate(Team& team) {
  constexpr std::int64_t kRows = 48, kDepth = 64, kRepeats = 400;
  const std::int64_t chunks = 4 * team.size();
  const double taken = seconds([&] {
    team.parallel_for(chunks, 1, [](std::int64_t, std::int64_t) {
      alignas(64) static thread_local float x[kRows * kDepth], w[kDepth * kGroupColumns],
          out[kRows * kGroupColumns];
      for (std::int64_t i = 0; i < kRepeats; ++i) {
        products(isa()).tile({x, kDepth, kRows, w, kPanel, kPanel * kDepth, kDepth, kGroupColumns,
                              out, kGroupColumns, nullptr});
      }
    });
  });
  return 2.0 * static_cast<double>(chunks * kRepeats * kRows * kDepth * kGroupColumns) / taken;
}

void measure(const Case& c) {
  Bench bench(c);
  bench.attend_all();
  std::vector<double> rates, ratios;
  for (int i = 0; i < kPairs; ++i) {
    double bound = 0;
    if (c.prompt()) {
      bound = tile_rate(bench.team());
    } else {
      bound = static_cast<double>(bench.bytes()) / seconds([&] { bench.read_all(); });
    }
    const double taken = seconds([&] { bench.attend_all(); });
    const double done = c.prompt() ? c.operations() : static_cast<double>(bench.bytes());
    rates.push_back(done / taken / 1e9);
    ratios.push_back(done / taken / bound);
  }
  fmt::print("{}: {:6.1f} {}, {:4.2f} of {}\n", c.line(), median(rates),
             c.prompt() ? "GFLOP/s" : "GB/s", median(ratios), c.prompt() ? "tiles" : "reads");
  std::fflush(stdout);
}

std::vector<Case> all_cases() {
  constexpr std::int64_t kBatches[][2] = {{1, 1}, {4, 4}, {8, 8}, {8, 1}, {128, 1}, {512, 1}};
  std::vector<Case> cases;
  for (const auto& [tokens, sequences] : kBatches) {
    for (const ModelShape& shape : kShapes) {
      for (const DType dtype : kTypes) {
        for (const std::int64_t positions : {512, 4096}) {
          for (const int threads : {1, 2}) {
            cases.push_back({shape, dtype, tokens, sequences, positions, threads});
          }
        }
      }
    }
  }
  return cases;
}

}  // namespace
}  // namespace heddle::cpu

int main(int count, char** words) {
  for (const heddle::cpu::Case& c : heddle::cpu::all_cases()) {
    const std::string line = c.line();
    const auto has = [&](const char* word) { return line.find(word) != std::string::npos; };
    if (std::all_of(words + 1, words + count, has)) heddle::cpu::measure(c);
  }
}
