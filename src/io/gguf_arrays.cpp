#include <algorithm>
#include <span>
#include <type_traits>

#include "array/external.h"
#include "base/check.h"
#include "heddle/gguf.h"
#include "heddle/io.h"
#include "io/gguf_format.h"
#include "io/gguf_stream.h"
#include "io/mapped_array.h"
#include "io/sorted_arrays.h"

namespace heddle {

namespace {

template <class T>
Array row_of(const std::vector<T>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<std::byte> bytes;
    for (const bool value : values) bytes.push_back(static_cast<std::byte>(value));
    return Array::from_bytes({DType::bool_, shape}, bytes);
  } else {
    return Array(std::span<const T>(values), shape);
  }
}

/// A scalar of exactly this type: Array(double) would be f32.
template <class T>
Array number(T value) {
  return Array::from_bytes({dtype_of<T>(), {}}, std::as_bytes(std::span(&value, 1)));
}

GGUFMetaData from_value(const gguf::Value& value) {
  return std::visit(
      [](const auto& v) -> GGUFMetaData {
        using T = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return v;
        } else if constexpr (std::is_same_v<T, gguf::Array>) {
          return std::visit(
              [](const auto& values) -> GGUFMetaData {
                if constexpr (std::is_same_v<std::remove_cvref_t<decltype(values)>,
                                             std::vector<std::string>>) {
                  return values;
                } else {
                  return row_of(values);
                }
              },
              v);
        } else {
          return number(v);
        }
      },
      value);
}

template <class T>
gguf::Value value_of(const Array& array) {
  if (array.ndim() == 0) return array.item<T>();
  return gguf::Array(array.to_vector<T>());
}

gguf::Value to_value(const std::string& key, const Array& array) {
  const std::string shown = gguf::quote_name(key);
  require(array.ndim() <= 1, ErrorCode::invalid_argument,
          "save_gguf: metadata {} is {}; it can have one dimension or none", shown,
          to_string(array.spec()));
  switch (array.dtype()) {
    case DType::bool_:
      return value_of<bool>(array);
    case DType::u8:
      return value_of<std::uint8_t>(array);
    case DType::u16:
      return value_of<std::uint16_t>(array);
    case DType::u32:
      return value_of<std::uint32_t>(array);
    case DType::u64:
      return value_of<std::uint64_t>(array);
    case DType::i8:
      return value_of<std::int8_t>(array);
    case DType::i16:
      return value_of<std::int16_t>(array);
    case DType::i32:
      return value_of<std::int32_t>(array);
    case DType::i64:
      return value_of<std::int64_t>(array);
    case DType::f32:
      return value_of<float>(array);
    case DType::f64:
      return value_of<double>(array);
    default:
      fail(ErrorCode::invalid_argument,
           "save_gguf: metadata {} is {}; GGUF has bool, u8 to u64, i8 to i64, f32 and f64 there",
           shown, to_string(array.spec()));
  }
}

gguf::Value to_value(const std::string& key, const GGUFMetaData& data) {
  if (const auto* array = std::get_if<Array>(&data)) return to_value(key, *array);
  if (const auto* text = std::get_if<std::string>(&data)) return *text;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&data)) return gguf::Array(*texts);
  fail(ErrorCode::invalid_argument, "save_gguf: metadata {} has no value", gguf::quote_name(key));
}

}  // namespace

GGUFLoad load_gguf(const std::filesystem::path& file) {
  const gguf::File opened = gguf::File::open(file);
  GGUFLoad loaded;
  for (const gguf::Tensor& tensor : opened.tensors()) {
    loaded.first.emplace(
        tensor.name, file_array(tensor.data, OperandSpec::contiguous({tensor.dtype, tensor.shape}),
                                opened.owner()));
  }
  for (const auto& [key, value] : opened.metadata().entries()) {
    loaded.second.emplace(key, from_value(value));
  }
  return loaded;
}

void save_gguf(const std::filesystem::path& file, const ArrayMap& arrays,
               const std::unordered_map<std::string, GGUFMetaData>& metadata) {
  std::vector<const std::string*> keys;
  for (const auto& [key, value] : metadata) keys.push_back(&key);
  std::sort(keys.begin(), keys.end(),
            [](const std::string* a, const std::string* b) { return *a < *b; });
  gguf::Metadata values;
  for (const std::string* key : keys) values.set(*key, to_value(*key, metadata.at(*key)));
  const SortedArrays sorted = sorted_arrays(arrays);
  std::vector<gguf::TensorEntry> entries;
  for (const auto& [name, array] : sorted) {
    entries.push_back({*name, array->dtype(), array->shape()});
  }
  gguf::StreamWriter writer(with_extension(file, ".gguf"), values, std::move(entries));
  for (const auto& [name, array] : sorted) {
    const View view = row_major_view(*array);
    writer.write({view.host(), array->nbytes()});
  }
  writer.commit();
}

}  // namespace heddle
