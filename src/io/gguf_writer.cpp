#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/check.h"
#include "io/atomic_file.h"
#include "io/ggml_types.h"
#include "io/gguf_format.h"

namespace heddle::gguf {
namespace {

constexpr std::size_t kPaddingChunk = 4096;

using Sink = std::function<void(std::span<const std::byte>)>;

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

std::uint32_t checked_alignment(const Metadata& metadata) {
  std::optional<std::string> problem;
  const std::uint32_t alignment = alignment_of(metadata, problem);
  require(!problem, ErrorCode::invalid_argument, "gguf::Writer: metadata '{}': {}", kAlignmentKey,
          problem.value_or(""));
  return alignment;
}

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

void pad(const Sink& sink, std::uint64_t position, std::uint32_t alignment) {
  static constexpr std::byte kZeros[kPaddingChunk]{};
  std::uint64_t left = align_up(position, alignment) - position;
  while (left > 0) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPaddingChunk));
    sink({kZeros, size});
    left -= size;
  }
}

/// Bytes of a tensor that GGUF can hold; throws for the others.
std::size_t checked_bytes(const std::string& name, DType dtype, const Shape& shape) {
  const auto check = [&](bool holds, std::string_view problem) {
    require(holds, ErrorCode::invalid_argument, "gguf::Writer: tensor {} ({} {}): {}",
            quote_name(name), heddle::to_string(dtype), heddle::to_string(shape), problem);
  };
  check(ggml_type_id(dtype).has_value(), "GGUF has no such type");
  check(shape.size() <= kMaxTensorDims, "GGUF has at most 4 dimensions");
  check(std::all_of(shape.begin(), shape.end(), [](auto extent) { return extent > 0; }),
        "every dimension must be positive");
  const std::int64_t row = shape.empty() ? 1 : shape.back();
  check(row % info(dtype).block_elements == 0, "rows are not made of whole blocks");
  return row_bytes(dtype, elements(shape));
}

}  // namespace

void Writer::add_tensor(std::string name, DType dtype, Shape shape,
                        std::span<const std::byte> data) {
  const auto problem = tensor_name_problem(name);
  require(!problem, ErrorCode::invalid_argument, "gguf::Writer: tensor {}: {}", quote_name(name),
          problem.value_or(""));
  const std::size_t size = checked_bytes(name, dtype, shape);
  require(data.size() == size, ErrorCode::invalid_argument,
          "gguf::Writer: tensor {} ({} {}): data has {} bytes, must have {}", quote_name(name),
          heddle::to_string(dtype), heddle::to_string(shape), data.size(), size);
  require(names_.insert(name).second, ErrorCode::invalid_argument,
          "gguf::Writer: tensor {}: name occurs twice", quote_name(name));
  tensors_.push_back({std::move(name), dtype, shape, {data.begin(), data.end()}});
}

void Writer::emit(const Sink& sink) const {
  const std::uint32_t alignment = checked_alignment(metadata_);
  Bytes header;
  header.put_raw(kMagic.data(), kMagic.size());
  header.put(kVersion);
  header.put<std::uint64_t>(tensors_.size());
  header.put<std::uint64_t>(metadata_.entries().size());
  put_metadata(header, metadata_);
  std::uint64_t offset = 0;
  for (const Pending& tensor : tensors_) {
    header.put(tensor.name);
    header.put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t i = tensor.shape.size(); i > 0; --i) {
      header.put(static_cast<std::uint64_t>(tensor.shape[i - 1]));
    }
    header.put(*ggml_type_id(tensor.dtype));
    header.put(offset);
    offset += align_up(tensor.data.size(), alignment);
  }
  sink(header.data());
  if (tensors_.empty()) return;
  pad(sink, header.data().size(), alignment);
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
