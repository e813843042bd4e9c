// Any bytes at all are either refused with Error(io) or a file that can be read in full, and that
// writes and reads back as itself.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target gguf_fuzz
//   build/fuzz/fuzz/gguf_fuzz -max_total_time=600 -max_len=4096 CORPUS_DIR
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "heddle/error.h"
#include "heddle/gguf.h"

namespace {

namespace gguf = heddle::gguf;

constexpr std::align_val_t kAlignment{32};  // what gguf::File::from_memory asks for

struct AlignedDelete {
  void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
};

/// A copy of exactly `size` bytes, so that the address sanitizer sees a read past them.
std::shared_ptr<const std::byte> aligned_copy(const void* source, std::size_t size) {
  std::shared_ptr<std::byte> copy(static_cast<std::byte*>(::operator new(size, kAlignment)),
                                  AlignedDelete());
  if (size > 0) std::memcpy(copy.get(), source, size);
  return copy;
}

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "gguf_fuzz: %s\n", what);
  std::abort();
}

gguf::File parse(const void* data, std::size_t size) {
  const auto bytes = aligned_copy(data, size);
  return gguf::File::from_memory({bytes.get(), size}, "fuzz.gguf", bytes);
}

std::size_t touch(const gguf::File& file) {
  std::size_t sum = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    require(file.find_tensor(tensor.name) == &tensor, "a tensor is not found by its name");
    require(tensor.data.size() == static_cast<std::size_t>(heddle::row_bytes(
                                      tensor.dtype, heddle::elements(tensor.shape))),
            "a tensor's data has the wrong size");
    for (const std::byte b : tensor.data) sum += static_cast<std::size_t>(b);
  }
  return sum;
}

template <class Get>
void ask(Get get) {
  try {
    get();
  } catch (const heddle::Error& error) {
    require(error.code() == heddle::ErrorCode::io, "a getter threw another error than io");
  }
}

void walk(const gguf::Metadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    require(metadata.find(key) == &value, "a key is not found");
    const auto& name = key;
    ask([&] { (void)metadata.get_int(name); });
    ask([&] { (void)metadata.get_float(name); });
    ask([&] { (void)metadata.find_bool(name); });
    ask([&] { (void)metadata.get_string(name); });
    ask([&] { (void)metadata.get_array<std::string>(name); });
    ask([&] { (void)metadata.get_array<float>(name); });
  }
}

std::vector<std::byte> serialize(const gguf::File& file) {
  gguf::Writer writer;
  writer.metadata() = file.metadata();
  for (const gguf::Tensor& tensor : file.tensors()) {
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.data);
  }
  return writer.serialize();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::optional<gguf::File> file;
  try {
    file = parse(data, size);
  } catch (const heddle::Error& error) {
    require(error.code() == heddle::ErrorCode::io, "refused with another error than io");
    require(std::strncmp(error.what(), "fuzz.gguf: ", 11) == 0, "the error does not name the file");
    return 0;
  }
  walk(file->metadata());
  const std::size_t sum = touch(*file);
  const auto written = serialize(*file);
  const gguf::File again = parse(written.data(), written.size());
  require(touch(again) == sum, "the tensors changed on the way out and in");
  require(serialize(again) == written, "writing what was written gives something else");
  return 0;
}
