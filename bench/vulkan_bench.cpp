// How fast the Vulkan device multiplies by weights of each type: one row and eight, as a share of
// the rate at which the same device sums the same bytes as floats, read once; and 128 rows, in
// operations a second. HEDDLE_VULKAN_MATMUL chooses the form.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "heddle/device.h"
#include "tensor/quantize.h"

namespace heddle {
namespace {

constexpr std::int64_t kDepth = 2048;
constexpr std::size_t kWeightBytes = std::size_t{32} << 20;  // for few rows: more than most caches
constexpr std::int64_t kManyRows = 128, kManyColumns = 1024;
constexpr DType kTypes[] = {DType::f32,  DType::f16,  DType::bf16, DType::q4_0,   DType::q4_1,
                            DType::q5_0, DType::q5_1, DType::q8_0, DType::q2_K,   DType::q3_K,
                            DType::q4_K, DType::q5_K, DType::q6_K, DType::iq4_nl, DType::iq4_xs};

Device& device() {
  return find_device("vulkan:0");
}

std::vector<float> random_floats(std::size_t count) {
  std::vector<float> values(count);
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(generator);
  return values;
}

View make_view(const TensorSpec& spec) {
  return {device().allocate(byte_size(spec), MemoryKind::host_visible), 0,
          OperandSpec::contiguous(spec)};
}

/// An op on operands of its own.
class Work {
 public:
  Work(Op op, std::vector<View> inputs) : inputs_(std::move(inputs)) {
    std::vector<OperandSpec> operands;
    std::vector<TensorSpec> specs;
    for (const View& input : inputs_) {
      operands.push_back(input.operand);
      specs.push_back(input.spec());
    }
    const std::vector<OperandSpec> results = output_operands(op, infer(op, specs));
    for (const OperandSpec& result : results) outputs_.push_back(make_view(result.spec));
    const Prepared prepared = device().prepare(op, operands, results);
    if (!prepared) throw std::runtime_error(prepared.reason);
    kernel_ = prepared.kernel;
    if (const std::size_t bytes = kernel_->traits().workspace_bytes; bytes > 0) {
      workspace_ = make_view({DType::u8, {static_cast<std::int64_t>(bytes)}});
    }
    run();  // drivers compile what is used first
  }

  /// Seconds from submission to end.
  double run() {
    const Ref<Stream> stream = device().default_stream();
    stream->encode(kernel_, inputs_, outputs_, workspace_, {});
    const auto start = std::chrono::steady_clock::now();
    stream->submit()->wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  std::vector<View> inputs_, outputs_;
  std::shared_ptr<const Kernel> kernel_;
  View workspace_;
};

Work product(DType dtype, std::int64_t rows, std::int64_t columns) {
  const std::vector<float> values = random_floats(static_cast<std::size_t>(rows * kDepth));
  const View x = make_view({DType::f32, {rows, kDepth}});
  std::memcpy(x.host(), values.data(), values.size() * sizeof(float));
  const View weights = make_view({dtype, {columns, kDepth}});
  const std::size_t row = row_bytes(dtype, kDepth);
  quantize_row(dtype, values.data(), weights.host(), kDepth);
  for (std::int64_t i = 1; i < columns; ++i) {
    std::memcpy(weights.host() + static_cast<std::size_t>(i) * row, weights.host(), row);
  }
  return Work(Linear{}, {x, weights});
}

/// Bytes a second that the device reads, at best of several times.
double read_rate() {
  static const double rate = [] {
    const auto rows = static_cast<std::int64_t>(kWeightBytes / (kDepth * sizeof(float)));
    const View memory = make_view({DType::f32, {rows, kDepth}});
    std::memset(memory.host(), 0, kWeightBytes);
    Work sum(Reduce{ReduceKind::sum, {1}}, {memory});
    double best = sum.run();
    for (int i = 0; i < 9; ++i) best = std::min(best, sum.run());
    return static_cast<double>(kWeightBytes) / best;
  }();
  return rate;
}

/// Arguments: index into kTypes, rows.
void few_rows(benchmark::State& state) {
  const DType dtype = kTypes[state.range(0)];
  const std::size_t row = row_bytes(dtype, kDepth);
  const auto columns = static_cast<std::int64_t>(kWeightBytes / row);
  Work work = product(dtype, state.range(1), columns);
  const double bytes = static_cast<double>(row) * static_cast<double>(columns);
  double best = 0;
  for (auto _ : state) best = std::max(best, bytes / work.run());
  state.SetLabel(std::string(to_string(dtype)));
  state.counters["GB/s"] = best / 1e9;
  state.counters["of_read_rate"] = best / read_rate();
}

/// Argument: index into kTypes.
void many_rows(benchmark::State& state) {
  const DType dtype = kTypes[state.range(0)];
  Work work = product(dtype, kManyRows, kManyColumns);
  double best = 0;
  for (auto _ : state) {
    best = std::max(best, 2.0 * kManyRows * kManyColumns * kDepth / work.run());
  }
  state.SetLabel(std::string(to_string(dtype)));
  state.counters["GOP/s"] = best / 1e9;
}

void types(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseRealTime()->Unit(benchmark::kMillisecond);
  benchmark->ArgName("type")->DenseRange(0, std::size(kTypes) - 1);
}
void types_and_rows(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"type", "rows"})->UseRealTime()->Unit(benchmark::kMillisecond);
  benchmark->ArgsProduct(
      {benchmark::CreateDenseRange(0, static_cast<std::int64_t>(std::size(kTypes)) - 1, 1),
       {1, 8}});
}

BENCHMARK(few_rows)->Apply(types_and_rows);
BENCHMARK(many_rows)->Apply(types);

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (!heddle::why_no_vulkan().empty()) {
    std::fprintf(stderr, "no Vulkan device: %s\n", heddle::why_no_vulkan().c_str());
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
}
