#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/check.h"
#include "io/atomic_file.h"
#include "io/ggml_types.h"
#include "io/gguf_format.h"
#include "io/gguf_stream.h"

namespace heddle::gguf {
namespace {

constexpr std::size_t kPaddingChunk = 4096;

class Bytes {
 public:
  const std::vector<std::byte>& data() const noexcept { return data_; }

  void put_raw(const void* source, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(source);
    data_.insert(data_.end(), first, first + size);
  }
  template <class T>
  void put(T value) {
    put_raw(&value, sizeof(value));
  }
  void put(bool value) { put<std::uint8_t>(value ? 1 : 0); }
  void put(ValueType type) { put(static_cast<std::uint32_t>(type)); }
  void put(const std::string& text) {
    put<std::uint64_t>(text.size());
    put_raw(text.data(), text.size());
  }
  void put(const Array& array) {
    put(element_type(array));
    std::visit(
        [&](const auto& elements) {
          put<std::uint64_t>(elements.size());
          for (const auto& element : elements) put(element);
        },
        array);
  }

 private:
  std::vector<std::byte> data_;
};

void put_metadata(Bytes& bytes, const Metadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    const auto problem = key_problem(key);
    require(!problem, ErrorCode::invalid_argument, "gguf::Writer: metadata {}: {}", quote_name(key),
            problem.value_or(""));
    bytes.put(key);
    bytes.put(type_of(value));
    std::visit([&](const auto& v) { bytes.put(v); }, value);
  }
}

void check_name(const std::string& name, bool is_new) {
  const auto problem = tensor_name_problem(name);
  require(!problem, ErrorCode::invalid_argument, "gguf::Writer: tensor {}: {}", quote_name(name),
          problem.value_or(""));
  require(is_new, ErrorCode::invalid_argument, "gguf::Writer: tensor {}: name occurs twice",
          quote_name(name));
}

}  // namespace

std::uint32_t checked_alignment(const Metadata& metadata) {
  std::optional<std::string> problem;
  const std::uint32_t alignment = alignment_of(metadata, problem);
  require(!problem, ErrorCode::invalid_argument, "gguf::Writer: metadata '{}': {}", kAlignmentKey,
          problem.value_or(""));
  return alignment;
}

std::size_t checked_bytes(const TensorEntry& tensor) {
  const Shape& shape = tensor.shape;
  const auto check = [&](bool holds, std::string_view problem) {
    require(holds, ErrorCode::invalid_argument, "gguf::Writer: tensor {} ({} {}): {}",
            quote_name(tensor.name), heddle::to_string(tensor.dtype), heddle::to_string(shape),
            problem);
  };
  check(ggml_type_id(tensor.dtype).has_value(), "GGUF has no such type");
  check(shape.size() <= kMaxTensorDims, "GGUF has at most 4 dimensions");
  check(std::all_of(shape.begin(), shape.end(), [](auto extent) { return extent > 0; }),
        "every dimension must be positive");
  const std::int64_t row = shape.empty() ? 1 : shape.back();
  check(row % info(tensor.dtype).block_elements == 0, "rows are not made of whole blocks");
  return row_bytes(tensor.dtype, elements(shape));
}

std::vector<std::byte> header_bytes(const Metadata& metadata,
                                    std::span<const TensorEntry> tensors) {
  const std::uint32_t alignment = checked_alignment(metadata);
  Bytes header;
  header.put_raw(kMagic.data(), kMagic.size());
  header.put(kVersion);
  header.put<std::uint64_t>(tensors.size());
  header.put<std::uint64_t>(metadata.entries().size());
  put_metadata(header, metadata);
  std::uint64_t offset = 0;
  std::set<std::string_view> names;
  for (const TensorEntry& tensor : tensors) {
    check_name(tensor.name, names.insert(tensor.name).second);
    const std::size_t bytes = checked_bytes(tensor);
    header.put(tensor.name);
    header.put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t i = tensor.shape.size(); i > 0; --i) {
      header.put(static_cast<std::uint64_t>(tensor.shape[i - 1]));
    }
    header.put(*ggml_type_id(tensor.dtype));
    header.put(offset);
    offset += align_up(bytes, alignment);
  }
  return header.data();
}

void pad(const ByteSink& sink, std::uint64_t position, std::uint32_t alignment) {
  static constexpr std::byte kZeros[kPaddingChunk]{};
  std::uint64_t left = align_up(position, alignment) - position;
  while (left > 0) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPaddingChunk));
    sink({kZeros, size});
    left -= size;
  }
}

void Writer::add_tensor(std::string name, DType dtype, Shape shape,
                        std::span<const std::byte> data) {
  check_name(name, !names_.contains(name));
  const std::size_t size = checked_bytes({name, dtype, shape});
  require(data.size() == size, ErrorCode::invalid_argument,
          "gguf::Writer: tensor {} ({} {}): data has {} bytes, must have {}", quote_name(name),
          heddle::to_string(dtype), heddle::to_string(shape), data.size(), size);
  names_.insert(name);
  tensors_.push_back({std::move(name), dtype, shape, {data.begin(), data.end()}});
}

void Writer::emit(const ByteSink& sink) const {
  std::vector<TensorEntry> entries;
  for (const Pending& tensor : tensors_) {
    entries.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  const std::uint32_t alignment = checked_alignment(metadata_);
  const std::vector<std::byte> header = header_bytes(metadata_, entries);
  sink(header);
  if (tensors_.empty()) return;
  pad(sink, header.size(), alignment);
  for (const Pending& tensor : tensors_) {
    sink(tensor.data);
    pad(sink, tensor.data.size(), alignment);
  }
}

std::vector<std::byte> Writer::serialize() const {
  std::vector<std::byte> bytes;
  emit([&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  return bytes;
}

void Writer::write(const std::filesystem::path& path) const {
  AtomicFile file(path);
  emit([&](std::span<const std::byte> piece) { file.write(piece); });
  file.commit();
}

}  // namespace heddle::gguf
