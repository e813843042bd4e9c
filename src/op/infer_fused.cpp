#include "heddle/op_fused.h"
#include "op/infer.h"

namespace heddle {

std::size_t operand_count(const ElementStep& step) noexcept {
  if (std::holds_alternative<Select>(step.op)) return 3;
  return std::holds_alternative<Binary>(step.op) || std::holds_alternative<Compare>(step.op) ? 2
                                                                                             : 1;
}

namespace {

Op op_of(const ElementStep& step) {
  return std::visit([](const auto& op) { return Op(op); }, step.op);
}

bool casts_to_half(const ElementStep& step) {
  const auto* cast = std::get_if<Cast>(&step.op);
  return cast && (cast->dtype == DType::f16 || cast->dtype == DType::bf16);
}

}  // namespace

std::string to_string(const ElementProgram& program) {
  std::string text;
  std::uint32_t value = program.inputs;
  for (const ElementStep& step : program.steps) {
    text += fmt::format("{}v{} = {}(", text.empty() ? "" : "; ", value++, to_string(op_of(step)));
    for (std::size_t i = 0; i < operand_count(step); ++i) {
      text += fmt::format("{}v{}", i == 0 ? "" : ", ", step.operands[i]);
    }
    text += ")";
  }
  return text;
}

std::vector<DType> value_dtypes(const ElementProgram& program, const std::vector<DType>& inputs) {
  std::vector<DType> dtypes = inputs;
  for (const ElementStep& step : program.steps) {
    std::vector<TensorSpec> operands;
    for (std::size_t i = 0; i < operand_count(step); ++i) {
      require(step.operands[i] < dtypes.size(), ErrorCode::invalid_argument,
              "fused: a step reads v{}, and there are {} values before it", step.operands[i],
              dtypes.size());
      operands.push_back({dtypes[step.operands[i]], {}});
    }
    require(!casts_to_half(step), ErrorCode::invalid_argument,
            "fused: a step casts to a half type, whose rounding would be lost");
    dtypes.push_back(infer(op_of(step), operands).front().dtype);
  }
  return dtypes;
}

Specs infer_op(const Fused& op, const Operands& in) {
  in.check(op.program && !op.program->steps.empty(), "there is no program");
  in.check(in.size() == op.program->inputs, "its program takes {} inputs, but was given {} ({})",
           op.program->inputs, in.size(), to_string(in.all()));
  in.check(in.size() > 0, "a program without inputs has no shape");
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    in.check_plain(i);
    dtypes.push_back(in[i].dtype);
  }
  return {{value_dtypes(*op.program, dtypes).back(), in.broadcast()}};
}

}  // namespace heddle
