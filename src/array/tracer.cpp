#include "array/tracer.h"

#include <utility>

namespace heddle {

namespace {

thread_local TracerScope* innermost = nullptr;

}  // namespace

bool Tracer::keep(Node& node) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (open_.load(std::memory_order_acquire)) {
      kept_.push_back(Ref<Node>(&node));
      node.retain();
      return true;
    }
  }
  return outer_ && outer_->keep(node);
}

bool Tracer::take_over(const Ref<Node>& node) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (open_.load(std::memory_order_acquire)) {
      kept_.push_back(node);
      return true;
    }
  }
  return outer_ && outer_->take_over(node);
}

void Tracer::close() noexcept {
  std::vector<Ref<Node>> kept;
  {
    const std::lock_guard lock(mutex_);
    open_.store(false, std::memory_order_release);
    kept.swap(kept_);
  }
  for (const Ref<Node>& node : kept) {
    if (!outer_ || !outer_->take_over(node)) node->let_go();
  }
}

TracerScope::TracerScope()
    : tracer_(make_ref<Tracer>(current())), outer_(std::exchange(innermost, this)) {}

TracerScope::~TracerScope() {
  tracer_->close();
  innermost = outer_;
}

Ref<Tracer> TracerScope::current() noexcept {
  return innermost ? innermost->tracer_ : nullptr;
}

}  // namespace heddle
