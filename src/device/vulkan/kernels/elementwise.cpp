// unary, binary, compare, select and gated_multiply.
#include "base/check.h"
#include "device/strides.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

/// Numbers that a shader of so many inputs has room for, besides them, the output and the extent.
constexpr std::size_t kUnaryNumbers = 15, kBinaryNumbers = 14, kSelectNumbers = 11;
/// Shaders know the kinds by number, up to this one.
constexpr UnaryKind kLastUnary = UnaryKind::isfinite;
constexpr std::uint32_t kFirstComparison = static_cast<std::uint32_t>(BinaryKind::right_shift) + 1;

/// Aliases of the output over each input that holds as many bytes, contiguously.
void allow_in_place(KernelTraits& traits, const PrepareArgs& args) {
  const TensorSpec& output = args.outputs[0].spec;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const TensorSpec& spec = args.inputs[i].spec;
    if (is_contiguous(args.inputs[i]) && spec.shape == output.shape &&
        item_size(spec.dtype) == item_size(output.dtype)) {
      traits.aliases.push_back({0, i, false});
    }
  }
}

/// The shader over all elements of the output, with constants after the rank.
template <std::size_t kNumbers>
Prepared over_elements(const PrepareArgs& args, std::string_view shader,
                       std::initializer_list<std::uint32_t> constants) {
  const TensorSpec& output = args.outputs[0].spec;
  std::vector<Dims> strides;
  for (const OperandSpec& input : args.inputs) {
    strides.push_back(broadcast_strides(input, output.shape));
  }
  const Walk walk = make_walk(name(args.op), output.shape, strides, kNumbers);
  if (!walk.refusal.empty()) return refuse(walk.refusal);

  KernelMaker maker(args);
  maker.traits.honours_extent = !output.shape.empty();
  allow_in_place(maker.traits, args);
  if (walk.count() == 0) return maker.finish();
  KernelMaker::Launch launch{shader, walk_group(args.limits), {walk.rank()}};
  launch.constants.insert(launch.constants.end(), constants);
  launch.grid = grid_of(walk, maker.traits.honours_extent, args.limits);
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    launch.operands.push_back(input(i, walk.first[i] * item_size(args.inputs[i].spec.dtype)));
  }
  launch.operands.push_back(heddle::vulkan::output(0));
  launch.operands.push_back(maker.traits.honours_extent ? extent() : nothing());
  maker.dispatch(std::move(launch), walk_params<kNumbers>(walk));
  return maker.finish();
}

/// The form of the shader `family` that computes on the dtype: family_float, _integer or _f64.
template <std::size_t kNumbers>
Prepared in_form(const PrepareArgs& args, std::string_view family, std::uint32_t kind) {
  const DType dtype = args.inputs[0].spec.dtype;
  const auto over = [&](std::string_view form) {
    return over_elements<kNumbers>(args, fmt::format("{}_{}", family, form),
                                   {kind, static_cast<std::uint32_t>(dtype)});
  };
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) return over("float");
  if (dtype != DType::f64 && dtype != DType::complex64) return over("integer");
  if (dtype == DType::f64 && args.limits.float64) return over("f64");
  return refuse(fmt::format("{} of {}", name(args.op), to_string(dtype)));
}

Prepared prepare_gated(const PrepareArgs& args, UnaryKind activation) {
  switch (activation) {
    case UnaryKind::silu:
    case UnaryKind::gelu:
    case UnaryKind::gelu_tanh:
    case UnaryKind::relu:
      break;
    default:
      return refuse(fmt::format("gated_multiply: no activation {}", to_string(activation)));
  }
  const DType dtype = args.inputs[0].spec.dtype;
  const bool doubles = dtype == DType::f64;
  if (dtype == DType::complex64 || (doubles && !args.limits.float64)) {
    return refuse(fmt::format("gated_multiply of {}", to_string(dtype)));
  }
  return over_elements<kBinaryNumbers>(
      args, doubles ? "gated_f64" : "gated",
      {static_cast<std::uint32_t>(activation), static_cast<std::uint32_t>(dtype)});
}

}  // namespace

Prepared prepare_elementwise(const PrepareArgs& args) {
  if (std::string packed = packed_refusal(args); !packed.empty()) return refuse(std::move(packed));
  for (const OperandSpec& input : args.inputs) {
    if (!is_block(input.spec.dtype)) continue;
    return refuse(fmt::format("{}: operands must be of a plain dtype, one is {}", name(args.op),
                              to_string(input)));
  }
  std::string narrow = narrow_refusal(args, args.outputs[0].spec.dtype);
  if (!narrow.empty()) return refuse(std::move(narrow));
  if (const auto* op = std::get_if<Unary>(&args.op)) {
    if (op->kind > kLastUnary) return refuse(fmt::format("no shader for {}", name(args.op)));
    return in_form<kUnaryNumbers>(args, "unary", static_cast<std::uint32_t>(op->kind));
  }
  if (const auto* op = std::get_if<Binary>(&args.op)) {
    return in_form<kBinaryNumbers>(args, "binary", static_cast<std::uint32_t>(op->kind));
  }
  if (const auto* op = std::get_if<Compare>(&args.op)) {
    return in_form<kBinaryNumbers>(args, "binary",
                                   kFirstComparison + static_cast<std::uint32_t>(op->kind));
  }
  if (const auto* op = std::get_if<GatedMultiply>(&args.op)) {
    return prepare_gated(args, op->activation);
  }
  const auto bytes = static_cast<std::uint32_t>(item_size(args.outputs[0].spec.dtype));
  return over_elements<kSelectNumbers>(args, "select", {bytes});
}

}  // namespace heddle::vulkan
