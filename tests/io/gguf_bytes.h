// GGUF files built by hand, byte by byte and independently of gguf::Writer, for tests to read and
// to break.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/gguf.h"
#include "support/temporary_dir.h"

namespace heddle::test {

/// Bytes with remembered places. Lengths are 64 bits, types 32, as in GGUF.
class MarkedBytes {
 public:
  template <class T>
  MarkedBytes& put(const std::string& mark, T value) {
    marks_[mark] = bytes.size();
    return put_raw(&value, sizeof(value));
  }
  /// Marks the length as MARK.length and the text as MARK.
  MarkedBytes& put_text(const std::string& mark, std::string_view text) {
    put<std::uint64_t>(mark + ".length", text.size());
    marks_[mark] = bytes.size();
    return put_raw(text.data(), text.size());
  }
  MarkedBytes& mark(const std::string& name) {
    marks_[name] = bytes.size();
    return *this;
  }
  MarkedBytes& pad(const std::string& mark, std::size_t alignment) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    marks_[mark] = bytes.size();
    return *this;
  }

  std::size_t at(const std::string& mark) const { return marks_.at(mark); }
  template <class T>
  void set(const std::string& mark, T value) {
    std::memcpy(bytes.data() + at(mark), &value, sizeof(value));
  }
  void set_text(const std::string& mark, std::string_view text) {
    std::memcpy(bytes.data() + at(mark), text.data(), text.size());
  }
  /// Makes the text at MARK `size` bytes longer, its length included. Later marks stay behind.
  void lengthen(const std::string& mark, std::size_t size) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at(mark + ".length"), sizeof(length));
    set(mark + ".length", length + size);
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at(mark)), size, std::byte{'x'});
  }
  void cut(const std::string& mark, std::ptrdiff_t offset = 0) {
    bytes.resize(static_cast<std::size_t>(static_cast<std::ptrdiff_t>(at(mark)) + offset));
  }

  std::vector<std::byte> bytes;

 private:
  MarkedBytes& put_raw(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + size);
    return *this;
  }

  std::map<std::string, std::size_t> marks_;
};

/// Six metadata entries and two tensors: f32 "a" of shape [2, 4] and q8_0 "b" of shape [64].
inline MarkedBytes sample_file() {
  MarkedBytes f;
  f.put("magic", std::uint32_t{0x46554747}).put("version", std::uint32_t{3});
  f.put("tensor_count", std::uint64_t{2}).put("metadata_count", std::uint64_t{6});
  f.put_text("alignment", "general.alignment").put("alignment.type", std::uint32_t{4});
  f.put("alignment.value", std::uint32_t{32});
  f.put_text("flag", "flag").put("flag.type", std::uint32_t{7}).put("flag.value", std::uint8_t{1});
  f.put_text("name", "name").put("name.type", std::uint32_t{8}).put_text("name.value", "heddle");
  f.put_text("numbers", "numbers").put("numbers.type", std::uint32_t{9});
  f.put("numbers.element", std::uint32_t{5}).put("numbers.count", std::uint64_t{3});
  f.put("numbers.0", std::int32_t{1}).put("numbers.1", std::int32_t{-2});
  f.put("numbers.2", std::int32_t{3});
  f.put_text("words", "words").put("words.type", std::uint32_t{9});
  f.put("words.element", std::uint32_t{8}).put("words.count", std::uint64_t{2});
  f.put_text("words.0", "shed").put_text("words.1", "");
  f.put_text("flags", "flags").put("flags.type", std::uint32_t{9});
  f.put("flags.element", std::uint32_t{7}).put("flags.count", std::uint64_t{2});
  f.put("flags.0", std::uint8_t{0}).put("flags.1", std::uint8_t{1});

  f.put_text("a", "a").put("a.dims", std::uint32_t{2});
  f.put("a.ne0", std::uint64_t{4}).put("a.ne1", std::uint64_t{2});
  f.put("a.type", std::uint32_t{0}).put("a.offset", std::uint64_t{0});
  f.put_text("b", "b").put("b.dims", std::uint32_t{1}).put("b.ne0", std::uint64_t{64});
  f.put("b.type", std::uint32_t{8}).put("b.offset", std::uint64_t{32});
  f.mark("header_end").pad("data", 32);
  for (int i = 0; i < 8; ++i) f.put("a.data", static_cast<float>(i) + 0.5F);
  for (int i = 0; i < 68; ++i) f.put("b.last", static_cast<std::uint8_t>(i));
  f.mark("data_end").pad("end", 32);
  return f;
}

/// Parses a copy of exactly these bytes, so that the address sanitizer sees a read past them.
inline gguf::File parse(const std::vector<std::byte>& bytes, std::string name = "test.gguf") {
  constexpr std::align_val_t kAlignment{32};
  std::shared_ptr<std::byte> copy(
      static_cast<std::byte*>(::operator new(bytes.size(), kAlignment)),
      [](std::byte* p) { ::operator delete (p, std::align_val_t{32}); });
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  return gguf::File::from_memory({copy.get(), bytes.size()}, std::move(name), copy);
}

/// Reads every byte that the file gives access to.
inline std::size_t read_all(const gguf::File& file) {
  std::size_t sum = file.metadata().entries().size();
  for (const gguf::Tensor& tensor : file.tensors()) {
    for (const std::byte b : tensor.data) sum += static_cast<std::size_t>(b);
  }
  return sum;
}

/// What a writer makes of everything that `file` holds.
inline gguf::Writer writer_of(const gguf::File& file) {
  gguf::Writer writer;
  writer.metadata() = file.metadata();
  for (const gguf::Tensor& tensor : file.tensors()) {
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.data);
  }
  return writer;
}

}  // namespace heddle::test
