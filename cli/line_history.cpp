#include "cli/line_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "heddle/error.h"
#include "io/atomic_file.h"

namespace heddle::cli {

namespace {

constexpr mode_t kOwnerOnly = 0600;

std::string escaped(std::string_view input) {
  std::string line;
  for (const char c : input) {
    if (c == '\n')
      line += "\\n";
    else if (c == '\\')
      line += "\\\\";
    else
      line += c;
  }
  return line;
}

/// Nothing for what `escaped` does not write, or terminals should not be given.
std::optional<std::string> unescaped(std::string_view line) {
  std::string input;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (static_cast<unsigned char>(line[i]) < 0x20 && line[i] != '\t') return std::nullopt;
    if (line[i] != '\\') {
      input += line[i];
      continue;
    }
    const char next = ++i < line.size() ? line[i] : '\0';
    if (next != 'n' && next != '\\') return std::nullopt;
    input += next == 'n' ? '\n' : '\\';
  }
  return input;
}

std::filesystem::path below(const char* variable, const char* rest) {
  const char* directory = std::getenv(variable);
  return directory && *directory ? std::filesystem::path(directory) / rest : "";
}

}  // namespace

std::filesystem::path chat_history_path() {
  const std::filesystem::path state = below("XDG_STATE_HOME", "heddle/chat_history");
  return state.empty() ? below("HOME", ".local/state/heddle/chat_history") : state;
}

LineHistory::LineHistory(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  if (path_.empty()) return;
  std::filesystem::create_directories(path_.parent_path(), error);
  // A device or a pipe would be read for ever.
  if (std::filesystem::is_regular_file(path_, error)) load();
}

void LineHistory::load() {
  std::ifstream file(path_, std::ios::binary);
  std::size_t lines = 0;
  std::string line;
  while (std::getline(file, line)) {
    ++lines;
    if (line.empty() || line.size() > 2 * kMostHistoryBytes) continue;
    if (std::optional<std::string> input = unescaped(line)) inputs_.push_back(std::move(*input));
    if (inputs_.size() > 2 * kMostHistory)
      inputs_.erase(inputs_.begin(), inputs_.end() - kMostHistory);
  }
  if (inputs_.size() > kMostHistory) inputs_.erase(inputs_.begin(), inputs_.end() - kMostHistory);
  if (lines <= 2 * kMostHistory) return;
  std::string newest;
  for (const std::string& input : inputs_) newest += escaped(input) + '\n';
  try {
    AtomicFile shorter(path_, kOwnerOnly);
    shorter.write(std::as_bytes(std::span(newest)));
    shorter.commit();
  } catch (const Error&) {
  }
}

bool LineHistory::add(const std::string& input) {
  const bool again = !inputs_.empty() && inputs_.back() == input;
  if (input.empty() || again || input.size() > kMostHistoryBytes) return false;
  inputs_.push_back(input);
  if (!path_.empty()) append(escaped(input) + '\n');
  return true;
}

/// In one write, so that two programs may do so at once.
void LineHistory::append(const std::string& line) const {
  const int file =
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, kOwnerOnly);
  if (file < 0) return;
  ::fchmod(file, kOwnerOnly);
  [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
  ::close(file);
}

}  // namespace heddle::cli
