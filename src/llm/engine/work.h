// A request on its way through the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "llm/engine/mailbox.h"
#include "llm/engine/pool.h"
#include "llm/reply.h"

namespace heddle::llm {

using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct Work {
  std::shared_ptr<Mailbox> mailbox;
  std::uint64_t order = 0;      // of arrival
  std::vector<TokenId> tokens;  // whose KV is wanted: the prompt, and what has been sampled
  std::optional<Reply> reply;   // of a text to be continued
  std::optional<Pool> pool;     // of one whose vector is wanted
  SequenceId sequence = -1;     // -1: none yet, or given back
  Usage usage;
  Clock::time_point submitted = Clock::now();
  std::optional<Clock::time_point> started, answered;  // answered: the prompt is computed
};

/// What was thrown, as an Error.
Error error_of(const std::exception_ptr& thrown);

/// The last thing that a request hears.
struct Farewell {
  std::shared_ptr<Mailbox> mailbox;
  Event event;
};

}  // namespace heddle::llm
