#include "heddle/dlpack.h"

#include <memory>
#include <optional>
#include <utility>

#include "array/external.h"
#include "array/ops_common.h"

namespace heddle {

namespace {

using namespace dlpack;

constexpr std::uint8_t kByte = 8;  // bits

std::optional<TypeCode> code_of(DType dtype) noexcept {
  if (dtype == DType::bf16) return kBfloat;
  switch (info(dtype).kind) {
    case DTypeKind::boolean:
      return kBool;
    case DTypeKind::unsigned_int:
      return kUnsigned;
    case DTypeKind::signed_int:
      return kInt;
    case DTypeKind::floating:
      return kFloat;
    case DTypeKind::complex:
      return kComplex;
    case DTypeKind::block:
      break;
  }
  return std::nullopt;
}

DType dtype_of_tensor(const DataType& type) {
  if (type.lanes == 1) {
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (code_of(dtype) == type.code && item_size(dtype) * kByte == type.bits) return dtype;
    }
  }
  fail(ErrorCode::unsupported, "a type of code {}, {} bits and {} lanes; heddle has none such",
       int{type.code}, int{type.bits}, type.lanes);
}

OperandSpec operand_of(const Tensor& tensor) {
  require(tensor.ndim >= 0 && tensor.ndim <= kMaxRank, ErrorCode::invalid_argument,
          "{} dimensions; there can be 0 to {}", tensor.ndim, kMaxRank);
  require(tensor.ndim == 0 || tensor.shape != nullptr, ErrorCode::invalid_argument,
          "{} dimensions and no shape", tensor.ndim);
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  TensorSpec spec{dtype_of_tensor(tensor.dtype), Shape(std::span(tensor.shape, rank))};
  (void)byte_size(spec);  // refuses negative extents and what overflows
  OperandSpec operand = OperandSpec::contiguous(std::move(spec));
  if (tensor.strides) operand.layout.strides = Dims(std::span(tensor.strides, rank));
  return operand;
}

/// Calls the deleter once it has been given the tensor.
template <class Managed>
struct Holder {
  Managed* managed = nullptr;
  ~Holder() {
    if (managed && managed->deleter) managed->deleter(managed);
  }
};

template <class Managed>
Array take_over(Managed* managed) {
  const Tensor& tensor = managed->tensor;
  require(tensor.device.type == kDeviceCpu, ErrorCode::unsupported,
          "a tensor on a device of type {}; only the cpu, type {}, can be read", tensor.device.type,
          kDeviceCpu);
  OperandSpec operand = operand_of(tensor);
  auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  const bool wraps = __builtin_add_overflow(address, tensor.byte_offset, &address);
  require(!wraps, ErrorCode::invalid_argument, "an offset of {} bytes leads out of memory",
          tensor.byte_offset);
  const auto* first = tensor.data ? reinterpret_cast<const std::byte*>(address) : nullptr;
  const auto holder = std::make_shared<Holder<Managed>>();
  Array array = array_over(first, std::move(operand), holder);
  holder->managed = managed;
  return array;
}

/// What an exported tensor keeps: the memory, and its shape and strides.
template <class Managed>
struct Exported {
  Managed managed{};
  View view;
  Dims shape, strides;
};

template <class Managed>
std::unique_ptr<Exported<Managed>> export_array(const Array& array) {
  const std::optional<TypeCode> code = code_of(array.dtype());
  require(code.has_value(), ErrorCode::invalid_argument,
          "{} is of a block type, which DLPack lacks; dequantize it first", array.spec());
  auto exported = std::make_unique<Exported<Managed>>();
  exported->view = host_view(array);
  const OperandSpec& operand = exported->view.operand;
  exported->shape = operand.spec.shape;
  exported->strides = operand.layout.strides;
  const std::size_t item = item_size(array.dtype());
  std::byte* first = nullptr;
  if (array.size() > 0) {
    first = exported->view.host() + first_element(operand) * static_cast<std::ptrdiff_t>(item);
  }
  exported->managed.tensor = {.data = first,
                              .device = {kDeviceCpu, 0},
                              .ndim = static_cast<std::int32_t>(exported->shape.size()),
                              .dtype = {*code, static_cast<std::uint8_t>(item * kByte), 1},
                              .shape = exported->shape.begin(),
                              .strides = exported->strides.begin(),
                              .byte_offset = 0};
  exported->managed.manager = exported.get();
  exported->managed.deleter = [](Managed* self) {
    delete static_cast<Exported<Managed>*>(self->manager);
  };
  return exported;
}

}  // namespace

Array from_dlpack(ManagedTensor* tensor) {
  return within("from_dlpack", [&] {
    require(tensor != nullptr, ErrorCode::invalid_argument, "there is no tensor");
    return take_over(tensor);
  });
}

Array from_dlpack(ManagedTensorVersioned* tensor) {
  return within("from_dlpack", [&] {
    require(tensor != nullptr, ErrorCode::invalid_argument, "there is no tensor");
    require(tensor->major == kMajorVersion, ErrorCode::unsupported,
            "a tensor of DLPack {}.{}; versions {}.x are known", tensor->major, tensor->minor,
            kMajorVersion);
    return take_over(tensor);
  });
}

ManagedTensor* to_dlpack(const Array& array) {
  return within("to_dlpack",
                [&] { return &export_array<ManagedTensor>(array).release()->managed; });
}

ManagedTensorVersioned* to_dlpack_versioned(const Array& array) {
  return within("to_dlpack_versioned", [&] {
    ManagedTensorVersioned* managed =
        &export_array<ManagedTensorVersioned>(array).release()->managed;
    managed->major = kMajorVersion;
    managed->minor = kMinorVersion;
    managed->flags = kReadOnly;
    return managed;
  });
}

}  // namespace heddle
