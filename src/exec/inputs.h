// What a run may be given, and the checks of it on the host.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exec/plan.h"
#include "heddle/executable.h"

namespace heddle {

class InputChecker {
 public:
  explicit InputChecker(const Graph& graph);

  /// Throws invalid_argument for unknown, missing, doubled or unsuitable inputs, and for indices
  /// out of bounds, naming the input, the place and the value. `state_rows` gives the rows that a
  /// state has now.
  void check(std::span<const NamedTensor> given,
             const std::map<std::string, std::int64_t>& state_rows) const;

  bool is_fed(std::string_view name) const;

 private:
  struct Bound {
    std::int64_t minimum = 0, limit = 0;  // limit: exclusive
    std::string state;                    // not empty: the limit is the state's rows / divisor
    std::int64_t divisor = 1;
    std::string user;  // the op that reads the indices
  };
  struct Known {
    TensorSpec spec;
    std::string extent;
    bool fed = false;
    std::vector<Bound> bounds;
  };
  void find_bounds(const Graph& graph, NodeId node);
  void check_tensor(const std::string& name, const Known& known, const HostTensor& tensor,
                    std::int64_t rows, const std::map<std::string, std::int64_t>& state_rows) const;
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace heddle
