// GGUF model files, versions 2 and 3, little endian: read (memory-mapped) and written.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
// A file is hostile until checked: `File::open` verifies every count, size, offset, alignment and
// name before anything is used, and its errors (ErrorCode::io) name the file and the field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/shape.h"

namespace heddle::gguf {

/// A metadata array; its elements share one type. Arrays of arrays are not supported.
using Array =
    std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
                 std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
                 std::vector<float>, std::vector<bool>, std::vector<std::string>,
                 std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;

/// A metadata value, in the order of GGUF's type ids (0 u8 .. 12 f64; 8 string, 9 array).
using Value = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                           std::int32_t, float, bool, std::string, Array, std::uint64_t,
                           std::int64_t, double>;

/// Metadata by key, in file order. The typed getters throw Error(io) naming the key when it has
/// another type or does not fit; `find_*` return nothing when the key is absent, `get_*` throw.
/// Reading is safe from any number of threads; `set` is not.
class Metadata {
 public:
  Metadata() = default;
  /// `source` is what errors call the file.
  explicit Metadata(std::string source) : source_(std::move(source)) {}

  const std::vector<std::pair<std::string, Value>>& entries() const noexcept { return entries_; }
  const Value* find(std::string_view key) const noexcept;

  /// Replaces the value if the key is there.
  void set(std::string key, Value value);

  std::optional<std::int64_t> find_int(std::string_view key) const;  // any integer type
  std::optional<double> find_float(std::string_view key) const;      // any number type
  std::optional<bool> find_bool(std::string_view key) const;
  std::optional<std::string_view> find_string(std::string_view key) const;
  /// The array itself, or null when the key is absent; throws when the elements are not of type T.
  template <class T>
  const std::vector<T>* find_array(std::string_view key) const;

  std::int64_t get_int(std::string_view key) const;
  double get_float(std::string_view key) const;
  std::string_view get_string(std::string_view key) const;
  template <class T>
  const std::vector<T>& get_array(std::string_view key) const;

 private:
  std::string source_;
  std::vector<std::pair<std::string, Value>> entries_;
  // A tree, not a hash table: a hostile file cannot choose keys that make it slow.
  std::map<std::string, std::size_t, std::less<>> index_;
};

/// A tensor of the file. `shape` is outermost first, so GGUF's ne[0] is its last extent.
struct Tensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::span<const std::byte> data;  // in the mapped file, checked to lie within it
};

/// An open model: one file, or all the parts of a split one (`-00001-of-00003.gguf`; open the
/// first). Immutable and safe to share between threads. Copies share the mapping, which is released
/// with the last of them.
class File {
 public:
  static File open(const std::filesystem::path& path);
  /// Parses bytes that `owner` keeps alive. `name` is what errors call it. Data must be aligned to
  /// 32 bytes.
  static File from_memory(std::span<const std::byte> bytes, std::string name,
                          std::shared_ptr<const void> owner = nullptr);

  const std::string& name() const noexcept;
  std::uint32_t version() const noexcept;
  const Metadata& metadata() const noexcept;
  const std::vector<Tensor>& tensors() const noexcept;
  const Tensor* find_tensor(std::string_view name) const noexcept;
  /// Throws Error(io) naming the file and the tensor when it is absent.
  const Tensor& tensor(std::string_view name) const;
  std::uint64_t file_bytes() const noexcept;  // of all parts
  /// Asks the system to read the tensors' bytes ahead, in the background: worth calling before all
  /// of them are used. Does nothing for `from_memory`.
  void prefetch() const noexcept;
  /// Keeps the mapping alive, for buffers that import it.
  std::shared_ptr<const void> owner() const noexcept;
  /// The same file, but for these keys of its metadata: for who has read large arrays, and needs
  /// them no more.
  File without(std::span<const std::string_view> keys) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Collects metadata and tensors and writes a version 3 file, atomically (temporary file, fsync,
/// rename). Throws Error(io) when that fails, and invalid_argument for what a file cannot hold:
/// duplicate, empty or overlong names, keys or an alignment against the format, types GGUF lacks,
/// more than four dimensions, empty tensors, data whose size does not match.
class Writer {
 public:
  Metadata& metadata() noexcept { return metadata_; }
  /// `data` is copied. The alignment is `general.alignment` if set, or 32.
  void add_tensor(std::string name, DType dtype, Shape shape, std::span<const std::byte> data);
  std::vector<std::byte> serialize() const;
  void write(const std::filesystem::path& path) const;

 private:
  struct Pending {
    std::string name;
    DType dtype;
    Shape shape;
    std::vector<std::byte> data;
  };
  /// Hands out the file's bytes, piece by piece.
  void emit(const std::function<void(std::span<const std::byte>)>& sink) const;

  Metadata metadata_;
  std::vector<Pending> tensors_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace heddle::gguf
