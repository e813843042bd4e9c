#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace fable {
namespace {

constexpr int kBarWidth = 24;
constexpr int kLines = 20;  // in all, where there is no terminal
constexpr std::chrono::milliseconds kRefresh{100};

std::string bar(int done, int all, int width) {
  const int full = static_cast<int>(std::int64_t{width} * done / all);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '-') + "] ";
}

/// Of the terminal, or 80.
int columns() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(const Training& training)
    : training_(training),
      on_terminal_(::isatty(STDERR_FILENO) == 1),
      first_(training.steps_done()) {}

Progress::~Progress() {
  if (on_terminal_ && shown_ != Clock::time_point{}) std::fputs("\n", stderr);
}

std::string Progress::line(double seconds) const {
  const int done = training_.steps_done(), all = training_.plan().steps;
  const History& history = training_.history();
  const double pace = seconds / std::max(1, done - first_);  // seconds a step
  const int left = static_cast<int>(pace * (all - done) + 0.5);
  const double tokens = training_.plan().rows * training_.plan().length / std::max(pace, 1e-9);
  return fmt::format("step {}/{}  loss {:.3f}  held out {:.3f}  {:.0f} tokens/s  {}:{:02} left",
                     done, all, history.losses.back(), history.held_out.back().second, tokens,
                     left / 60, left % 60);
}

void Progress::show() {
  const auto now = Clock::now();
  const int done = training_.steps_done(), all = training_.plan().steps;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  if (on_terminal_) {
    if (now - shown_ < kRefresh && done != all) return;
    // A line that wraps could not be overwritten.
    const std::string text = line(seconds).substr(0, static_cast<std::size_t>(columns() - 1));
    const int room = columns() - 1 - static_cast<int>(text.size()) - 3;  // beside "[] "
    const std::string shown = room > 2 ? bar(done, all, std::min(room, kBarWidth)) + text : text;
    std::fprintf(stderr, "\r\033[K%s", shown.c_str());
  } else {
    if (done % std::max(1, all / kLines) != 0 && done != all) return;
    std::fprintf(stderr, "%s\n", line(seconds).c_str());
  }
  std::fflush(stderr);
  shown_ = now;
}

}  // namespace fable
