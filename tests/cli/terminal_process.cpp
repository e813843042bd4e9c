#include "cli/terminal_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <regex>
#include <system_error>

namespace heddle::test {

namespace {

constexpr std::chrono::seconds kLimit{60};

}  // namespace

TerminalProcess::TerminalProcess(const std::vector<std::string>& arguments,
                                 const Environment& environment) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  std::array<char, 100> name{};
  pid_ = forkpty(&terminal_, name.data(), nullptr, &size);
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "forkpty");
  if (pid_ == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    for (const auto& [key, value] : environment)
      value.empty() ? unsetenv(key.c_str()) : setenv(key.c_str(), value.c_str(), 1);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  fcntl(terminal_, F_SETFD, FD_CLOEXEC);
  kept_open_ = open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
}

TerminalProcess::~TerminalProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(terminal_);
  close(kept_open_);
}

void TerminalProcess::type(const std::string& keys) {
  ASSERT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void TerminalProcess::signal(int number) {
  kill(pid_, number);
}

void TerminalProcess::resize(unsigned short columns) {
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);  // which sends SIGWINCH
}

/// False when the time is over.
bool TerminalProcess::read_some(std::chrono::steady_clock::time_point deadline) {
  pollfd polled{terminal_, POLLIN, 0};
  constexpr int kMilliseconds = 20;
  if (poll(&polled, 1, kMilliseconds) > 0) {
    std::array<char, 4096> piece;
    const ssize_t count = read(terminal_, piece.data(), piece.size());
    if (count > 0) unread_.append(piece.data(), static_cast<std::size_t>(count));
  }
  return std::chrono::steady_clock::now() < deadline;
}

std::string TerminalProcess::wait_for(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  std::size_t at;
  while ((at = unread_.find(text)) == std::string::npos) {
    if (!read_some(deadline)) {
      ADD_FAILURE() << "'" << text << "' has not come, but: " << unread_;
      return std::exchange(unread_, {});
    }
  }
  const std::string found = unread_.substr(0, at + text.size());
  unread_.erase(0, found.size());
  return found;
}

void TerminalProcess::wait_for_editing() {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  while (is_as_shells_leave_it()) {
    if (!read_some(deadline)) FAIL() << "no editing begins; it said: " << unread_;
  }
}

std::string TerminalProcess::finish(int& exit_code) {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (!read_some(deadline)) {
      ADD_FAILURE() << "still running; it said: " << unread_;
      return unread_;
    }
  }
  pid_ = -1;
  pollfd polled{terminal_, POLLIN, 0};
  while (poll(&polled, 1, 0) > 0 && (polled.revents & POLLIN)) read_some(deadline);
  exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return std::exchange(unread_, {});
}

bool TerminalProcess::is_as_shells_leave_it() const {
  termios settings{};
  tcgetattr(kept_open_, &settings);
  const tcflag_t wanted = ICANON | ECHO | ISIG;
  return (settings.c_lflag & wanted) == wanted && settings.c_cc[VINTR] == 3;
}

std::string without_escapes(const std::string& text) {
  static const std::regex escapes("\033\\[[0-9;?]*[A-Za-z]|\r|\a");
  return std::regex_replace(text, escapes, "");
}

}  // namespace heddle::test
