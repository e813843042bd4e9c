// What a run may be given, and the checks of it on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/held_states.h"
#include "heddle/executable.h"

namespace heddle {

class InputChecker {
 public:
  /// `states` are the ones that `state_rows` of `check` will count.
  InputChecker(const Graph& graph, std::span<const StateUser> states);

  /// Throws invalid_argument for unknown, missing, doubled or unsuitable inputs, and for indices
  /// out of bounds, naming the input, the place and the value. `state_rows` gives the rows that
  /// each state has now, -1 for those of its spec.
  void check(std::span<const NamedTensor> given, std::span<const std::int64_t> state_rows) const;

 private:
  struct Bound {
    std::int64_t minimum = 0, limit = 0;  // limit: exclusive
    std::optional<std::size_t> state;     // of which the limit is the rows / divisor
    std::int64_t divisor = 1;
    bool wraps = false;  // from -limit on
    std::string user;    // the op that reads the indices
  };
  struct Known {
    std::string name;
    TensorSpec spec;
    std::optional<std::size_t> extent;  // the input that says how many of its rows count
    bool fed = false;
    std::vector<Bound> bounds;
  };
  using Given = std::vector<const HostTensor*>;  // by input, null where there is none

  void find_bounds(const Graph& graph, NodeId node, std::span<const StateUser> states);
  std::optional<std::size_t> index_of(std::string_view name) const;
  Given sort_out(std::span<const NamedTensor> given) const;
  std::int64_t rows_that_count(const Known& known, const Given& given) const;
  static void check_indices(const Known& known, const HostTensor& tensor, std::int64_t rows,
                            std::span<const std::int64_t> state_rows);

  std::vector<Known> known_;  // in the order of their names
};

}  // namespace heddle
