#include "exec/profile.h"

#include <algorithm>

namespace heddle {

namespace {

double seconds(ObservedTime from, ObservedTime to) {
  return std::chrono::duration<double>(to - from).count();
}

std::vector<ProfileRow> slowest_first(const auto& rows) {
  std::vector<ProfileRow> list;
  for (const auto& [key, row] : rows) list.push_back(row);
  std::ranges::stable_sort(list, std::ranges::greater(), &ProfileRow::seconds);
  return list;
}

}  // namespace

Profile::Profile(std::map<std::string, DeviceBounds> bounds) : bounds_(std::move(bounds)) {}

void Profile::begin() {
  begun_ = std::chrono::steady_clock::now();
}

void Profile::end() {
  wall_ += seconds(begun_, std::chrono::steady_clock::now());
}

void Profile::run_began(const ObservedRun&) {
  ++runs_;
}

void Profile::node_ran(const ObservedRun&, const ObservedRecord& record) {
  const ObservedNode& node = record.what;
  if (node.device.empty()) return;
  const double encode = seconds(record.begin, record.encoded),
               wait = seconds(record.encoded, record.end);
  double bound = 0;
  if (const auto known = bounds_.find(node.device); known != bounds_.end()) {
    bound = std::max(record.bytes / known->second.bytes_per_second,
                     record.operations / known->second.operations_per_second);
  }
  const auto add = [&](ProfileRow& row, const std::string& name) {
    row.name = name;
    row.device = node.device;
    ++row.count;
    row.encode += encode;
    row.wait += wait;
    row.bytes += record.bytes;
    row.operations += record.operations;
    row.bound += bound;
  };
  add(families_[{node.family, node.device}], node.family);
  add(nodes_[{node.name, node.device}], node.name);
  in_nodes_ += encode + wait;
}

void Profile::run_ended(const ObservedRun& run, ObservedTime end, const Error*) {
  in_runs_ += seconds(run.begin, end);
}

ProfileResult Profile::result() const {
  return {.runs = runs_,
          .wall = wall_,
          .within_runs = in_runs_ - in_nodes_,
          .outside_runs = wall_ - in_runs_,
          .families = slowest_first(families_),
          .nodes = slowest_first(nodes_)};
}

}  // namespace heddle
