// Element-wise kernels on buffers much larger than caches, as a share of the rate at which the same
// threads copy the same buffers: the median of alternating pairs (kernel, copy, kernel, copy, ...).
// Bytes count as read plus written for both. Arguments: a part of the names of the cases to run,
// MiB a buffer (64), pairs (9).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/team.h"
#include "device/cpu/kernel.h"
#include "heddle/half.h"

namespace heddle::cpu {
namespace {

struct Case {
  std::string name;
  Op op;
  std::vector<TensorSpec> inputs;
  bool in_place = false;  // the output over the first input
};

struct Freed {
  void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
};
using Memory = std::unique_ptr<std::byte, Freed>;

/// A buffer of values around 1, so that no function of them overflows or is slow for being odd.
Memory filled(const TensorSpec& spec, std::size_t room) {
  Memory memory(static_cast<std::byte*>(::operator new (room, std::align_val_t{64})));
  std::memset(memory.get(), 0, room);
  const auto count = static_cast<std::size_t>(elements(spec.shape));
  std::minstd_rand random(1);
  for (std::size_t i = 0; i < count; ++i) {
    const float value = 0.5f + static_cast<float>(random() % 1024) / 1024.0f;
    switch (spec.dtype) {
      case DType::f32:
        reinterpret_cast<float*>(memory.get())[i] = value;
        break;
      case DType::f16:
        reinterpret_cast<f16*>(memory.get())[i] = f16(value);
        break;
      case DType::bf16:
        reinterpret_cast<bf16*>(memory.get())[i] = bf16(value);
        break;
      case DType::i32:
        reinterpret_cast<std::int32_t*>(memory.get())[i] = static_cast<std::int32_t>(random());
        break;
      default:
        memory.get()[i] = static_cast<std::byte>(random() % 2);
    }
  }
  return memory;
}

double seconds_of(const auto& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// A plain copy, each thread its part at once.
void copy(Team& team, const std::byte* from, std::byte* to, std::size_t bytes) {
  const auto part = static_cast<std::int64_t>(bytes) / team.size() + 64;
  team.parallel_for(static_cast<std::int64_t>(bytes), part,
                    [&](std::int64_t begin, std::int64_t end) {
                      std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
                    });
}

void run(const Case& c, int threads, int pairs) {
  std::vector<OperandSpec> inputs;
  for (const TensorSpec& spec : c.inputs) inputs.push_back(OperandSpec::contiguous(spec));
  const TensorSpec result = infer(c.op, c.inputs).front();
  const OperandSpec output = OperandSpec::contiguous(result);
  const PrepareArgs args{c.op, inputs, {&output, 1}};
  const Prepared prepared =
      std::holds_alternative<Cast>(c.op) ? prepare_cast(args) : prepare_elementwise(args);
  if (!prepared) throw std::runtime_error(prepared.reason);

  std::size_t bytes = byte_size(result), largest = bytes;
  std::vector<Memory> memory;
  std::vector<Operand> operands;
  for (const TensorSpec& spec : c.inputs) {
    bytes += byte_size(spec);
    largest = std::max(largest, byte_size(spec));
    memory.push_back(filled(spec, byte_size(spec)));
    operands.push_back({memory.back().get(), byte_size(spec)});
  }
  memory.push_back(filled(result, largest));
  std::byte* const target = memory.back().get();
  const Operand out{c.in_place ? operands[0].data : target, byte_size(result)};
  std::size_t big = 0;  // copied: an input that is as large as any
  while (operands[big].bytes < largest && big + 1 < operands.size()) ++big;
  const std::size_t copied = std::min(operands[big].bytes, largest);

  Team team(threads);
  const Team::Session session(team);
  const auto kernel = [&] {
    static_cast<const CpuKernel&>(*prepared.kernel).run({operands, {&out, 1}, nullptr, -1, team});
  };
  kernel();
  copy(team, operands[big].data, target, copied);
  std::vector<double> ratios, rates;
  for (int i = 0; i < pairs; ++i) {
    const double rate = static_cast<double>(bytes) / seconds_of(kernel);
    const double copy_rate = 2 * static_cast<double>(copied) /
                             seconds_of([&] { copy(team, operands[big].data, target, copied); });
    rates.push_back(rate);
    ratios.push_back(rate / copy_rate);
  }
  std::printf("%-34s %d thread%s %7.1f GB/s %6.2f of a copy\n", c.name.c_str(), threads,
              threads > 1 ? "s" : " ", median(rates) / 1e9, median(ratios));
  std::fflush(stdout);
}

std::vector<Case> cases(std::int64_t buffer_bytes) {
  const std::pair<const char*, UnaryKind> unary[] = {{"abs", UnaryKind::abs},
                                                     {"negative", UnaryKind::negative},
                                                     {"sqrt", UnaryKind::sqrt},
                                                     {"exp", UnaryKind::exp},
                                                     {"silu", UnaryKind::silu}};
  const std::pair<const char*, BinaryKind> binary[] = {{"add", BinaryKind::add},
                                                       {"multiply", BinaryKind::multiply},
                                                       {"maximum", BinaryKind::maximum}};
  std::vector<Case> all;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
    const std::string type(to_string(dtype));
    const TensorSpec big{dtype, {buffer_bytes / static_cast<std::int64_t>(item_size(dtype))}};
    const TensorSpec one{dtype, {}}, flags{DType::bool_, big.shape};
    const auto both = [&](const std::string& name, Op op, std::vector<TensorSpec> inputs) {
      all.push_back({name + " " + type, op, inputs, false});
      all.push_back({name + " " + type + " in place", op, inputs, true});
    };
    for (const auto& [name, kind] : unary) {
      if (dtype == DType::i32 && kind != UnaryKind::abs && kind != UnaryKind::negative) continue;
      both(name, Unary{kind}, {big});
    }
    for (const auto& [name, kind] : binary) both(name, Binary{kind}, {big, big});
    both("add scalar", Binary{BinaryKind::add}, {big, one});
    all.push_back({"less " + type, Compare{CompareKind::less}, {big, big}});
    all.push_back({"select " + type, Select{}, {flags, big, big}});
  }
  const TensorSpec floats{DType::f32, {buffer_bytes / 4}};
  for (const DType half : {DType::f16, DType::bf16}) {
    const std::string type(to_string(half));
    all.push_back({"cast f32 to " + type, Cast{half}, {floats}});
    all.push_back({"cast " + type + " to f32", Cast{DType::f32}, {{half, floats.shape}}});
  }
  return all;
}

}  // namespace
}  // namespace heddle::cpu

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  const std::int64_t mib = argc > 2 ? std::atoll(argv[2]) : 64;
  const int pairs = argc > 3 ? std::atoi(argv[3]) : 9;
  for (const int threads : {1, 2}) {
    for (const auto& c : heddle::cpu::cases(mib << 20)) {
      if (c.name.find(part) != std::string::npos) heddle::cpu::run(c, threads, pairs);
    }
  }
}
