// Evaluations that somebody watches. Who that may be, this part does not know.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>

#include "base/failure.h"
#include "heddle/buffer.h"
#include "heddle/op.h"

namespace heddle {

/// One evaluation as its watchers are told of it; destroyed at its end. Its node's work has ended
/// when it is told of it.
class EvaluationWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  virtual ~EvaluationWatch() = default;
  /// A node whose kernels ran: it began to be encoded, was submitted, and ended.
  virtual void ran(const Op& op, std::span<const TensorSpec> inputs, std::span<const View> results,
                   Time begin, Time encoded, Time end) noexcept = 0;
  virtual void failed(const Failure& failure) noexcept = 0;
};

/// Makes the watch of an evaluation that begins on this thread: null if nobody watches it.
using MakeWatch = std::unique_ptr<EvaluationWatch> (*)();

/// Null until somebody watches for the first time.
extern std::atomic<MakeWatch> make_evaluation_watch;

inline std::unique_ptr<EvaluationWatch> watch_evaluation() {
  const MakeWatch make = make_evaluation_watch.load(std::memory_order_acquire);
  return make ? make() : nullptr;
}

}  // namespace heddle
