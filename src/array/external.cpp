#include "array/external.h"

#include <cstdint>
#include <utility>

#include "array/launch.h"
#include "base/check.h"
#include "heddle/device.h"
#include "heddle/dlpack.h"
#include "tensor/format.h"

namespace heddle {

namespace {

View strided_view(const Array& array) {
  View view = array.view();
  require(view.layout().kind == LayoutKind::strided, ErrorCode::invalid_argument,
          "{} is packed; make it contiguous first", view.operand);
  return view;
}

}  // namespace

std::size_t alignment_of(DType dtype) noexcept {
  if (is_block(dtype)) return alignof(f16);  // of their scales
  if (dtype == DType::complex64) return alignof(float);
  return static_cast<std::size_t>(info(dtype).block_bytes);
}

Array array_over(const std::byte* first, OperandSpec operand, std::shared_ptr<const void> owner) {
  const DTypeInfo& type = info(operand.spec.dtype);
  const std::size_t alignment = alignment_of(operand.spec.dtype);
  const std::size_t span = span_bytes(operand);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  require(span == 0 || first != nullptr, ErrorCode::invalid_argument,
          "{} has no memory: the pointer is null", operand.spec);
  require(span == 0 || address % alignment == 0, ErrorCode::invalid_argument,
          "{} lies at {:#x}, which is no multiple of {} bytes", operand.spec, address, alignment);
  const auto elements_before = static_cast<std::uintptr_t>(first_element(operand));
  const std::uintptr_t before = elements_before / static_cast<std::uintptr_t>(type.block_elements) *
                                static_cast<std::uintptr_t>(type.block_bytes);
  const bool wraps = before > address || span > UINTPTR_MAX - (address - before);
  require(span == 0 || !wraps, ErrorCode::invalid_argument,
          "the strides of {} lead out of memory from {:#x}", operand, address);
  // Import takes memory that may be written; constants never are.
  auto* lowest = span == 0 ? nullptr : reinterpret_cast<std::byte*>(address - before);
  Ref<Buffer> buffer = cpu_device().import_host({lowest, span}, std::move(owner));
  return Array::from_view({std::move(buffer), 0, std::move(operand)});
}

View host_view(const Array& array) {
  View view = strided_view(array);
  if (&view.buffer->device() != &cpu_device()) return row_major_view(array);
  view.buffer->wait_for_writes();
  return view;
}

View row_major_view(const Array& array) {
  const View view = strided_view(array);
  Launcher launcher;
  return launcher.read_on_host(view);
}

Array from_memory(void* data, const Shape& shape, DType dtype, std::function<void(void*)> deleter) {
  // Filled when nothing can fail any more: until then the memory is the caller's.
  struct Holder {
    std::function<void(void*)> deleter;
    void* data = nullptr;
    ~Holder() {
      if (deleter) deleter(data);
    }
  };
  require(!is_block(dtype), ErrorCode::invalid_argument,
          "from_memory: {} is a block type; arrays over memory are of plain types", dtype);
  const auto holder = std::make_shared<Holder>();
  try {
    Array array = array_over(static_cast<const std::byte*>(data),
                             OperandSpec::contiguous({dtype, shape}), holder);
    holder->data = data;
    holder->deleter = std::move(deleter);
    return array;
  } catch (const Error& error) {
    fail(error.code(), "from_memory: {}", error.what());
  }
}

}  // namespace heddle
