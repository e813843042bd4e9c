// An op on the CPU with operands of its own, in memory that the device gives programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/team.h"
#include "device/cpu/kernel.h"
#include "heddle/buffer.h"

namespace heddle::bench {

struct Input {
  TensorSpec spec;
  std::vector<std::int32_t> integers;  // what it holds; empty: numbers about 1
  bool is_weight = false;              // packed as the op likes best, as at load
};

class CpuWork {
 public:
  /// `in_place`: outputs are the first inputs, in order. Throws std::runtime_error with the reason
  /// where there is no kernel.
  CpuWork(Op op, const std::vector<Input>& inputs, bool in_place = false);

  void run(Team& team) const;
  std::span<const std::byte> input(std::size_t i) const;
  std::span<std::byte> output(std::size_t i) const;
  std::size_t input_bytes() const;
  std::size_t output_bytes() const;

 private:
  cpu::Operand add(std::size_t bytes);
  static void fill(const Input& input, std::byte* memory);
  /// The operand in the layout that the op prefers for it.
  OperandSpec packed(const Op& op, std::size_t i, std::span<const TensorSpec> specs);

  std::vector<Ref<Buffer>> memory_;
  std::vector<cpu::Operand> inputs_, outputs_;
  Prepared prepared_;
  Ref<Buffer> workspace_;
};

}  // namespace heddle::bench
