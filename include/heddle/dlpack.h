// Arrays exchanged without a copy: over a caller's memory, and through DLPack.
//
// DLPack: https://github.com/dmlc/dlpack, include/dlpack/dlpack.h of version 1.1. Its structs are
// declared here under names of heddle's own, with the same layout, so that no other header is
// needed and any may be used beside this one: cast pointers, as
//   heddle::from_dlpack(reinterpret_cast<heddle::dlpack::ManagedTensorVersioned*>(theirs)).
// Memory is the host's: tensors on other devices are refused with ErrorCode::unsupported.
#pragma once

#include <cstdint>
#include <functional>

#include "heddle/array.h"

namespace heddle {

/// A row-major array over `data`, which the caller keeps as it is until `deleter(data)` is called:
/// once, on any thread, when no array and no work in flight reads it any more. heddle never writes
/// there, in place of other arrays included. `deleter` may be empty and must not throw. Throws
/// invalid_argument, without taking the memory, when `data` is null though there are elements, is
/// not aligned to the dtype, or the dtype is a block type.
Array from_memory(void* data, const Shape& shape, DType dtype, std::function<void(void*)> deleter);

namespace dlpack {

inline constexpr std::uint32_t kMajorVersion = 1, kMinorVersion = 1;

/// DLDeviceType, as far as heddle knows it.
inline constexpr std::int32_t kDeviceCpu = 1;

/// DLDevice
struct DeviceId {
  std::int32_t type, index;
};

/// DLDataTypeCode, as far as heddle knows it.
enum TypeCode : std::uint8_t {
  kInt = 0,
  kUnsigned = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
};

/// DLDataType
struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

/// DLTensor: `strides` are in elements, and null for row-major; the first element is `byte_offset`
/// bytes from `data`.
struct Tensor {
  void* data;
  DeviceId device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

/// DLManagedTensor: whoever takes it calls `deleter(self)` once, unless that is null.
struct ManagedTensor {
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor* self);
};

inline constexpr std::uint64_t kReadOnly = 1;  // DLPACK_FLAG_BITMASK_READ_ONLY

/// DLManagedTensorVersioned
struct ManagedTensorVersioned {
  std::uint32_t major, minor;
  void* manager;
  void (*deleter)(ManagedTensorVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace dlpack

/// An array over the tensor's memory, strides of either sign and overlapping elements included. It
/// takes the tensor: its deleter is called once, on any thread, when nothing reads the memory any
/// more. heddle never writes there. Where it throws, the tensor is still the caller's; for a major
/// version that is not known, all the caller may do is to call the deleter.
Array from_dlpack(dlpack::ManagedTensor* tensor);
Array from_dlpack(dlpack::ManagedTensorVersioned* tensor);

/// The array's memory, evaluated, for whoever takes the result and calls its deleter, once, on any
/// thread. The memory must not be written (the versioned form says so): other arrays may share it.
/// It stays as it is until then. What is on another device is copied to the host first. Throws
/// invalid_argument for block types, and the error of the array if it has failed.
dlpack::ManagedTensor* to_dlpack(const Array& array);
dlpack::ManagedTensorVersioned* to_dlpack_versioned(const Array& array);

}  // namespace heddle
