// Writing a GGUF file whose tensors never lie in memory all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/gguf.h"
#include "io/atomic_file.h"

namespace heddle::gguf {

/// A tensor of a file to be, without its data.
struct TensorEntry {
  std::string name;
  DType dtype;
  Shape shape;
};

/// Bytes of a tensor that GGUF can hold; throws invalid_argument for the others.
std::size_t checked_bytes(const TensorEntry& tensor);

/// `general.alignment`, or the default; throws invalid_argument if it is against the format.
std::uint32_t checked_alignment(const Metadata& metadata);

/// Everything before the first tensor's data and its padding. Throws as Writer does for what a file
/// cannot hold.
std::vector<std::byte> header_bytes(const Metadata& metadata, std::span<const TensorEntry> tensors);

using ByteSink = std::function<void(std::span<const std::byte>)>;
/// Zeros from `position` to the next multiple of `alignment`.
void pad(const ByteSink& sink, std::uint64_t position, std::uint32_t alignment);

/// A version 3 file, written atomically: the data of all tensors, one after the other, in pieces of
/// any size, then `commit`. Nothing is left behind where that is not reached. Throws Error(io).
class StreamWriter {
 public:
  /// Throws Error(io) also where the disk lacks the room.
  StreamWriter(const std::filesystem::path& path, const Metadata& metadata,
               std::vector<TensorEntry> tensors);

  /// The next bytes of the current tensor: of one, never across its end.
  void write(std::span<const std::byte> bytes);
  /// Throws invalid_argument when bytes are missing.
  void commit();

 private:
  void pad_from(std::uint64_t position);
  void end_tensor();

  std::vector<TensorEntry> tensors_;
  std::uint32_t alignment_;
  AtomicFile file_;
  std::size_t current_ = 0;
  std::uint64_t written_ = 0;  // of the current tensor
};

}  // namespace heddle::gguf
