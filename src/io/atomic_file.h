// Writing a file so that readers see the old one or the whole new one, whatever happens.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace heddle {

/// Collects a file's bytes under a temporary name beside `path`. `commit` flushes them to the disk
/// and renames; without it the destructor removes them and `path` is untouched. Throws Error(io)
/// naming the path and the step that failed.
class AtomicFile {
 public:
  /// The file's permissions are `mode`, less what the user's umask takes away.
  explicit AtomicFile(std::filesystem::path path, mode_t mode = 0666);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail_errno(const char* action) const;
  void close_file();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
};

/// Removes what writers of `path` left behind that were killed: temporaries that nobody has written
/// to for so long. What cannot be removed stays.
void remove_abandoned(const std::filesystem::path& path, std::chrono::seconds age);

}  // namespace heddle
