#include "array/evaluating_thread.h"

#include <mutex>
#include <vector>

#include "array/node.h"

namespace heddle {

namespace {

struct Records {
  std::mutex waiting;  // guards what threads wait for
  std::mutex unused_mutex;
  std::vector<EvaluatingThread*> unused;
};

// Never destroyed: threads may end after every static variable.
Records& records() {
  static Records& instance = *new Records;
  return instance;
}

class Lease {
 public:
  Lease() {
    const std::lock_guard lock(records().unused_mutex);
    std::vector<EvaluatingThread*>& unused = records().unused;
    if (unused.empty()) {
      record_ = new EvaluatingThread;
      unused.reserve(unused.capacity() + 1);  // so that giving it back cannot fail
    } else {
      record_ = unused.back();
      unused.pop_back();
    }
  }
  ~Lease() {
    const std::lock_guard lock(records().unused_mutex);
    records().unused.push_back(record_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  EvaluatingThread& record() noexcept { return *record_; }

 private:
  EvaluatingThread* record_ = nullptr;
};

}  // namespace

EvaluatingThread& EvaluatingThread::current() noexcept {
  thread_local Lease lease;
  return lease.record();
}

/// Under the lock, what a waiting thread waits for is held by that thread and cannot go away.
bool EvaluatingThread::leads_here(const Node& first) const noexcept {
  for (const Node* node = &first; node;) {
    const EvaluatingThread* owner = node->owner();
    if (!owner) return false;  // nobody runs it any more
    if (owner == this) return true;
    const Node* next = owner->awaited_.load();
    if (node->owner() != owner) return false;  // settled meanwhile: the record may be another's
    node = next;
  }
  return false;
}

bool EvaluatingThread::wait_for(const Node& node) noexcept {
  {
    const std::lock_guard lock(records().waiting);
    if (leads_here(node)) return false;
    awaited_ = &node;
  }
  node.wait_while_running();
  const std::lock_guard lock(records().waiting);
  awaited_ = nullptr;
  return true;
}

}  // namespace heddle
