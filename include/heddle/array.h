// Lazy arrays: a handle on a value that is computed when someone looks.
//
// Building an expression makes nodes; `eval` runs them, each once, inputs first, and frees
// intermediates at their last use. Any thread may build, evaluate and read; one Array object may
// not be changed by two threads at once, copies may. Functions on arrays are in heddle/ops.h, under
// MLX's names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "heddle/buffer.h"
#include "heddle/error.h"
#include "heddle/half.h"
#include "heddle/op.h"
#include "heddle/ref.h"

namespace heddle {

class Node;
class Stream;

/// The DType of a C++ type: dtype_of<float>() is f32.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::bool_;
  else if constexpr (std::is_same_v<T, f16>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, bf16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::complex64;
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    return sizeof(T) == 1   ? DType::i8
           : sizeof(T) == 2 ? DType::i16
           : sizeof(T) == 4 ? DType::i32
                            : DType::i64;
  else if constexpr (std::is_integral_v<T>)
    return sizeof(T) == 1   ? DType::u8
           : sizeof(T) == 2 ? DType::u16
           : sizeof(T) == 4 ? DType::u32
                            : DType::u64;
  else
    static_assert(!sizeof(T), "no DType for this type");
}

class Array {
 public:
  /// A scalar. `Array(2.0f)` is f32, `Array(2)` i32, `Array(true)` bool. As in MLX, double literals
  /// are f32 too, so that `x * 2.0` does not turn x into f64.
  template <class T>
  requires std::is_arithmetic_v<T> Array(T value)  // NOLINT: scalars mix with arrays, as in MLX
      : Array(scalar(static_cast<Literal<T>>(value))) {}

  /// One row: `Array({1.0f, 2.0f})`. Doubles become f32.
  template <class T>
  requires std::is_arithmetic_v<T> Array(std::initializer_list<T> values)
      : Array(row(std::span<const T>(values.begin(), values.size()))) {}

  /// Values in row-major order, copied. Throws invalid_argument if their number does not suit
  /// `shape`.
  template <class T>
  Array(std::span<const T> values, const Shape& shape)
      : Array(from_bytes({dtype_of<T>(), shape}, std::as_bytes(values))) {}
  template <class T>
  requires(!std::is_same_v<T, bool>) Array(const std::vector<T>& values, const Shape& shape)
      : Array(std::span<const T>(values), shape) {}

  /// Bytes of a contiguous tensor, copied. Any dtype, block types included.
  static Array from_bytes(TensorSpec spec, std::span<const std::byte> bytes);
  /// An array over memory that already holds its values, or will when work in flight has ended;
  /// without a copy. heddle never writes to it. Throws invalid_argument if the buffer is too small.
  static Array from_view(View view);

  const TensorSpec& spec() const noexcept;
  DType dtype() const noexcept { return spec().dtype; }
  const Shape& shape() const noexcept { return spec().shape; }
  std::int64_t shape(std::int64_t axis) const;  // negative counts from the end
  std::size_t ndim() const noexcept { return shape().size(); }
  std::int64_t size() const { return elements(shape()); }
  std::size_t nbytes() const { return byte_size(spec()); }

  /// Evaluates this array. Throws its error, the same at every call, if it or what it depends on
  /// failed.
  void eval() const;
  /// Throws its error if that is known by now; evaluates nothing and waits for nothing.
  void check() const;
  bool is_available() const noexcept;  // evaluated, and the host need not wait

  /// The value of an array of one element; evaluates. T must match the dtype.
  template <class T>
  T item() const {
    T value;
    copy_item(dtype_of<T>(), &value);
    return value;
  }
  /// All values in row-major order; evaluates. T must match the dtype.
  template <class T>
  std::vector<T> to_vector() const {
    check_dtype(dtype_of<T>(), "to_vector");
    if constexpr (std::is_same_v<T, bool>) {
      const std::vector<std::byte> bytes = to_bytes();
      std::vector<bool> values(bytes.size());
      for (std::size_t i = 0; i < bytes.size(); ++i) values[i] = bytes[i] != std::byte{0};
      return values;
    } else {
      std::vector<T> values(static_cast<std::size_t>(size()));
      copy_to(std::as_writable_bytes(std::span(values)));
      return values;
    }
  }
  /// The bytes of the contiguous tensor; evaluates.
  std::vector<std::byte> to_bytes() const;
  /// As to_bytes, into `out`, which must have nbytes() bytes.
  void copy_to(std::span<std::byte> out) const;
  /// The memory that holds the value; evaluates. For executors and tests.
  View view() const;

  // For the parts of heddle that make and walk nodes.
  Array(Ref<Node> node, std::uint32_t output) noexcept;
  const Ref<Node>& node() const noexcept { return node_; }
  std::uint32_t output() const noexcept { return output_; }
  Array(const Array&) noexcept;
  Array(Array&&) noexcept;
  Array& operator=(const Array&) noexcept;
  Array& operator=(Array&&) noexcept;
  ~Array();

 private:
  template <class T>
  using Literal = std::conditional_t<std::is_same_v<T, double>, float, T>;

  template <class T>
  static Array scalar(T value) {
    return from_bytes({dtype_of<T>(), {}}, std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  static Array row(std::span<const T> values) {
    const Shape shape{static_cast<std::int64_t>(values.size())};
    if constexpr (std::is_same_v<T, Literal<T>>) {
      return Array(values, shape);
    } else {
      return Array(std::vector<Literal<T>>(values.begin(), values.end()), shape);
    }
  }

  void check_dtype(DType dtype, const char* function) const;
  void copy_item(DType dtype, void* value) const;

  Ref<Node> node_;
  std::uint32_t output_ = 0;
};

/// An array as an argument, with the line of the call: errors that show only when a value is
/// computed name it. Made where a function is called and gone when it returns; never kept.
class Arg {
 public:
  Arg(const Array& array,  // NOLINT: an array is an argument
      std::source_location where = std::source_location::current()) noexcept
      : array_(&array), where_(where) {}
  template <class T>
  requires std::is_arithmetic_v<T> Arg(
      T value, std::source_location where = std::source_location::current())  // NOLINT: as above
      : own_(Array(value)), array_(&*own_), where_(where) {}
  template <class T>
  requires std::is_arithmetic_v<T> Arg(std::initializer_list<T> values,
                                       std::source_location where = std::source_location::current())
      : own_(Array(values)), array_(&*own_), where_(where) {}
  Arg(const Arg&) = delete;
  Arg& operator=(const Arg&) = delete;

  operator const Array&() const noexcept { return *array_; }
  const Array& array() const noexcept { return *array_; }
  const TensorSpec& spec() const noexcept { return array_->spec(); }
  DType dtype() const noexcept { return array_->dtype(); }
  const Shape& shape() const noexcept { return array_->shape(); }
  std::int64_t shape(std::int64_t axis) const { return array_->shape(axis); }
  std::size_t ndim() const noexcept { return array_->ndim(); }
  std::int64_t size() const { return array_->size(); }
  const std::source_location& where() const noexcept { return where_; }

 private:
  std::optional<Array> own_;
  const Array* array_;
  std::source_location where_;
};

// ---- Evaluation. heddle/tree.h has the same for trees of arrays: several arguments, ranges, maps,
// tuples, structs.

/// Evaluates all of `arrays` and waits for them; throws the first error in their order once all
/// have been tried.
void eval(std::span<const Array> arrays);
void eval(std::initializer_list<Array> arrays);
/// The same without waiting for devices: what runs on the CPU has run on return. Throws what is
/// known by then; a device's errors appear at the first read.
void async_eval(std::span<const Array> arrays);
/// Throws the first error of `arrays` that is known by now; evaluates nothing and waits for
/// nothing.
void check(std::span<const Array> arrays);

/// An evaluation whose order is decided and which has not begun. Until then nothing that it needs
/// is written in place; what others have evaluated when it begins is not run again. Starting it
/// twice is like evaluating what is there. One thread at a time may use one.
class Scheduled {
 public:
  explicit Scheduled(std::span<const Array> arrays);
  Scheduled(Scheduled&&) noexcept;
  Scheduled& operator=(Scheduled&&) noexcept;
  ~Scheduled();

  void eval();
  void async_eval();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
Scheduled schedule(std::span<const Array> arrays);

/// Makes arrays built by this thread run on `device` until the end of the scope: lazily, on it or
/// else the CPU; in a graph, the node is pinned to it. Nests.
class DeviceScope {
 public:
  explicit DeviceScope(Device& device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device* const device_;
  const Ref<Stream>* const stream_;
};

/// The same for one stream of a device (Device::new_stream): what arrays read and write orders the
/// work of different streams.
class StreamScope {
 public:
  explicit StreamScope(Ref<Stream> stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  const Ref<Stream> own_;
  Device* const device_;
  const Ref<Stream>* const stream_;
};

/// As NumPy prints: nested brackets, large axes abbreviated; evaluates. "array([1, 2], dtype=i32)".
std::string to_string(const Array& array);
std::ostream& operator<<(std::ostream& out, const Array& array);

/// The array made by one op; for ops of several outputs, all of them. Infers (and so throws
/// invalid_argument for unsuitable inputs) at once; computes when needed.
Array apply(Op op, std::vector<Array> inputs);
std::vector<Array> apply_multi(Op op, std::vector<Array> inputs);

}  // namespace heddle

#include "heddle/tree.h"
