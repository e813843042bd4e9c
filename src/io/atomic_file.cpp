#include "io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace heddle {
namespace {

constexpr std::size_t kMaxWrite = std::size_t{1} << 30;  // Linux writes at most 2 GiB at a time

constexpr const char* kMark = ".tmp-";

/// A name that no other writer uses: the process and a counter tell them apart.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  std::filesystem::path temporary = path;
  temporary += fmt::format("{}{}-{}", kMark, ::getpid(), counter.fetch_add(1));
  return temporary;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path, mode_t mode)
    : path_(std::move(path)), temporary_(temporary_beside(path_)) {
  // Not mkstemp, whose files nobody else may read: here the user's umask decides.
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd_ < 0) fail_errno("create");
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kMaxWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_errno("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail_errno("flush");
  close_file();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno("rename the new file to");
  temporary_.clear();
  // The rename itself is on the disk once the directory is.
  const std::filesystem::path parent = path_.parent_path();
  fd_ = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0 || ::fsync(fd_) != 0) fail_errno("flush the directory of");
  close_file();
}

void AtomicFile::fail_errno(const char* action) const {
  const int error = errno;
  fail(ErrorCode::io, "{}: cannot {}: {}", path_.string(), action,
       std::generic_category().message(error));
}

void AtomicFile::close_file() {
  if (::close(std::exchange(fd_, -1)) != 0) fail_errno("close");
}

void remove_abandoned(const std::filesystem::path& path, std::chrono::seconds age) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const std::string prefix = path.filename().string() + kMark;
  const fs::file_time_type oldest = fs::file_time_type::clock::now() - age;
  for (fs::directory_iterator i(parent, error), end; !error && i != end; i.increment(error)) {
    if (!i->path().filename().string().starts_with(prefix)) continue;
    const fs::file_time_type written = i->last_write_time(error);
    if (!error && written < oldest) fs::remove(i->path(), error);
    error.clear();
  }
}

}  // namespace heddle
