// Any bytes at all are either refused with Error(io) or arrays that can be read in full. The first
// byte chooses the format.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target array_file_fuzz
//   build/fuzz/fuzz/array_file_fuzz -max_total_time=600 -max_len=4096 CORPUS_DIR
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "heddle/error.h"
#include "heddle/io.h"

namespace {

using heddle::ArrayMap;

/// A file in memory, by a name.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : fd_(::memfd_create("fuzz", 0)) {
    if (fd_ < 0 || ::write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

ArrayMap load(int format, const std::string& path) {
  switch (format) {
    case 0:
      return {{"a", heddle::load(path)}};
    case 1:
      return heddle::load_npz(path);
    case 2:
      return heddle::load_safetensors(path).first;
    default:
      return heddle::load_gguf(path).first;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const MemoryFile file(data + 1, size - 1);
  try {
    for (const auto& [name, array] : load(data[0] % 4, file.path())) (void)array.to_bytes();
  } catch (const heddle::Error& error) {
    if (error.code() == heddle::ErrorCode::io) return 0;
    std::fprintf(stderr, "array_file_fuzz: another error than io: %s\n", error.what());
    std::abort();
  }
  return 0;
}
