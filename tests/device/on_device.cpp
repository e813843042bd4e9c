#include "device/on_device.h"

#include <ostream>

namespace heddle::test {

namespace {

const Subject* current = nullptr;

}  // namespace

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.name;
}

std::string test_name(const testing::TestParamInfo<Subject>& info) {
  return info.param.name;
}

void OnDevice::SetUp() {
  if (!GetParam().find())
    GTEST_SKIP() << "no device " << GetParam().name << " here: " << why_no_vulkan();
  current = &GetParam();
}
void OnDevice::TearDown() {
  current = nullptr;
}

const Subject& subject() {
  return *current;
}
Device& device() {
  return *subject().find();
}
bool on_cpu() {
  return &device() == &cpu_device();
}

bool is_left_out(const Op& op, const std::vector<Tensor>& inputs) {
  if (!subject().may_refuse || !subject().may_refuse(op, inputs)) return false;
  std::vector<OperandSpec> operands;
  std::vector<TensorSpec> specs;
  for (const Tensor& input : inputs) {
    operands.push_back(input.operand);
    specs.push_back(input.operand.spec);
  }
  return !device().prepare(op, operands, output_operands(op, infer(op, specs)));
}

void expect_on_device(const Op& op, const std::vector<Tensor>& inputs, Tolerance tolerance) {
  if (is_left_out(op, inputs)) return;
  // What is rounded once is rounded alike everywhere.
  if (tolerance.ulps > 1) tolerance.ulps *= subject().leeway;
  expect_conformance(device(), op, inputs, tolerance);
}

void expect_rows_alone_on_device(const Op& op, const std::vector<Tensor>& inputs) {
  if (!is_left_out(op, inputs)) expect_rows_alone(device(), op, inputs);
}

void expect_failure_on_device(const Op& op, const std::vector<Tensor>& inputs, ErrorCode code,
                              const std::vector<std::string>& words) {
  if (is_left_out(op, inputs)) return;
  try {
    const Ran ran = run_op(device(), op, inputs);
    ADD_FAILURE() << to_string(op) << ": nothing was thrown, refused: " << ran.refused;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    const std::string text = error.what();
    const std::vector<std::string> wanted = on_cpu() ? words : std::vector{std::string(name(op))};
    for (const std::string& word : wanted) {
      EXPECT_NE(text.find(word), std::string::npos) << text;
    }
  }
}

}  // namespace heddle::test
