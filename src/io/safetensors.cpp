// Format: https://github.com/huggingface/safetensors, README.md. A length of 64 bits, a JSON object
// of that many bytes, and the tensors' bytes, without gaps or overlaps.
#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "array/external.h"
#include "base/check.h"
#include "heddle/io.h"
#include "io/atomic_file.h"
#include "io/gguf_format.h"
#include "io/mapped_array.h"
#include "io/mapped_file.h"
#include "io/sorted_arrays.h"

namespace heddle {

namespace {

using Json = nlohmann::json;
using Texts = std::unordered_map<std::string, std::string>;

constexpr std::size_t kMostHeader = 100'000'000;  // as the format's own library has it
constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);
constexpr std::size_t kAlignment = 64;  // of the first tensor in files that are written
constexpr int kMostDepth = 3;           // of JSON: the header, a tensor, its shape
constexpr const char* kMetadata = "__metadata__";

constexpr std::array<std::pair<DType, std::string_view>, 15> kTypes{{{DType::bool_, "BOOL"},
                                                                     {DType::u8, "U8"},
                                                                     {DType::u16, "U16"},
                                                                     {DType::u32, "U32"},
                                                                     {DType::u64, "U64"},
                                                                     {DType::i8, "I8"},
                                                                     {DType::i16, "I16"},
                                                                     {DType::i32, "I32"},
                                                                     {DType::i64, "I64"},
                                                                     {DType::f16, "F16"},
                                                                     {DType::bf16, "BF16"},
                                                                     {DType::f32, "F32"},
                                                                     {DType::f64, "F64"},
                                                                     {DType::complex64, "C64"},
                                                                     {DType::u8, "F8_E4M3"}}};

// ---- Reading

struct Entry {
  std::string name;
  TensorSpec spec;
  std::uint64_t begin = 0, end = 0;
};

class Header {
 public:
  Header(std::string_view text, std::uint64_t data_bytes, const std::string& file)
      : data_bytes_(data_bytes), file_(file) {
    parse(text);
  }

  const std::vector<Entry>& entries() const { return entries_; }
  Texts& metadata() { return metadata_; }

 private:
  template <class... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (condition) [[likely]]
      return;
    fail(ErrorCode::io, "{}: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }

  void parse(std::string_view text) {
    const Json header = parse_json(text);
    check(header.is_object(), "its header is no JSON object");
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadata) {
        read_metadata(value);
      } else {
        entries_.push_back(read_entry(name, value));
      }
    }
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    check_places();
  }

  /// With keys that occur once, and not nested deeper than it can be.
  Json parse_json(std::string_view text) const {
    std::vector<std::set<std::string>> keys;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
      const bool opens =
          event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
      check(!opens || depth < kMostDepth, "its header is nested deeper than {}", kMostDepth);
      if (event == Json::parse_event_t::object_start) keys.emplace_back();
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key) {
        const auto& key = value.get_ref<const std::string&>();
        check(keys.back().insert(key).second, "{} occurs twice in its header",
              gguf::quote_name(key));
      }
      return true;
    };
    try {
      return Json::parse(text, watch);
    } catch (const Json::exception&) {
      check(false, "its header is no JSON");
      return {};
    }
  }

  void read_metadata(const Json& value) {
    check(value.is_object(), "its {} is no object", kMetadata);
    for (const auto& [key, text] : value.items()) {
      check(text.is_string(), "metadata {} is no text", gguf::quote_name(key));
      metadata_.emplace(key, text.get<std::string>());
    }
  }

  Entry read_entry(const std::string& name, const Json& value) const {
    const std::string shown = gguf::quote_name(name);
    const bool suits = value.is_object() && value.size() == 3 && value.contains("dtype") &&
                       value.contains("shape") && value.contains("data_offsets");
    check(suits, "tensor {} must have 'dtype', 'shape' and 'data_offsets'", shown);
    Entry entry{name, {read_type(value["dtype"], shown), read_shape(value["shape"], shown)}};
    const Json& offsets = value["data_offsets"];
    const bool pair = offsets.is_array() && offsets.size() == 2 &&
                      offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
    check(pair, "tensor {}: its data_offsets are not two numbers", shown);
    entry.begin = offsets[0].get<std::uint64_t>();
    entry.end = offsets[1].get<std::uint64_t>();
    std::optional<std::size_t> bytes;
    try {
      bytes = byte_size(entry.spec);
    } catch (const Error&) {
      // Said below.
    }
    check(bytes && entry.begin <= entry.end && entry.end - entry.begin == *bytes,
          "tensor {}: {} does not take the bytes from {} to {}", shown, to_string(entry.spec),
          entry.begin, entry.end);
    return entry;
  }

  DType read_type(const Json& value, const std::string& shown) const {
    check(value.is_string(), "tensor {}: its dtype is no text", shown);
    const auto& name = value.get_ref<const std::string&>();
    const auto* type = std::find_if(kTypes.begin(), kTypes.end(),
                                    [&](const auto& entry) { return entry.second == name; });
    check(type != kTypes.end(), "tensor {}: there is no array of type {}", shown,
          gguf::quote_name(name));
    return type->first;
  }

  Shape read_shape(const Json& value, const std::string& shown) const {
    check(value.is_array() && value.size() <= kMaxRank,
          "tensor {}: its shape is no list of at most {} extents", shown, kMaxRank);
    Shape shape;
    for (const Json& extent : value) {
      check(extent.is_number_unsigned() && extent.get<std::uint64_t>() <= INT64_MAX,
            "tensor {}: an extent is no number", shown);
      shape.push_back(extent.get<std::int64_t>());
    }
    return shape;
  }

  /// Of entries in the order of their data.
  void check_places() const {
    std::uint64_t at = 0;
    for (const Entry& entry : entries_) {
      check(entry.begin == at, "tensor {} begins at {}, where the one before ends at {}",
            gguf::quote_name(entry.name), entry.begin, at);
      at = entry.end;
    }
    check(at == data_bytes_, "its tensors take {} bytes, and {} are there", at, data_bytes_);
  }

  std::uint64_t data_bytes_;
  const std::string& file_;
  std::vector<Entry> entries_;
  Texts metadata_;
};

// ---- Writing

std::string_view type_name(const std::string& name, const Array& array) {
  const auto* type = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const auto& entry) { return entry.first == array.dtype(); });
  require(type != kTypes.end(), ErrorCode::invalid_argument,
          "save_safetensors: {}: {} is of a block type; dequantize it, or save it as .gguf",
          gguf::quote_name(name), to_string(array.spec()));
  return type->second;
}

std::string header_text(const SortedArrays& arrays, const Texts& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::uint64_t at = 0;
  for (const auto& [name, array] : arrays) {
    require(*name != kMetadata, ErrorCode::invalid_argument,
            "save_safetensors: no array can be called {}", kMetadata);
    Json& entry = header[*name];
    entry["dtype"] = type_name(*name, *array);
    entry["shape"] = std::vector<std::int64_t>(array->shape().begin(), array->shape().end());
    entry["data_offsets"] = {at, at + array->nbytes()};
    at += array->nbytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    fail(ErrorCode::invalid_argument,
         "save_safetensors: a name or metadata is not UTF-8, which JSON must be");
  }
  text.append(-(kLengthBytes + text.size()) % kAlignment, ' ');
  require(text.size() <= kMostHeader, ErrorCode::invalid_argument,
          "save_safetensors: a header of {} bytes; it may have {}", text.size(), kMostHeader);
  return text;
}

}  // namespace

SafetensorsLoad load_safetensors(const std::filesystem::path& file) {
  const std::string name = file.string();
  const auto mapped = std::make_shared<const MappedFile>(file);
  const std::span<const std::byte> bytes = mapped->bytes();
  std::uint64_t length = 0;
  require(bytes.size() >= kLengthBytes, ErrorCode::io, "{}: it ends too early", name);
  std::memcpy(&length, bytes.data(), kLengthBytes);
  require(length <= kMostHeader && length <= bytes.size() - kLengthBytes, ErrorCode::io,
          "{}: no .safetensors file: a header of {} bytes in a file of {}", name, length,
          bytes.size());
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  const auto* text = reinterpret_cast<const char*>(bytes.data() + kLengthBytes);
  Header header({text, length}, data.size(), name);
  SafetensorsLoad loaded;
  for (const Entry& entry : header.entries()) {
    loaded.first.emplace(entry.name, file_array(data.subspan(entry.begin, entry.end - entry.begin),
                                                OperandSpec::contiguous(entry.spec), mapped));
  }
  loaded.second = std::move(header.metadata());
  return loaded;
}

void save_safetensors(const std::filesystem::path& file, const ArrayMap& arrays,
                      const Texts& metadata) {
  SortedArrays sorted = sorted_arrays(arrays);
  // Larger items first, so that all are aligned.
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return info(a.second->dtype()).block_bytes > info(b.second->dtype()).block_bytes;
  });
  const std::string text = header_text(sorted, metadata);
  AtomicFile out(with_extension(file, ".safetensors"));
  const std::uint64_t length = text.size();
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(std::as_bytes(std::span(text)));
  for (const auto& [name, array] : sorted) {
    const View view = row_major_view(*array);
    out.write({view.host(), array->nbytes()});
  }
  out.commit();
}

}  // namespace heddle
