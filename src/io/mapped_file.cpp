#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/system.h"

namespace heddle {
namespace {

[[noreturn]] void fail_errno(const std::filesystem::path& path, const char* action) {
  const int error = errno;
  fail(ErrorCode::io, "{}: cannot {}: {}", path.string(), action,
       std::generic_category().message(error));
}

/// All that are mapped now, by address.
struct Mappings {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> sizes;
};
Mappings& mappings() {
  static Mappings& all = *new Mappings;  // files in static variables may outlive every other static
  return all;
}

/// Those that lie wholly in `bytes`.
void release_pages(std::span<const std::byte> bytes) noexcept {
  const std::uintptr_t page = page_size();
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t begin = (address + page - 1) / page * page;
  const std::uintptr_t end = (address + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

class Descriptor {
 public:
  // Without O_NONBLOCK, opening a named pipe would wait for its writer.
  explicit Descriptor(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail_errno(path, "open");
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_errno(path, "read its size");
  require(S_ISREG(status.st_mode), ErrorCode::io, "{}: {}", path.string(),
          S_ISDIR(status.st_mode) ? "is a directory, not a file" : "is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // mmap refuses it; an empty span says the same
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail_errno(path, "map");
  bytes_ = {static_cast<const std::byte*>(address), size};
  const std::lock_guard lock(mappings().mutex);
  mappings().sizes[bytes_.data()] = size;
}

MappedFile::~MappedFile() {
  unmap();
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

void MappedFile::prefetch(std::size_t offset, std::size_t size) const noexcept {
  const std::size_t page = page_size();
  offset = std::min(offset, bytes_.size());
  const std::size_t begin = offset / page * page;  // madvise wants whole pages
  const std::size_t end = offset + std::min(size, bytes_.size() - offset);
  if (end <= begin) return;
  auto* address = const_cast<std::byte*>(bytes_.data()) + begin;
  (void)::madvise(address, end - begin, MADV_WILLNEED);
}

void MappedFile::unmap() noexcept {
  if (bytes_.empty()) return;
  const std::lock_guard lock(mappings().mutex);
  mappings().sizes.erase(bytes_.data());
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  bytes_ = {};
}

void release_mapped_pages(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mappings().mutex);  // so that none goes meanwhile
  auto mapping = mappings().sizes.upper_bound(bytes.data());
  if (mapping == mappings().sizes.begin()) return;
  --mapping;
  if (bytes.data() + bytes.size() <= mapping->first + mapping->second) release_pages(bytes);
}

}  // namespace heddle
