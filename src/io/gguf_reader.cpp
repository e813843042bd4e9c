#include "io/gguf_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "io/ggml_types.h"
#include "io/gguf_format.h"

namespace heddle::gguf {
namespace {

// The bytes that the shortest entry takes, so that counts can be checked before they are used.
constexpr std::size_t kMinMetadataBytes = 8 + 1 + 4 + 1;    // key of one byte, type, value of one
constexpr std::size_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;  // name of one byte, no dimensions
constexpr std::size_t kStringLengthBytes = 8;

/// What is being read, for errors: "metadata 3", or "metadata 'general.name'" once it has a name,
/// with the element where it is an array.
struct Subject {
  std::string_view kind;
  std::uint64_t number = 0;
  std::string_view name;
  std::optional<std::uint64_t> element;

  std::string text() const {
    if (kind.empty()) return "header";
    std::string text =
        fmt::format("{} {}", kind, name.empty() ? fmt::format("{}", number) : quote_name(name));
    if (element) text += fmt::format(" element {}", *element);
    return text;
  }
};

/// Reads fields one after the other and fails, naming file and field, at what does not fit.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::size_t position() const noexcept { return position_; }
  std::size_t left() const noexcept { return bytes_.size() - position_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  template <class... Args>
  [[noreturn]] void fail_at(const Subject& subject, fmt::format_string<Args...> format,
                            Args&&... args) const {
    fail(ErrorCode::io, "{}: {}: {}", file_, subject.text(),
         fmt::format(format, std::forward<Args>(args)...));
  }

  std::span<const std::byte> take(const Subject& subject, std::string_view field,
                                  std::uint64_t size) {
    if (size > left()) {
      fail_at(subject, "{} needs {} bytes at offset {}, but the file ends at {}", field, size,
              position_, bytes_.size());
    }
    const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(size));
    position_ += taken.size();
    return taken;
  }

  template <class T>
  T read(const Subject& subject, std::string_view field) {
    T value;
    std::memcpy(&value, take(subject, field, sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string_view read_string(const Subject& subject, std::string_view field) {
    const auto length = read<std::uint64_t>(subject, field);
    const auto taken = take(subject, field, length);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  /// A count of things that take `min_bytes` or more each, all of which are still to come.
  std::size_t read_count(const Subject& subject, std::string_view field, std::size_t min_bytes) {
    const auto count = read<std::uint64_t>(subject, field);
    check_count(subject, field, count, min_bytes);
    return static_cast<std::size_t>(count);
  }

  void check_count(const Subject& subject, std::string_view field, std::uint64_t count,
                   std::size_t min_bytes) const {
    if (count > left() / min_bytes) {
      fail_at(subject, "{} is {}, which does not fit in the {} bytes that follow", field, count,
              left());
    }
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::size_t position_ = 0;
};

bool read_bool(Cursor& cursor, const Subject& subject) {
  const auto byte = cursor.read<std::uint8_t>(subject, "value");
  if (byte > 1) cursor.fail_at(subject, "value is {}, a bool must be 0 or 1", byte);
  return byte == 1;
}

template <class T>
T read_plain(Cursor& cursor, const Subject& subject) {
  if constexpr (std::is_same_v<T, bool>) {
    return read_bool(cursor, subject);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::string(cursor.read_string(subject, "value"));
  } else {
    return cursor.read<T>(subject, "value");
  }
}

template <class T>
std::vector<T> read_elements(Cursor& cursor, const Subject& subject) {
  constexpr std::size_t kBytes = std::is_same_v<T, std::string> ? kStringLengthBytes : sizeof(T);
  const std::size_t count = cursor.read_count(subject, "array length", kBytes);
  std::vector<T> elements(count);
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool>) {
    Subject element = subject;
    for (std::size_t i = 0; i < count; ++i) {
      element.element = i;
      elements[i] = read_plain<T>(cursor, element);
    }
  } else if (count != 0) {
    const auto data = cursor.take(subject, "array", count * kBytes);
    std::memcpy(elements.data(), data.data(), data.size());
  }
  return elements;
}

ValueType read_value_type(Cursor& cursor, const Subject& subject, std::string_view field) {
  const auto id = cursor.read<std::uint32_t>(subject, field);
  if (id >= kValueTypeCount) {
    cursor.fail_at(subject, "{} {} is unknown, must be below {}", field, id, kValueTypeCount);
  }
  return static_cast<ValueType>(id);
}

/// Calls `use` with a T{} of the C++ type that stores `type`, which is not array.
template <class Use>
Value with_plain_type(ValueType type, Use use) {
  switch (type) {
    case ValueType::u8:
      return use(std::uint8_t{});
    case ValueType::i8:
      return use(std::int8_t{});
    case ValueType::u16:
      return use(std::uint16_t{});
    case ValueType::i16:
      return use(std::int16_t{});
    case ValueType::u32:
      return use(std::uint32_t{});
    case ValueType::i32:
      return use(std::int32_t{});
    case ValueType::f32:
      return use(float{});
    case ValueType::boolean:
      return use(bool{});
    case ValueType::string:
      return use(std::string{});
    case ValueType::u64:
      return use(std::uint64_t{});
    case ValueType::i64:
      return use(std::int64_t{});
    case ValueType::f64:
      return use(double{});
    case ValueType::array:
      break;
  }
  fail(ErrorCode::invalid_argument, "an array is not a plain value");
}

Value read_array(Cursor& cursor, const Subject& subject) {
  const ValueType type = read_value_type(cursor, subject, "array element type");
  if (type == ValueType::array) {
    cursor.fail_at(subject, "is an array of arrays, which is not supported");
  }
  return with_plain_type(type, [&](auto sample) -> Value {
    return Array(read_elements<decltype(sample)>(cursor, subject));
  });
}

Value read_value(Cursor& cursor, const Subject& subject) {
  const ValueType type = read_value_type(cursor, subject, "value type");
  if (type == ValueType::array) return read_array(cursor, subject);
  return with_plain_type(
      type, [&](auto sample) -> Value { return read_plain<decltype(sample)>(cursor, subject); });
}

Metadata read_metadata(Cursor& cursor, std::size_t count, const std::string& file) {
  Metadata metadata(file);
  for (std::size_t i = 0; i < count; ++i) {
    Subject subject{"metadata", i, {}, {}};
    const std::string_view key = cursor.read_string(subject, "key");
    if (const auto problem = key_problem(key)) cursor.fail_at(subject, "{}", *problem);
    subject.name = key;
    if (metadata.find(key) != nullptr) cursor.fail_at(subject, "key occurs twice");
    metadata.set(std::string(key), read_value(cursor, subject));
  }
  return metadata;
}

/// A tensor's entry, before its data is located.
struct TensorInfo {
  std::string_view name;
  DType dtype;
  Shape shape;
  std::uint64_t bytes;
  std::uint64_t offset;  // from the beginning of the tensor data
};

Subject subject_of(const TensorInfo& info) {
  return {"tensor", 0, info.name, {}};
}

DType read_tensor_type(Cursor& cursor, const Subject& subject) {
  const auto id = cursor.read<std::uint32_t>(subject, "type");
  const GgmlType* type = find_ggml_type(id);
  if (type == nullptr) cursor.fail_at(subject, "type {} is unknown", id);
  if (!type->dtype) cursor.fail_at(subject, "type {} is not supported", type->name);
  return *type->dtype;
}

Shape read_shape(Cursor& cursor, const Subject& subject) {
  const auto count = cursor.read<std::uint32_t>(subject, "number of dimensions");
  if (count > kMaxTensorDims) {
    cursor.fail_at(subject, "number of dimensions is {}, at most {} are allowed", count,
                   kMaxTensorDims);
  }
  Shape shape(count, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto extent = cursor.read<std::uint64_t>(subject, "dimension");
    if (extent == 0 || extent > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      cursor.fail_at(subject, "dimension {} is {}, must be between 1 and 2^63 - 1", i, extent);
    }
    shape[count - 1 - i] = static_cast<std::int64_t>(extent);  // GGUF lists the innermost first
  }
  return shape;
}

std::uint64_t data_bytes(const Cursor& cursor, const Subject& subject, DType dtype,
                         const Shape& shape) {
  const DTypeInfo& type = info(dtype);
  const std::int64_t row = shape.empty() ? 1 : shape.back();
  if (row % type.block_elements != 0) {
    cursor.fail_at(subject, "rows of {} elements are not made of whole {} blocks of {}", row,
                   type.name, type.block_elements);
  }
  std::int64_t bytes = row / type.block_elements;
  bool overflows = __builtin_mul_overflow(bytes, std::int64_t{type.block_bytes}, &bytes);
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    overflows = overflows || __builtin_mul_overflow(bytes, shape[i], &bytes);
  }
  // Blocks may be smaller than their elements, so the elements are counted apart.
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    overflows = overflows || __builtin_mul_overflow(elements, extent, &elements);
  }
  if (overflows) cursor.fail_at(subject, "shape {} is too large", to_string(shape));
  return static_cast<std::uint64_t>(bytes);
}

TensorInfo read_tensor_info(Cursor& cursor, std::size_t number, std::uint32_t alignment) {
  Subject subject{"tensor", number, {}, {}};
  TensorInfo tensor{};
  tensor.name = cursor.read_string(subject, "name");
  if (const auto problem = tensor_name_problem(tensor.name)) {
    cursor.fail_at(subject, "{}", *problem);
  }
  subject.name = tensor.name;
  tensor.shape = read_shape(cursor, subject);
  tensor.dtype = read_tensor_type(cursor, subject);
  tensor.bytes = data_bytes(cursor, subject, tensor.dtype, tensor.shape);
  tensor.offset = cursor.read<std::uint64_t>(subject, "offset");
  if (tensor.offset % alignment != 0) {
    cursor.fail_at(subject, "offset {} is not a multiple of the alignment {}", tensor.offset,
                   alignment);
  }
  return tensor;
}

void check_apart(const Cursor& cursor, std::vector<TensorInfo> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    const TensorInfo& before = tensors[i - 1];
    const TensorInfo& tensor = tensors[i];
    if (tensor.offset - before.offset < before.bytes) {
      cursor.fail_at(subject_of(tensor), "data at offset {} overlaps tensor {} at {} to {}",
                     tensor.offset, quote_name(before.name), before.offset,
                     before.offset + before.bytes);
    }
  }
}

/// The tensor data, which begins at the next multiple of the alignment.
std::span<const std::byte> data_section(const Cursor& cursor, std::uint32_t alignment) {
  const std::uint64_t start = align_up(cursor.position(), alignment);
  if (start > cursor.bytes().size()) {
    cursor.fail_at({}, "tensor data must begin at {}, but the file ends at {}", start,
                   cursor.bytes().size());
  }
  return cursor.bytes().subspan(static_cast<std::size_t>(start));
}

void read_tensors(Cursor& cursor, std::size_t count, std::uint32_t alignment,
                  TensorTable& tensors) {
  if (count == 0) return;
  cursor.check_count({}, "tensor count", count, kMinTensorBytes);
  std::vector<TensorInfo> infos;
  infos.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    infos.push_back(read_tensor_info(cursor, i, alignment));
  }
  const auto data = data_section(cursor, alignment);
  for (const TensorInfo& tensor : infos) {
    if (tensor.offset > data.size() || tensor.bytes > data.size() - tensor.offset) {
      cursor.fail_at(subject_of(tensor),
                     "{} bytes at offset {} lie outside the {} bytes of tensor data", tensor.bytes,
                     tensor.offset, data.size());
    }
    const bool is_new = tensors.add({std::string(tensor.name), tensor.dtype, tensor.shape,
                                     data.subspan(tensor.offset, tensor.bytes)});
    if (!is_new) cursor.fail_at(subject_of(tensor), "name occurs twice");
  }
  check_apart(cursor, std::move(infos));
}

void check_magic(Cursor& cursor) {
  const auto magic = cursor.take({}, "magic", kMagic.size());
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    cursor.fail_at({}, "magic is {}, not 'GGUF': not a GGUF file",
                   quote_name({reinterpret_cast<const char*>(magic.data()), magic.size()}));
  }
}

std::uint32_t read_version(Cursor& cursor) {
  const auto version = cursor.read<std::uint32_t>({}, "version");
  if (version >= kOldestVersion && version <= kVersion) return version;
  const std::uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= kVersion) {
    cursor.fail_at({}, "version {} in big-endian byte order, which is not supported", swapped);
  }
  cursor.fail_at({}, "version {} is not supported, must be {} or {}", version, kOldestVersion,
                 kVersion);
}

}  // namespace

bool TensorTable::add(Tensor tensor) {
  if (!index_.try_emplace(tensor.name, list_.size()).second) return false;
  list_.push_back(std::move(tensor));
  return true;
}

const Tensor* TensorTable::find(std::string_view name) const noexcept {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &list_[found->second];
}

Part parse_part(std::span<const std::byte> bytes, const std::string& name, TensorTable& tensors) {
  Cursor cursor(bytes, name);
  check_magic(cursor);
  Part part;
  part.version = read_version(cursor);
  const auto tensor_count = cursor.read_count({}, "tensor count", kMinTensorBytes);
  const auto metadata_count = cursor.read_count({}, "metadata count", kMinMetadataBytes);
  part.metadata = read_metadata(cursor, metadata_count, name);
  std::optional<std::string> problem;
  const std::uint32_t alignment = alignment_of(part.metadata, problem);
  if (problem) cursor.fail_at({"metadata", 0, kAlignmentKey, {}}, "{}", *problem);
  read_tensors(cursor, tensor_count, alignment, tensors);
  return part;
}

}  // namespace heddle::gguf
