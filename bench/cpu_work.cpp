#include "cpu_work.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>
#include <utility>

#include "heddle/half.h"
#include "tensor/quantize.h"

namespace heddle::bench {

namespace {

/// Values around 1 in size, so that no function of them overflows or is slow for being odd.
std::vector<float> numbers(std::size_t count) {
  std::minstd_rand random(1);
  std::vector<float> values(count);
  for (float& value : values) value = 0.5f + static_cast<float>(random() % 1024) / 1024.0f;
  return values;
}

std::span<const std::byte> bytes_of(const cpu::Operand& operand) {
  return {operand.data, operand.bytes};
}

}  // namespace

cpu::Operand CpuWork::add(std::size_t bytes) {
  memory_.push_back(allocate_host(bytes));
  return {memory_.back()->host(), bytes};
}

/// A piece of numbers in the operand's type, again and again.
void CpuWork::fill(const Input& input, std::byte* memory) {
  const std::size_t size = byte_size(input.spec);
  std::vector<std::byte> piece;
  if (!input.integers.empty()) {
    const auto bytes = std::as_bytes(std::span(input.integers));
    piece.assign(bytes.begin(), bytes.end());
  } else if (is_floating(input.spec.dtype) || is_block(input.spec.dtype)) {
    constexpr std::int64_t kCount = 1 << 16;
    piece.resize(row_bytes(input.spec.dtype, kCount));
    quantize_row(input.spec.dtype, numbers(kCount).data(), piece.data(), kCount);
  } else {
    piece.assign(1, std::byte{1});
  }
  for (std::size_t at = 0; at < size; at += piece.size()) {
    std::memcpy(memory + at, piece.data(), std::min(piece.size(), size - at));
  }
}

OperandSpec CpuWork::packed(const Op& op, std::size_t i, std::span<const TensorSpec> specs) {
  const OperandSpec plain = OperandSpec::contiguous(specs[i]);
  const auto layout = cpu_device().preferred_layout(op, i, specs);
  if (!layout) return plain;
  const OperandSpec target{specs[i], Layout::packed(*layout)};
  const Op repack = Repack{*layout};
  const Prepared prepared = cpu_device().prepare(repack, {&plain, 1}, {&target, 1});
  if (!prepared) return plain;
  const Ref<Buffer> source = std::exchange(memory_[i], allocate_host(span_bytes(target)));
  const cpu::Operand from = inputs_[i], to{memory_[i]->host(), span_bytes(target)};
  const Ref<Buffer> workspace = allocate_host(prepared.kernel->traits().workspace_bytes);
  static_cast<const cpu::CpuKernel&>(*prepared.kernel)
      .run({{&from, 1}, {&to, 1}, workspace->host(), -1, current_team()});
  inputs_[i] = to;
  return target;
}

CpuWork::CpuWork(Op op, const std::vector<Input>& inputs, bool in_place) {
  std::vector<TensorSpec> specs;
  for (const Input& input : inputs) {
    const std::size_t bytes = byte_size(input.spec);
    specs.push_back(input.spec);
    inputs_.push_back(add(bytes));
    fill(input, inputs_.back().data);
  }
  std::vector<OperandSpec> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back(inputs[i].is_weight ? packed(op, i, specs)
                                           : OperandSpec::contiguous(specs[i]));
  }
  const std::vector<OperandSpec> results = output_operands(op, infer(op, specs));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t bytes = span_bytes(results[i]);
    outputs_.push_back(in_place ? inputs_[i] : add(bytes));
    if (!in_place) std::memset(outputs_.back().data, 0, bytes);
  }
  prepared_ = cpu_device().prepare(op, operands, results);
  if (!prepared_) throw std::runtime_error(prepared_.reason);
  workspace_ = allocate_host(prepared_.kernel->traits().workspace_bytes);
}

void CpuWork::run(Team& team) const {
  static_cast<const cpu::CpuKernel&>(*prepared_.kernel)
      .run({inputs_, outputs_, workspace_->host(), -1, team});
}

std::span<const std::byte> CpuWork::input(std::size_t i) const {
  return bytes_of(inputs_[i]);
}

std::span<std::byte> CpuWork::output(std::size_t i) const {
  return {outputs_[i].data, outputs_[i].bytes};
}

std::size_t CpuWork::input_bytes() const {
  std::size_t sum = 0;
  for (const cpu::Operand& operand : inputs_) sum += operand.bytes;
  return sum;
}

std::size_t CpuWork::output_bytes() const {
  std::size_t sum = 0;
  for (const cpu::Operand& operand : outputs_) sum += operand.bytes;
  return sum;
}

}  // namespace heddle::bench
