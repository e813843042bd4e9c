#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

namespace heddle::cli {

namespace {

constexpr char kEraseLine[] = "\r\033[K";

}  // namespace

Progress::Progress() : on_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  clear();
}

void Progress::show(const std::string& text) {
  if (!on_terminal_) return;
  std::fprintf(stderr, "%s%s", kEraseLine, text.c_str());
  shown_ = true;
}

void Progress::clear() {
  if (shown_) std::fputs(kEraseLine, stderr);
  shown_ = false;
}

}  // namespace heddle::cli
