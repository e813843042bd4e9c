// Random array programs as data: replayed any number of times from the same inputs, lazily in many
// ways or through a plan, they must give the same bytes.
//
// Operands are chosen such that every step is valid, and values stay in ranges that keep infinities
// and NaNs out. New ops get a Rule in program_rules*.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/array.h"
#include "heddle/device.h"
#include "heddle/graph.h"

namespace heddle::test {

using Bytes = std::vector<std::byte>;

struct ProgramInput {
  TensorSpec spec;
  Bytes bytes;
};

/// One op. Values are numbered in the order in which steps give them.
struct ProgramStep {
  std::size_t rule = 0;               // which op
  std::vector<std::size_t> operands;  // values
  std::vector<std::int64_t> numbers;  // axes, extents, kinds: as the rule reads them
  std::vector<TensorSpec> outputs;
  bool fails = false;  // when it runs, on the CPU, where it fails nobody else
};

struct Program {
  unsigned seed = 0;
  std::vector<ProgramInput> inputs;  // each is the value of one step
  std::vector<ProgramStep> steps;
  std::vector<std::size_t> results;  // the values that a replay gives

  std::size_t value_count() const;
};

struct ProgramOptions {
  int steps = 60;
  int failing = 0;     // percent of the steps that fail when they run
  bool halves = true;  // with values of f16 and bf16
};
Program random_program(unsigned seed, const ProgramOptions& options = {});

/// One step a line, with the seed.
std::string to_string(const Program& program);

// ---- Replays

/// Where a step runs.
struct Place {
  Device* device = nullptr;      // null: as built without a scope
  Ref<Stream> stream = nullptr;  // of the device; null: its default one
};
class PlaceScope {
 public:
  explicit PlaceScope(const Place& place);

 private:
  std::optional<DeviceScope> device_;
  std::optional<StreamScope> stream_;
};

/// Every value, built and not evaluated. `place` is asked for each step (none: without a scope),
/// `input` makes the array of an input (its values, if empty).
std::vector<Array> build_values(const Program& program, const std::function<Place()>& place,
                                const std::function<Array(std::size_t input)>& input = {});

struct LazyRun {
  unsigned seed = 0;                 // of evaluations, drops and places
  Device* device = nullptr;          // null: the CPU
  bool partly = false;               // some of the steps run on the CPU all the same
  std::vector<Ref<Stream>> streams;  // of the device; steps are on one of them or its default one
};

/// Builds, evaluates now and then, waiting, not waiting or later, drops handles some time after
/// their last use, and holds the memory of some values as views, as constants of graphs and under
/// new arrays: the results' bytes. Memory so held that changes is reported as a test's failure.
std::vector<Bytes> run_lazily(const Program& program, const LazyRun& run);

/// As a graph, whose outputs are the results.
Graph graph_of(const Program& program);

/// As a graph, compiled and verified: the results' bytes. `device` as for LazyRun.
std::vector<Bytes> run_planned(const Program& program, Device* device, bool fuse);

}  // namespace heddle::test
