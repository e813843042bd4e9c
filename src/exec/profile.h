// Where the time of runs goes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "heddle/observe.h"

namespace heddle {

class Device;

/// What a device can do at best, as far as heddle's own kernels show.
struct DeviceBounds {
  double bytes_per_second = 0, operations_per_second = 0;
};
/// Reads a large f32 weight for one row, and multiplies f32 matrices; takes a second or less on a
/// device of any speed that is worth measuring. What it allocates is gone on return.
DeviceBounds measure_bounds(Device& device);

/// Time and work of a node in all runs, or of many together.
struct ProfileRow {
  std::string name, device;
  std::uint64_t count = 0;
  double encode = 0, wait = 0;  // seconds; on the CPU, all is computed while it is encoded
  double bytes = 0, operations = 0;
  double bound = 0;  // seconds that the device needs at least; 0: not known
  double seconds() const noexcept { return encode + wait; }
};

struct ProfileResult {
  std::uint64_t runs = 0;
  double wall = 0;          // seconds under observation: nodes, within_runs and outside_runs
  double within_runs = 0;   // binding, reading what inputs say, telling observers
  double outside_runs = 0;  // sampling, text
  /// By family, and by node; each list has all nodes' time. The slowest come first.
  std::vector<ProfileRow> families, nodes;
};

/// Adds up what it is told. Runs of several threads at once would be counted side by side: attach
/// it to one thread.
class Profile final : public Observer {
 public:
  /// By device name; rows of other devices have no bound.
  explicit Profile(std::map<std::string, DeviceBounds> bounds);

  /// Time counts between these.
  void begin();
  void end();
  ProfileResult result() const;

  void run_began(const ObservedRun& run) override;
  void node_ran(const ObservedRun& run, const ObservedRecord& record) override;
  void run_ended(const ObservedRun& run, ObservedTime end, const Error* error) override;

 private:
  using Key = std::pair<std::string, std::string>;  // name and device
  const std::map<std::string, DeviceBounds> bounds_;
  std::map<Key, ProfileRow> families_, nodes_;
  std::uint64_t runs_ = 0;
  double wall_ = 0, in_runs_ = 0, in_nodes_ = 0;
  ObservedTime begun_;
};

}  // namespace heddle
