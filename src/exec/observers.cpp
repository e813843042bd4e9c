#include "exec/observers.h"

#include <algorithm>

#include "base/check.h"
#include "exec/observed_evaluation.h"

namespace heddle {

std::atomic<int> observe_scopes{0};

thread_local int ObserveScope::Watched::Telling::depth = 0;

namespace {

struct ProcessWide {
  std::mutex mutex;
  Watchers watchers;
};
// Never destroyed: threads may run until after every static is gone.
ProcessWide& process_wide() {
  static ProcessWide& all = *new ProcessWide;
  return all;
}

thread_local Watchers of_this_thread;

}  // namespace

std::string_view to_string(ObservedNode::Kind kind) noexcept {
  using Kind = ObservedNode::Kind;
  switch (kind) {
    case Kind::op:
      return "op";
    case Kind::copy:
      return "copy";
    case Kind::input:
      return "input";
    case Kind::parameter:
      return "parameter";
    case Kind::state:
      return "state";
    case Kind::constant:
      return "constant";
  }
  return "unknown";
}

Watchers watchers_of_this_thread() {
  if (ObserveScope::Watched::Telling::now()) return {};
  ProcessWide& all = process_wide();
  const std::lock_guard lock(all.mutex);
  Watchers watchers = all.watchers;
  watchers.insert(watchers.end(), of_this_thread.begin(), of_this_thread.end());
  return watchers;
}

std::uint64_t next_run_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

ObserveScope::ObserveScope(std::shared_ptr<Observer> observer, Of of) : of_(of) {
  require(observer != nullptr, ErrorCode::invalid_argument, "an observe scope without an observer");
  watched_ = std::make_shared<Watched>(std::move(observer));
  if (of_ == Of::process) {
    ProcessWide& all = process_wide();
    const std::lock_guard lock(all.mutex);
    all.watchers.push_back(watched_);
  } else {
    of_this_thread.push_back(watched_);
  }
  watch_evaluations();
  observe_scopes.fetch_add(1, std::memory_order_release);
}

ObserveScope::~ObserveScope() {
  observe_scopes.fetch_sub(1, std::memory_order_release);
  if (of_ == Of::process) {
    ProcessWide& all = process_wide();
    const std::lock_guard lock(all.mutex);
    std::erase(all.watchers, watched_);
  } else {
    std::erase(of_this_thread, watched_);
  }
  const std::lock_guard lock(watched_->mutex);
  watched_->ended = true;
}

std::optional<Error> ObserveScope::error() const {
  const std::lock_guard lock(watched_->mutex);
  if (!watched_->failure) return std::nullopt;
  return Error(watched_->failure->code,
               "an observer of runs failed: " + watched_->failure->message);
}

}  // namespace heddle
