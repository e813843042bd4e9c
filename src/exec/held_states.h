// The states of a plan, and a run's hold on all of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exec/plan.h"
#include "exec/state_use.h"

namespace heddle {

/// A state that a plan uses.
struct StateUser {
  std::string name;
  TensorSpec spec;  // its rows are the fewest that will do
  Device* device = nullptr;
  bool is_written = false;
  bool by_data = true;                   // rows are chosen by data, so more of them may be bound
  std::vector<std::uint32_t> slots;      // where kernels find it
  std::vector<std::uint32_t> fed_slots;  // those of the input that it feeds
};

std::vector<StateUser> state_users(const Plan& plan);

/// Holds every state from before a run's first submission until after its last.
class HeldStates {
 public:
  struct Held {
    const StateUser* user;
    StateUse use;
  };

  /// Takes the states, `states[i]` for `users[i]`, in one order for everybody. Throws
  /// invalid_argument when one state is bound to two names, and what StateUse throws.
  HeldStates(std::span<const StateUser> users, std::span<const Ref<State>> states);

  std::span<Held> all() noexcept { return held_; }
  std::span<const Held> all() const noexcept { return held_; }
  /// By user: the rows that it has now, where data choose among them; -1 elsewhere.
  std::span<const std::int64_t> rows() const noexcept { return rows_; }
  /// Work of `stream` begins after earlier runs' use of its device's states.
  void order_before(Stream& stream) const;

 private:
  std::vector<Held> held_;
  std::vector<std::int64_t> rows_;
};

}  // namespace heddle
