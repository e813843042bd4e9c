// Several element-wise ops as one: a program as data, which devices interpret.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heddle/op_math.h"
#include "heddle/op_move.h"
#include "heddle/tensor.h"

namespace heddle {

/// One op of a program. Its operands are values by number: the inputs, then what earlier steps
/// gave.
struct ElementStep {
  std::variant<Unary, Binary, Compare, Select, Cast> op;
  std::array<std::uint32_t, 3> operands{};  // as many as the op takes, then zeros
  bool operator==(const ElementStep&) const = default;
};
std::size_t operand_count(const ElementStep& step) noexcept;

struct ElementProgram {
  std::uint32_t inputs = 0;
  std::vector<ElementStep> steps;  // at least one; the last one's value is the result
  bool operator==(const ElementProgram&) const = default;
};
std::string to_string(const ElementProgram& program);  // "v2 = exp(v0); v3 = multiply(v2, v1)"

/// inputs of plain dtypes, which broadcast -> the program's result, element by element. Half types
/// may be computed in f32 throughout and rounded at the end only. No step casts to a half type.
struct Fused {
  static constexpr std::string_view kName = "fused";
  std::shared_ptr<const ElementProgram> program;
  bool operator==(const Fused& other) const {
    return program == other.program || (program && other.program && *program == *other.program);
  }
  void fields(auto&& f) const { f("program", program ? to_string(*program) : std::string()); }
};

/// The dtype of each value of a program whose inputs have these. Throws invalid_argument for steps
/// that do not suit their operands or name values that are not there.
std::vector<DType> value_dtypes(const ElementProgram& program, const std::vector<DType>& inputs);

}  // namespace heddle
