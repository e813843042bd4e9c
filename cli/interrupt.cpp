#include "cli/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace heddle::cli {

namespace {

std::atomic<bool> interrupted_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may not take locks");

std::atomic<int> wakes_somebody{-1};  // the other end of InterruptFlag's pipe

void on_interrupt(int) {
  const int error = errno;
  interrupted_flag.store(true, std::memory_order_relaxed);
  const int file = wakes_somebody.load(std::memory_order_relaxed);
  if (file >= 0) [[maybe_unused]]
    const ssize_t written = ::write(file, "", 1);
  errno = error;
}

void catch_interrupts(int flags, struct sigaction* previous) {
  interrupted_flag = false;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART | flags;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, previous);
}

bool is_interrupted() {
  return interrupted_flag.load(std::memory_order_relaxed);
}

}  // namespace

InterruptScope::InterruptScope() {
  catch_interrupts(SA_RESETHAND, &previous_);
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &previous_, nullptr);
}

bool InterruptScope::interrupted() const noexcept {
  return is_interrupted();
}

InterruptFlag::InterruptFlag() {
  int ends[2];
  require(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, ErrorCode::io, "a pipe for signals: {}",
          std::strerror(errno));
  wakes_ = ends[0];
  wakes_somebody = ends[1];
  catch_interrupts(0, &previous_);
}

InterruptFlag::~InterruptFlag() {
  sigaction(SIGINT, &previous_, nullptr);
  ::close(wakes_somebody.exchange(-1));
  ::close(wakes_);
}

bool InterruptFlag::raised() const noexcept {
  return is_interrupted();
}

void InterruptFlag::clear() noexcept {
  std::array<char, 64> bytes;
  while (::read(wakes_, bytes.data(), bytes.size()) > 0) {
  }
  interrupted_flag.store(false, std::memory_order_relaxed);
}

Waited InterruptFlag::wait_for(int file) const {
  std::array<pollfd, 2> polled{{{file, POLLIN, 0}, {wakes_, POLLIN, 0}}};
  const int count = ::poll(polled.data(), polled.size(), -1);
  require(count >= 0 || errno == EINTR, ErrorCode::io, "waiting for input: {}",
          std::strerror(errno));
  if (raised()) return Waited::interrupted;
  return count > 0 ? Waited::readable : Waited::signalled;
}

}  // namespace heddle::cli
