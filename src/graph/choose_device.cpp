#include "graph/choose_device.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "graph/versions.h"
#include "op/infer.h"

namespace heddle {

namespace {

bool as_it_is(const Legal& legal) {
  return legal.how == Legal::How::direct || legal.how == Legal::How::contiguous;
}

std::vector<OperandSpec> operands_of(const PerValue<OperandSpec>& layouts, const GraphNode& node) {
  std::vector<OperandSpec> operands;
  operands.reserve(node.inputs.size());
  for (const ValueId input : node.inputs) operands.push_back(layouts[input]);
  return operands;
}

bool runs(const GraphNode& node) {
  return !node.dead && !is_leaf(node.op) && !is_view(node.op);
}

/// A feed writes over a state in place, after everything else: it cannot be taken apart.
Legal ask(Device& device, const GraphNode& node, const std::vector<OperandSpec>& operands) {
  Legal legal = legalize(device, node.op, operands, node.outputs);
  if (legal.how != Legal::How::lowered || !std::holds_alternative<Feed>(node.op)) return legal;
  Legal refused;
  refused.reason = fmt::format("feed on {}: it has no kernel of its own", device.name());
  return refused;
}

}  // namespace

namespace {

std::vector<Device*> candidates_for(Device* pin, const PassOptions& options) {
  if (pin) {
    if (options.strict_pins || pin == &cpu_device()) return {pin};
    return {pin, &cpu_device()};
  }
  if (options.pin) return {options.pin};
  std::vector<Device*> devices = options.devices;
  if (std::ranges::find(devices, &cpu_device()) == devices.end()) devices.push_back(&cpu_device());
  return devices;
}

}  // namespace

const std::vector<Device*>& Candidates::of(const GraphNode& node) {
  const auto [known, is_new] = by_pin_.try_emplace(node.pin);
  if (is_new) known->second = candidates_for(node.pin, options_);
  return known->second;
}

DeviceChoices::DeviceChoices(const Graph& graph, const PassOptions& options)
    : graph_(graph), options_(options), candidates_(options), layouts_(value_layouts(graph)) {
  const Versions versions(graph);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    if (node.dead || !writes_state(node.op)) continue;
    const NodeId state = versions.state[node.inputs[0]];
    if (state == kNoNode) continue;
    writers_[state].push_back(id);
    state_of_writer_[id] = state;
  }
}

/// Of the candidates before the CPU, the first that can run it as it is, else the first that can
/// run its lowered form; then the CPU; then, likewise, those after it.
template <class Ask>
Choice DeviceChoices::first_able(const std::vector<Device*>& candidates, const Ask& ask,
                                 std::vector<std::string>* reasons) const {
  for (auto begin = candidates.begin(); begin != candidates.end();) {
    auto end = std::find(begin, candidates.end(), &cpu_device());
    if (end == begin) ++end;
    Choice lowered;
    for (; begin != end; ++begin) {
      Legal legal = ask(**begin);
      if (as_it_is(legal)) return {*begin, std::move(legal)};
      if (legal.how == Legal::How::no) {
        if (reasons) reasons->push_back(std::move(legal.reason));
      } else if (!lowered.device) {
        lowered = {*begin, std::move(legal)};
      }
    }
    if (lowered.device) return lowered;
  }
  return {};
}

Legal DeviceChoices::ask_as_written(Device& device, NodeId id) {
  return ask(device, graph_.nodes[id], operands_of(layouts_, graph_.nodes[id]));
}

/// The state's device, once it is known.
const std::vector<Device*>& DeviceChoices::candidates_of_writer(NodeId id) {
  const auto found = state_of_writer_.find(id);
  if (found == state_of_writer_.end()) return candidates_.of(graph_.nodes[id]);
  const std::vector<NodeId>& writers = writers_[found->second];
  if (writers.size() == 1) return candidates_.of(graph_.nodes[id]);
  const auto [known, is_new] = device_of_state_.try_emplace(found->second);
  if (is_new) known->second = device_for_writers(writers);
  return known->second;
}

/// The best device of those that can run every one of several writes of a state, if there is any.
std::vector<Device*> DeviceChoices::device_for_writers(const std::vector<NodeId>& writers) {
  std::vector<Device*> candidates = candidates_.of(graph_.nodes[writers[0]]);
  for (const NodeId writer : writers) {
    const std::vector<Device*>& its = candidates_.of(graph_.nodes[writer]);
    std::erase_if(candidates, [&](Device* d) { return std::ranges::find(its, d) == its.end(); });
  }
  const auto worst = [&](Device& device) {
    Legal all = ask_as_written(device, writers[0]);
    for (const NodeId writer : writers) {
      Legal legal = ask_as_written(device, writer);
      if (legal.how > all.how) all = std::move(legal);
    }
    return all;
  };
  Device* device = first_able(candidates, worst, nullptr).device;
  if (!device) return {};
  return {device};
}

Choice DeviceChoices::choose(NodeId id, const std::vector<OperandSpec>& operands) {
  const GraphNode& node = graph_.nodes[id];
  Refusal refusal{id, {}};
  if (node.pin && options_.pin && node.pin != options_.pin) {
    refusal.reasons.push_back(fmt::format("it is pinned to \"{}\", the graph to \"{}\"",
                                          node.pin->name(), options_.pin->name()));
    refusals_.push_back(std::move(refusal));
    return {};
  }
  const std::vector<Device*>& candidates = candidates_of_writer(id);
  const auto ask_device = [&](Device& device) { return ask(device, node, operands); };
  Choice choice = first_able(candidates, ask_device, &refusal.reasons);
  if (choice.device) return choice;
  if (candidates.empty()) {
    refusal.reasons.push_back(
        fmt::format("no one device may and can run every write of state \"{}\"",
                    leaf_name(graph_.nodes[state_of_writer_.at(id)].op)));
  }
  refusals_.push_back(std::move(refusal));
  return {};
}

Device* DeviceChoices::choose_for_copy(const GraphNode& copy, const OperandSpec& operand,
                                       Device* made_on) {
  std::vector<Device*> candidates = candidates_.of(copy);
  if (std::ranges::find(candidates, made_on) != candidates.end()) {
    candidates.insert(candidates.begin(), made_on);
  }
  std::vector<std::string> reasons;
  const auto ask_device = [&](Device& device) { return ask(device, copy, {operand}); };
  const Choice choice = first_able(candidates, ask_device, &reasons);
  require(choice.device != nullptr, ErrorCode::unsupported,
          "no device can make {} contiguous, as a view of it needs: {}", to_string(operand),
          fmt::join(reasons, "; "));
  return choice.device;
}

// ---- What to say when no device can

/// The first device that can run all of `nodes`, or null.
Device* DeviceChoices::device_for_all(const std::vector<NodeId>& nodes) const {
  std::vector<Device*> known = candidates_for(nullptr, {.devices = options_.devices});
  for (Device* device : default_devices()) known.push_back(device);
  for (Device* device : known) {
    const bool all = std::ranges::all_of(nodes, [&](NodeId id) {
      const GraphNode& node = graph_.nodes[id];
      return ask(*device, node, operands_of(layouts_, node)).how != Legal::How::no;
    });
    if (all) return device;
  }
  return nullptr;
}

std::string DeviceChoices::pin_to_use() const {
  if (options_.pin) {
    std::vector<NodeId> nodes;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (runs(graph_.nodes[id])) nodes.push_back(id);
    }
    const Device* device = device_for_all(nodes);
    return device ? fmt::format("pin the graph to \"{}\", which can run all of it", device->name())
                  : "no one device can run all of it: leave the pin out";
  }
  std::vector<NodeId> pinned;
  for (const Refusal& refusal : refusals_) {
    if (graph_.nodes[refusal.node].pin) pinned.push_back(refusal.node);
  }
  if (pinned.empty()) return "no device has kernels for them";
  const Device* device = device_for_all(pinned);
  return device ? fmt::format("pin them to \"{}\", which can, or leave the pin out", device->name())
                : "leave the pin out";
}

void DeviceChoices::throw_if_refused() const {
  if (refusals_.empty()) return;
  std::string text;
  for (const Refusal& refusal : refusals_) {
    const GraphNode& node = graph_.nodes[refusal.node];
    const std::vector<TensorSpec> specs = input_specs(graph_, node);
    text += fmt::format("\n  %{} {} of {}: {}", refusal.node, to_string(node.op),
                        to_string(std::span(specs)), fmt::join(refusal.reasons, "; "));
  }
  const std::string where =
      options_.pin ? fmt::format("on \"{}\", to which it is pinned", options_.pin->name())
                   : "where they should";
  fail(ErrorCode::unsupported, "{} of the graph's {} ops cannot run {}:{}\n{}", refusals_.size(),
       std::ranges::count_if(graph_.nodes, runs), where, text, pin_to_use());
}

}  // namespace heddle
