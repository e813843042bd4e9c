// How fast Linear reads block-quantised weights: one row of activations against more weights than
// caches hold, as a share of the rate at which the same threads read memory; and many rows against
// weights that are read once, in operations a second.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/team.h"
#include "device/cpu/kernel.h"
#include "tensor/quantize.h"

namespace heddle::cpu {
namespace {

constexpr std::int64_t kDepth = 4096;
constexpr std::size_t kMuch = std::size_t{256} << 20;
constexpr DType kTypes[] = {DType::q4_0,   DType::q4_1,   DType::q5_0, DType::q5_1, DType::q8_0,
                            DType::q2_K,   DType::q3_K,   DType::q4_K, DType::q5_K, DType::q6_K,
                            DType::iq4_nl, DType::iq4_xs, DType::f16};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<float> random_floats(std::size_t count) {
  std::vector<float> values(count);
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(generator);
  return values;
}

/// Bytes a second that the team reads, at best of several times.
double read_rate(Team& team) {
  static std::vector<std::uint64_t> memory(kMuch / sizeof(std::uint64_t), 1);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    team.parallel_for(static_cast<std::int64_t>(memory.size()), 1 << 16,
                      [](std::int64_t begin, std::int64_t end) {
                        benchmark::DoNotOptimize(std::accumulate(
                            memory.begin() + begin, memory.begin() + end, std::uint64_t{0}));
                      });
    best = std::max(best, static_cast<double>(kMuch) / seconds_since(start));
  }
  return best;
}

struct Product {
  std::vector<std::byte> weights, workspace;
  std::vector<float> x, out;
  Prepared prepared;

  Product(DType dtype, std::int64_t rows, std::int64_t columns)
      : weights(static_cast<std::size_t>(columns) * row_bytes(dtype, kDepth)),
        x(random_floats(static_cast<std::size_t>(rows * kDepth))),
        out(static_cast<std::size_t>(rows * columns)) {
    quantize_row(dtype, random_floats(kDepth).data(), weights.data(), kDepth);
    const std::size_t row = row_bytes(dtype, kDepth);
    for (std::size_t at = row; at < weights.size(); at += row) {
      std::memcpy(weights.data() + at, weights.data(), row);
    }
    const OperandSpec inputs[] = {OperandSpec::contiguous({DType::f32, {rows, kDepth}}),
                                  OperandSpec::contiguous({dtype, {columns, kDepth}})};
    const OperandSpec outputs[] = {OperandSpec::contiguous({DType::f32, {rows, columns}})};
    prepared = prepare_linear({Linear{}, inputs, outputs});
    if (!prepared) throw std::runtime_error(prepared.reason);
    workspace.resize(prepared.kernel->traits().workspace_bytes + 64);
  }

  void run(Team& team) {
    const Operand in[] = {{reinterpret_cast<std::byte*>(x.data()), x.size() * sizeof(float)},
                          {weights.data(), weights.size()}};
    const Operand to[] = {{reinterpret_cast<std::byte*>(out.data()), out.size() * sizeof(float)}};
    const auto address = reinterpret_cast<std::uintptr_t>(workspace.data());
    static_cast<const CpuKernel&>(*prepared.kernel)
        .run({in, to, workspace.data() + (64 - address % 64) % 64, -1, team});
  }
};

/// Arguments: index into kTypes, threads.
void one_row(benchmark::State& state) {
  const DType dtype = kTypes[state.range(0)];
  Team team(static_cast<int>(state.range(1)));
  const auto columns = static_cast<std::int64_t>(kMuch / row_bytes(dtype, kDepth));
  Product product(dtype, 1, columns);
  const double rate = read_rate(team);
  double best = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    product.run(team);
    best = std::max(best, static_cast<double>(product.weights.size()) / seconds_since(start));
  }
  state.SetLabel(std::string(to_string(dtype)));
  state.counters["GB/s"] = best / 1e9;
  state.counters["of_read_rate"] = best / rate;
}

/// Arguments: index into kTypes, threads.
void many_rows(benchmark::State& state) {
  constexpr std::int64_t kRows = 64, kColumns = 1024;
  const DType dtype = kTypes[state.range(0)];
  Team team(static_cast<int>(state.range(1)));
  Product product(dtype, kRows, kColumns);
  double best = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    product.run(team);
    best = std::max(best, 2.0 * kRows * kColumns * kDepth / seconds_since(start));
  }
  state.SetLabel(std::string(to_string(dtype)));
  state.counters["GOP/s"] = best / 1e9;
}

void arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"type", "threads"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (std::size_t type = 0; type < std::size(kTypes); ++type) {
    for (const std::int64_t threads : {1, 2}) {
      benchmark->Args({static_cast<std::int64_t>(type), threads});
    }
  }
}

BENCHMARK(one_row)->Apply(arguments);
BENCHMARK(many_rows)->Apply(arguments);

}  // namespace
}  // namespace heddle::cpu
