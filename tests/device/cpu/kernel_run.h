// Runs CPU kernels on tensors in vectors, for tests of the product and attention families.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/team.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernel.h"
#include "heddle/half.h"

namespace heddle::cpu {

/// Memory is exactly as large as the operand's span, so that a sanitizer sees what lies beyond.
struct HostTensor {
  OperandSpec operand;
  std::vector<std::byte> bytes;

  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
};

inline HostTensor make_tensor(OperandSpec operand) {
  const std::size_t size = span_bytes(operand);
  return {std::move(operand), std::vector<std::byte>(size)};
}
inline HostTensor make_tensor(DType dtype, const Shape& shape) {
  return make_tensor(OperandSpec::contiguous({dtype, shape}));
}

inline void set_element(HostTensor& t, std::size_t i, double value) {
  switch (t.operand.spec.dtype) {
    case DType::f64:
      t.as<double>()[i] = value;
      break;
    case DType::f32:
      t.as<float>()[i] = static_cast<float>(value);
      break;
    case DType::f16:
      t.as<f16>()[i] = f16(static_cast<float>(value));
      break;
    case DType::bf16:
      t.as<bf16>()[i] = bf16(static_cast<float>(value));
      break;
    case DType::i32:
      t.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
      break;
    case DType::bool_:
      t.as<std::uint8_t>()[i] = value != 0;
      break;
    default:
      FAIL() << "set_element: unexpected dtype";
  }
}

/// The element `i` elements from the start.
inline double element(const HostTensor& t, std::size_t i) {
  const auto* data = t.bytes.data();
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    return value;
  };
  switch (t.operand.spec.dtype) {
    case DType::f64:
      return read(0.0);
    case DType::f32:
      return static_cast<double>(read(0.0f));
    case DType::f16:
      return static_cast<double>(static_cast<float>(read(f16())));
    case DType::bf16:
      return static_cast<double>(static_cast<float>(read(bf16())));
    case DType::i32:
      return read(std::int32_t{0});
    case DType::bool_:
      return read(std::uint8_t{0});
    default:
      ADD_FAILURE() << "element: unexpected dtype";
      return 0;
  }
}

inline HostTensor random_tensor(OperandSpec operand, std::uint32_t seed) {
  HostTensor t = make_tensor(std::move(operand));
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  const std::size_t count = t.bytes.size() / item_size(t.operand.spec.dtype);
  for (std::size_t i = 0; i < count; ++i) set_element(t, i, normal(generator));
  return t;
}
inline HostTensor random_tensor(DType dtype, const Shape& shape, std::uint32_t seed) {
  return random_tensor(OperandSpec::contiguous({dtype, shape}), seed);
}
inline HostTensor int_tensor(const Shape& shape, const std::vector<std::int32_t>& values) {
  HostTensor t = make_tensor(DType::i32, shape);
  std::copy(values.begin(), values.end(), t.as<std::int32_t>());
  return t;
}

using PrepareFamily = Prepared (*)(const PrepareArgs&);

inline Prepared prepare(PrepareFamily family, const Op& op, const std::vector<HostTensor>& inputs) {
  std::vector<OperandSpec> operands;
  std::vector<TensorSpec> specs;
  for (const HostTensor& input : inputs) {
    operands.push_back(input.operand);
    specs.push_back(input.operand.spec);
  }
  const std::vector<OperandSpec> outputs = output_operands(op, infer(op, specs));
  return family({op, operands, outputs});
}

struct RunOptions {
  int threads = 1;
  std::int64_t extent = -1;
};

inline constexpr std::byte kUntouched{0xa5};

/// The outputs, of which what the kernel did not write is kUntouched.
inline std::vector<HostTensor> run_kernel(PrepareFamily family, const Op& op,
                                          std::vector<HostTensor> inputs, RunOptions options = {}) {
  const Prepared prepared = prepare(family, op, inputs);
  if (!prepared) throw std::runtime_error("refused: " + prepared.reason);
  std::vector<TensorSpec> specs;
  for (const HostTensor& input : inputs) specs.push_back(input.operand.spec);
  std::vector<HostTensor> outputs;
  for (OperandSpec& operand : output_operands(op, infer(op, specs))) {
    outputs.push_back(make_tensor(std::move(operand)));
    std::fill(outputs.back().bytes.begin(), outputs.back().bytes.end(), kUntouched);
  }
  const auto operands = [](std::vector<HostTensor>& tensors) {
    std::vector<Operand> result;
    for (HostTensor& t : tensors) result.push_back({t.bytes.data(), t.bytes.size()});
    return result;
  };
  const std::vector<Operand> in = operands(inputs), out = operands(outputs);
  Team team(options.threads);
  constexpr std::size_t kAlign = 64;
  std::vector<std::byte> workspace(prepared.kernel->traits().workspace_bytes + kAlign);
  const auto address = reinterpret_cast<std::uintptr_t>(workspace.data());
  static_cast<const CpuKernel&>(*prepared.kernel)
      .run(
          {in, out, workspace.data() + (kAlign - address % kAlign) % kAlign, options.extent, team});
  return outputs;
}

/// Whether `count` bytes from `at` on are the same in both.
inline bool same_bytes(const HostTensor& a, std::size_t a_at, const HostTensor& b, std::size_t b_at,
                       std::size_t count) {
  return a_at + count <= a.bytes.size() && b_at + count <= b.bytes.size() &&
         std::memcmp(a.bytes.data() + a_at, b.bytes.data() + b_at, count) == 0;
}

/// The levels that this processor has, up to the one that HEDDLE_CPU allows.
inline std::vector<Isa> levels() {
  std::vector<Isa> result;
  for (const Isa level : processor_levels()) {
    result.push_back(level);
    if (level == isa()) break;
  }
  return result;
}

}  // namespace heddle::cpu
