#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "cli/line_reader.h"
#include "cli/output.h"

namespace heddle::cli {

namespace {

class PlainReader : public LineReader {
 public:
  PlainReader(const InterruptFlag& interrupt, bool shows_prompts)
      : interrupt_(interrupt), shows_prompts_(shows_prompts) {}

  Line read(std::string_view prompt) override {
    std::string shown(prompt);
    std::erase(shown, kInvisible);
    if (shows_prompts_) print_now(shown);
    while (!interrupt_.raised()) {
      const std::size_t newline = unread_.find('\n', searched_);
      if (newline != std::string::npos) return {LineEnd::newline, take(newline)};
      searched_ = unread_.size();
      require(unread_.size() <= kMostLineBytes, ErrorCode::io,
              "standard input: a line of more than {} bytes", kMostLineBytes);
      if (interrupt_.wait_for(STDIN_FILENO) != Waited::readable || read_some()) continue;
      const LineEnd end = unread_.empty() ? LineEnd::end : LineEnd::newline;
      return {end, take(unread_.size())};
    }
    return {LineEnd::interrupted, take(unread_.size())};
  }

  void remember(const std::string&) override {}

 private:
  /// False at the end.
  bool read_some() {
    std::array<char, 1 << 16> piece;
    const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    require(count >= 0, ErrorCode::io, "standard input: {}", std::strerror(errno));
    unread_.append(piece.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

  /// What stands before a newline, which goes too.
  std::string take(std::size_t newline) {
    std::string line = unread_.substr(0, newline);
    if (line.ends_with('\r')) line.pop_back();  // files from elsewhere
    unread_.erase(0, newline + 1);
    searched_ = 0;
    return line;
  }

  const InterruptFlag& interrupt_;
  bool shows_prompts_;
  std::string unread_;
  std::size_t searched_ = 0;
};

}  // namespace

std::unique_ptr<LineReader> plain_reader(const InterruptFlag& interrupt, bool shows_prompts) {
  return std::make_unique<PlainReader>(interrupt, shows_prompts);
}

}  // namespace heddle::cli
