// A whole file, mapped read-only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace heddle {

/// The mapping lives as long as the object; its address never changes, moves included. Another
/// process that shortens the file meanwhile makes reads of the lost part raise SIGBUS, as with any
/// mapping.
class MappedFile {
 public:
  /// Throws Error(io) naming the path when it cannot be opened, mapped, or is not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Asks for `size` bytes from `offset` on to be read ahead in the background. Only a hint.
  void prefetch(std::size_t offset, std::size_t size) const noexcept;

 private:
  void unmap() noexcept;

  std::span<const std::byte> bytes_;
};

/// Lets the system take back the memory of those pages that lie wholly in `bytes`, if they are a
/// part of a file that is mapped now: they can still be read, from the file again. Other memory is
/// left alone.
void release_mapped_pages(std::span<const std::byte> bytes);

}  // namespace heddle
