#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"

namespace heddle::cli {

namespace {

void require_written(bool written) {
  require(written, ErrorCode::io, "standard output: {}", std::strerror(errno));
}

std::string read_all(int file, std::string_view name) {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (true) {
    const ssize_t count = ::read(file, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    require(count >= 0, ErrorCode::io, "{}: {}", name, std::strerror(errno));
    if (count == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

void print(std::string_view text) {
  require_written(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void flush_output() {
  require_written(std::fflush(stdout) == 0);
}

void print_now(std::string_view text) {
  print(text);
  flush_output();
}

std::string read_input() {
  return read_all(STDIN_FILENO, "standard input");
}

std::string read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(file >= 0, ErrorCode::io, "{}: {}", path, std::strerror(errno));
  struct Closed {
    int file;
    ~Closed() { ::close(file); }
  } const closed{file};
  return read_all(file, path);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 100 ? 0 : 1, units[unit]);
}

std::string count_text(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.2f} B", value / 1e9);
  if (value >= 1e5) return fmt::format("{:.2f} M", value / 1e6);
  return fmt::format("{}", count);
}

}  // namespace heddle::cli
