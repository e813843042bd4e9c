// A run's hold on a state: taken before its first submission, given up after its last.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/failure.h"
#include "heddle/device.h"
#include "heddle/state.h"

namespace heddle {

class StateUse {
 public:
  /// Waits for its turn. Throws the state's failure, and device_lost if the state is lost.
  explicit StateUse(Ref<State> state);

  const Ref<Buffer>& buffer() const noexcept { return state_->buffer_; }
  const TensorSpec& spec() const noexcept { return state_->spec_; }
  /// Earlier runs' use of the state, which work on it begins after.
  std::vector<Ref<Completion>> last_uses() const { return buffer()->last_uses(); }
  /// Whether those that have ended do not matter, however they did.
  bool keeps_on_failure() const noexcept { return state_->on_failure_ == State::OnFailure::keep; }
  /// A run that ends at `run` reads, or writes, the state; its last work on the state's device ends
  /// at `own` (null: there was none).
  void note(const Ref<Completion>& run, const Ref<Completion>& own, bool write);
  /// A run that had begun to write the state failed.
  void fail(std::shared_ptr<const Failure> failure);

 private:
  Ref<State> state_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace heddle
