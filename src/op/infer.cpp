#include "op/infer.h"

namespace heddle {

namespace {

unsigned kind_of(DType dtype) {
  switch (info(dtype).kind) {
    case DTypeKind::boolean:
      return kBool;
    case DTypeKind::unsigned_int:
    case DTypeKind::signed_int:
      return kInteger;
    case DTypeKind::floating:
      return kFloat;
    case DTypeKind::complex:
      return kComplex;
    case DTypeKind::block:
      return 0;
  }
  return 0;
}

std::string describe(unsigned kinds) {
  std::string text;
  const auto add = [&](unsigned kind, const char* word) {
    if (!(kinds & kind)) return;
    if (!text.empty()) text += " or ";
    text += word;
  };
  add(kBool, "bool");
  add(kInteger, "integer");
  add(kFloat, "floating");
  add(kComplex, "complex");
  return text;
}

}  // namespace

std::string to_string(std::span<const TensorSpec> specs) {
  std::string text;
  for (const TensorSpec& spec : specs) {
    if (!text.empty()) text += ", ";
    text += to_string(spec);
  }
  return text;
}

void Operands::check_count(std::size_t count, std::string_view what) const {
  if (size() == count) return;
  check(false, "takes {} input{} ({}), but was given {} ({})", count, count == 1 ? "" : "s",
        what.empty() ? "none" : what, size(), to_string(inputs_));
}

void Operands::check_rank(std::size_t i, std::size_t rank, std::string_view what) const {
  check(inputs_[i].shape.size() == rank, "{} is {}; it must have {} dimensions", what, inputs_[i],
        rank);
}

void Operands::check_min_rank(std::size_t i, std::size_t rank, std::string_view what) const {
  check(inputs_[i].shape.size() >= rank, "{} is {}; it must have at least {} dimension{}", what,
        inputs_[i], rank, rank == 1 ? "" : "s");
}

void Operands::check_plain(std::size_t i) const {
  check(!is_block(inputs_[i].dtype), "{} is of a block type; cast it to a plain type first",
        inputs_[i]);
}

void Operands::check_kind(std::size_t i, unsigned kinds) const {
  check_plain(i);
  if (kind_of(inputs_[i].dtype) & kinds) return;
  check(false, "is not defined for {}; its dtype must be {}", inputs_[i], describe(kinds));
}

void Operands::check_axis(std::size_t i, std::int64_t axis) const {
  const std::size_t rank = inputs_[i].shape.size();
  check(axis >= 0 && axis < static_cast<std::int64_t>(rank), "axis {} is outside [0, {}) of {}",
        axis, rank, inputs_[i]);
}

void Operands::check_floating(std::size_t i, std::string_view what) const {
  check(is_floating(inputs_[i].dtype), "{} is {}; it must be f16, bf16, f32 or f64", what,
        inputs_[i]);
}

void Operands::check_spec(std::size_t i, const TensorSpec& wanted, std::string_view what) const {
  check(inputs_[i] == wanted, "{} is {}; it must be {}", what, inputs_[i], wanted);
}

void Operands::check_vector(std::size_t i, std::int64_t extent, DType dtype,
                            std::string_view what) const {
  const TensorSpec& spec = inputs_[i];
  check(spec.shape == Shape{extent} && (spec.dtype == dtype || spec.dtype == DType::f32),
        "{} is {}; it must be {}{}", what, spec, TensorSpec{dtype, {extent}},
        dtype == DType::f32 ? "" : " or as much in f32");
}

Shape Operands::broadcast() const {
  Shape shape = inputs_[0].shape;
  for (std::size_t i = 1; i < size(); ++i) {
    try {
      shape = broadcast_shapes(shape, inputs_[i].shape);
    } catch (const Error&) {
      std::string all = to_string(inputs_.first(i));
      check(false, "shapes {} and {} do not broadcast", all, inputs_[i]);
    }
  }
  return shape;
}

void Operands::check_one_dtype(std::size_t first) const {
  for (std::size_t i = first; i < size(); ++i) {
    check(inputs_[i].dtype == inputs_[first].dtype, "{} and {} differ in dtype", inputs_[first],
          inputs_[i]);
  }
}

Specs infer_specs(const Op& op, std::span<const TensorSpec> inputs) {
  const std::string_view op_name = name(op);
  try {
    const Operands operands(op_name, inputs);
    Specs outputs = std::visit([&](const auto& o) { return infer_op(o, operands); }, op);
    for (const TensorSpec& output : outputs) byte_size(output);  // refuses what overflows
    return outputs;
  } catch (const Error& error) {
    // Checks of shapes know no ops.
    const std::string message = error.what();
    if (message.starts_with(fmt::format("{}: ", op_name))) throw;
    fail(error.code(), "{}: {}", op_name, message);
  }
}

std::vector<TensorSpec> infer(const Op& op, std::span<const TensorSpec> inputs) {
  const Specs specs = infer_specs(op, inputs);
  return {specs.begin(), specs.end()};
}

}  // namespace heddle
