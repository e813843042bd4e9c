// Watching runs: which op ran when and where, and what came out of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "heddle/tensor.h"

namespace heddle {

/// A node of a plan: an op, a copy between devices, or a leaf that one of them reads.
struct ObservedNode {
  enum class Kind : std::uint8_t { op, copy, input, parameter, state, constant };
  struct Source {
    std::uint32_t node, output;  // node: index in ObservedPlan::nodes
  };
  Kind kind = Kind::op;
  std::string op;      // "add"; "copy", or a leaf's kind
  std::string family;  // "binary": what differs in a detail only shares one
  /// "blk.0.ffn_down.weight/add": unique in its plan, and the same in plans for other devices, as
  /// far as these run the same ops. Evaluated lazily: the op and which of its kind, "add#3".
  std::string name;
  std::string text;            // the op with its fields
  std::uint32_t id = 0;        // as `heddle plan` shows it
  std::vector<Source> inputs;  // views are looked through
  std::vector<TensorSpec> outputs;
  std::int32_t split = -1;           // -1: a leaf, or lazy
  std::string device;                // where it runs; empty: a leaf
  double bytes = 0, operations = 0;  // cost() of it when all rows count
  bool writes_state = false;         // output 0 is a state's next version
};
std::string_view to_string(ObservedNode::Kind kind) noexcept;

/// What runs of one Executable have in common.
struct ObservedPlan {
  struct Split {
    std::string device;
    bool feeds = false;                // folds outputs back into states, after all others
    std::vector<std::uint32_t> nodes;  // in the order in which they run
  };
  /// Memory that holds output `output` of `node`, or its workspace (-1), from step `first` to step
  /// `last`, both counted. Steps count the nodes of all splits.
  struct Item {
    std::uint32_t node;
    std::int32_t output;
    std::size_t offset, bytes;
    std::uint32_t first, last;
  };
  struct Arena {
    std::string device;
    std::size_t bytes = 0, lower_bound = 0;
    std::vector<Item> items;
  };
  std::uint64_t id = 0;  // unique in the process
  std::vector<ObservedNode> nodes;
  std::vector<Split> splits;
  std::vector<Arena> arenas;
};

using ObservedTime = std::chrono::steady_clock::time_point;

struct ObservedRun {
  std::uint64_t id = 0;                      // unique in the process, rising
  std::shared_ptr<const ObservedPlan> plan;  // null: evaluated lazily
  ObservedTime begin;
};

/// An output, row-major, on the host, while the observer looks at it.
struct ObservedValue {
  std::uint32_t output = 0;
  TensorSpec spec;  // of the rows that count in this run; others hold nothing in particular
  std::span<const std::byte> bytes;
};

/// What a node did in a run.
struct ObservedRecord {
  std::uint32_t node = 0;  // index in the plan's nodes; lazily, the position in the run
  const ObservedNode& what;
  ObservedTime begin;                     // of encoding it
  ObservedTime encoded;                   // and submitted; the CPU has computed by then
  ObservedTime end;                       // of waiting for it
  double bytes = 0, operations = 0;       // for the rows, and positions, that count in this run
  std::span<const ObservedValue> values;  // those that the observer wanted
};

/// Is told of runs. Calls come from the threads that run, one at a time for one observer; runs of
/// several threads interleave. They are part of the run, and lengthen it, but no record's times.
/// What an observer runs itself goes unobserved; the Executable and the states of the run that it
/// is told of are in use, and not to be touched.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void run_began(const ObservedRun&) {}
  /// Whether it wants to see that output each time the node has run. Whole states are large.
  virtual bool wants(const ObservedRun&, const ObservedNode&, std::uint32_t /*output*/) {
    return false;
  }
  virtual void node_ran(const ObservedRun&, const ObservedRecord&) {}
  /// `error`: what ended it, or null.
  virtual void run_ended(const ObservedRun&, ObservedTime /*end*/, const Error* /*error*/) {}
};

/// While it lives, the observer is told of the runs that begin: of Executables, and evaluations of
/// arrays. Such runs go node by node and have ended when they have been submitted; their results
/// are the same. While nobody observes, runs cost what they do without observers.
///
/// An observer that throws harms only itself: it is told nothing more, runs go on, and the error
/// waits in `error`. Thread-safe, but for beginning and ending.
class ObserveScope {
 public:
  enum class Of : std::uint8_t {
    this_thread,  // what it runs; such scopes end in the opposite order of their beginning
    process,
  };
  explicit ObserveScope(std::shared_ptr<Observer> observer, Of of = Of::this_thread);
  /// Waits for calls to the observer to return; there are none afterwards.
  ~ObserveScope();
  ObserveScope(const ObserveScope&) = delete;
  ObserveScope& operator=(const ObserveScope&) = delete;

  /// The first exception that the observer threw.
  std::optional<Error> error() const;

  struct Watched;  // for executors

 private:
  std::shared_ptr<Watched> watched_;
  Of of_;
};

}  // namespace heddle
