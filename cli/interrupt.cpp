#include "cli/interrupt.h"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace heddle::cli {

namespace {

std::atomic<bool> interrupted_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may not take locks");

void on_interrupt(int) {
  interrupted_flag.store(true, std::memory_order_relaxed);
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
  catch_interrupts(0, &previous_);
}

InterruptFlag::~InterruptFlag() {
  sigaction(SIGINT, &previous_, nullptr);
}

bool InterruptFlag::raised() const noexcept {
  return is_interrupted();
}

void InterruptFlag::clear() noexcept {
  interrupted_flag.store(false, std::memory_order_relaxed);
}

bool InterruptFlag::wait_for(int file) const {
  // Signals are let in by ppoll alone, so that none comes between the question and the wait.
  sigset_t interrupt, before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  int ready = 0, error = 0;
  while (ready == 0 && !raised()) {
    pollfd polled{file, POLLIN, 0};
    ready = ppoll(&polled, 1, nullptr, &before);
    error = errno;
    if (ready < 0 && error == EINTR) ready = 0;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  require(ready >= 0, ErrorCode::io, "waiting for input: {}", std::strerror(error));
  return !raised();
}

}  // namespace heddle::cli
