#include "cli/interrupt.h"

#include <atomic>

namespace heddle::cli {

namespace {

std::atomic<bool> interrupted_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may not take locks");

void on_interrupt(int) {
  interrupted_flag.store(true, std::memory_order_relaxed);
}

}  // namespace

InterruptScope::InterruptScope() {
  interrupted_flag = false;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_);
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &previous_, nullptr);
}

bool InterruptScope::interrupted() const noexcept {
  return interrupted_flag.load(std::memory_order_relaxed);
}

}  // namespace heddle::cli
