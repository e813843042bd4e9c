// Plans as people and programs read them.
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "exec/plan.h"
#include "graph/values.h"

namespace heddle {

namespace {

using nlohmann::json;

std::string_view family(const Op& op) {
  return std::visit(
      [](const auto& alternative) { return std::decay_t<decltype(alternative)>::kName; }, op);
}

struct Work {
  std::size_t nodes = 0;
  double bytes = 0, operations = 0;
};

struct SplitFigures {
  std::size_t ops = 0, barriers = 0, copies = 0, copied_bytes = 0;
};

SplitFigures figures_of(const Split& split) {
  SplitFigures figures;
  for (const PlannedStep& step : split.steps) {
    if (std::holds_alternative<PlannedLaunch>(step)) {
      ++figures.ops;
    } else if (const auto* copy = std::get_if<PlannedCopy>(&step)) {
      ++figures.copies;
      figures.copied_bytes += copy->from.bytes;
    } else {
      ++figures.barriers;
    }
  }
  return figures;
}

struct Figures {
  std::map<std::string_view, Work> families;
  std::map<std::string_view, std::size_t> device_ops;  // by the device's name
  Work total;
  std::size_t copies = 0, copied_bytes = 0;
  std::map<SlotKind, std::size_t> slot_bytes;
};

void add_launch(const Graph& graph, NodeId id, Figures& figures) {
  const GraphNode& node = graph.nodes[id];
  const Cost spent = cost(node.op, input_specs(graph, node), node.outputs);
  for (Work* work : {&figures.families[family(node.op)], &figures.total}) {
    ++work->nodes;
    work->bytes += spent.bytes;
    work->operations += spent.operations;
  }
}

Figures figures_of(const Plan& plan) {
  Figures figures;
  for (const auto* splits : {&plan.splits, &plan.feeds}) {
    for (const Split& split : *splits) {
      for (const PlannedStep& step : split.steps) {
        if (const auto* launch = std::get_if<PlannedLaunch>(&step)) {
          add_launch(plan.placed.graph, launch->node, figures);
        }
      }
      const SplitFigures own = figures_of(split);
      figures.device_ops[split.device->name()] += own.ops;
      figures.copies += own.copies;
      figures.copied_bytes += own.copied_bytes;
    }
  }
  for (const Slot& slot : plan.slots) figures.slot_bytes[slot.kind] += slot.bytes;
  return figures;
}

std::string_view to_string(SlotKind kind) {
  switch (kind) {
    case SlotKind::arena:
      return "arena";
    case SlotKind::input:
      return "input";
    case SlotKind::parameter:
      return "parameter";
    case SlotKind::constant:
      return "constant";
    case SlotKind::state:
      return "state";
    case SlotKind::output:
      return "output";
    case SlotKind::staging:
      return "staging";
  }
  return "unknown";
}

std::string human(double amount, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T"};
  int prefix = 0;
  for (; amount >= 9999.5 && prefix < 4; ++prefix) amount /= 1000;
  return fmt::format("{:.4g} {}{}", amount, kPrefixes[prefix], unit);
}
std::string human(std::size_t bytes) {
  return human(static_cast<double>(bytes), "B");
}

double over_bound(const ArenaReport& arena) {
  return arena.lower_bound == 0
             ? 1.0
             : static_cast<double>(arena.bytes) / static_cast<double>(arena.lower_bound);
}

template <class List, class Print>
std::string join(const List& list, Print print) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + print(item);
  return text;
}
std::string values(const std::vector<ValueId>& list) {
  return join(list, [](ValueId value) { return describe(value); });
}
std::string numbers(const std::vector<std::uint32_t>& list) {
  return join(list, [](std::uint32_t number) { return std::to_string(number); });
}

// ---- Text

std::string place(const Plan& plan, const Location& location) {
  const Slot& slot = plan.slots[location.slot];
  std::string text =
      fmt::format("{}{}{}", to_string(slot.kind), slot.name.empty() ? "" : ":", slot.name);
  if (slot.kind == SlotKind::staging || slot.kind == SlotKind::constant)
    text += describe(*slot.value);
  if (slot.kind == SlotKind::arena || location.offset > 0)
    text += fmt::format("+{}", location.offset);
  return text;
}

/// "arena+64" of the device's own, or another's that it shares: "vulkan:0's arena+64".
std::string place_for(const Plan& plan, const Device* device, const Location& location) {
  const Device* owner = plan.slots[location.slot].device;
  const std::string text = place(plan, location);
  return owner == device ? text : fmt::format("{}'s {}", owner->name(), text);
}

std::string places(const Plan& plan, const Device* device, const std::vector<Location>& locations) {
  return join(locations,
              [&](const Location& location) { return place_for(plan, device, location); });
}

std::string line(const Plan& plan, const PlannedLaunch& launch) {
  const GraphNode& node = plan.placed.graph.nodes[launch.node];
  std::string text = fmt::format("  %{} {}", launch.node, to_string(node.op));
  const Device* device = plan.placed.placement[launch.node];
  text += fmt::format("  {} -> {}", places(plan, device, launch.inputs),
                      places(plan, device, launch.outputs));
  text += fmt::format("  {}",
                      join(node.outputs, [](const TensorSpec& spec) { return to_string(spec); }));
  if (launch.workspace_bytes > 0) {
    text +=
        fmt::format("  workspace {} at {}", human(launch.workspace_bytes), launch.workspace_offset);
  }
  if (launch.extent) text += fmt::format("  rows {}", place(plan, *launch.extent));
  return text + "\n";
}

std::string line(const Plan& plan, const PlannedStep& step) {
  if (const auto* launch = std::get_if<PlannedLaunch>(&step)) return line(plan, *launch);
  if (const auto* copy = std::get_if<PlannedCopy>(&step)) {
    return fmt::format("  copy {} ({}) {} -> {} on {}\n", describe(copy->value),
                       human(copy->from.bytes), place(plan, copy->from), place(plan, copy->to),
                       plan.slots[copy->to.slot].device->name());
  }
  return "  barrier\n";
}

std::string text_of(const Plan& plan, const Split& split, const char* what, std::size_t index) {
  std::string text = fmt::format("{} {} on {}: reads [{}], leaves [{}], waits for [{}]\n", what,
                                 index, split.device->name(), values(split.inputs),
                                 values(split.outputs), numbers(split.waits));
  for (const PlannedStep& step : split.steps) text += line(plan, step);
  return text;
}

std::string amount(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// What each split does, in a line: "split 1 on vulkan:0: 48 ops, 30 barriers; copies %9 (2 kB) to
/// cpu".
std::string summary(const Plan& plan, const Split& split, const char* what, std::size_t index) {
  const SplitFigures figures = figures_of(split);
  std::string copies;
  for (const PlannedStep& step : split.steps) {
    if (const auto* copy = std::get_if<PlannedCopy>(&step)) {
      copies +=
          fmt::format("{} {} ({}) to {}", copies.empty() ? "; copies" : ",", describe(copy->value),
                      human(copy->from.bytes), plan.slots[copy->to.slot].device->name());
    }
  }
  return fmt::format("  {} {} on {}: {}, {}{}\n", what, index, split.device->name(),
                     amount(figures.ops, "op"), amount(figures.barriers, "barrier"), copies);
}

std::string summary(const Plan& plan, const Figures& figures) {
  std::string text;
  for (std::size_t s = 0; s < plan.splits.size(); ++s)
    text += summary(plan, plan.splits[s], "split", s);
  for (std::size_t f = 0; f < plan.feeds.size(); ++f)
    text += summary(plan, plan.feeds[f], "feed split", f);
  const auto counted = [](const auto& item) {
    return fmt::format("{} {}", item.first, item.second);
  };
  text += fmt::format("  ops by device: {}\n", join(figures.device_ops, counted));
  if (const auto ops = host_ops(plan); !ops.empty()) {
    text +=
        fmt::format("  on the cpu though another device was asked for: {}\n", join(ops, counted));
  }
  return text;
}

std::string text_of(const Figures& figures) {
  std::string text =
      fmt::format("{:<16} {:>6} {:>12} {:>12}\n", "op family", "nodes", "bytes", "operations");
  const auto row = [&](std::string_view name, const Work& work) {
    text += fmt::format("{:<16} {:>6} {:>12} {:>12}\n", name, work.nodes, human(work.bytes, "B"),
                        human(work.operations, "op"));
  };
  for (const auto& [name, work] : figures.families) row(name, work);
  row("all", figures.total);
  return text;
}

// ---- JSON

json json_of(const std::vector<ValueId>& list) {
  json array = json::array();
  for (const ValueId value : list) array.push_back({value.node, value.output});
  return array;
}

json json_of(const Location& location) {
  return {{"slot", location.slot},
          {"offset", location.offset},
          {"bytes", location.bytes},
          {"operand", to_string(location.operand)}};
}
json json_of(const std::vector<Location>& locations) {
  json array = json::array();
  for (const Location& location : locations) array.push_back(json_of(location));
  return array;
}

json json_of(const Plan& plan, const PlannedLaunch& launch) {
  const GraphNode& node = plan.placed.graph.nodes[launch.node];
  json step = {{"step", "launch"},
               {"node", launch.node},
               {"op", json::parse(to_json(node.op))},
               {"inputs", json_of(launch.inputs)},
               {"outputs", json_of(launch.outputs)}};
  if (launch.workspace_bytes > 0) {
    step["workspace"] = {{"slot", launch.workspace_slot},
                         {"offset", launch.workspace_offset},
                         {"bytes", launch.workspace_bytes}};
  }
  if (launch.extent) step["extent"] = json_of(*launch.extent);
  return step;
}

json json_of(const Plan& plan, const PlannedStep& step) {
  if (const auto* launch = std::get_if<PlannedLaunch>(&step)) return json_of(plan, *launch);
  if (const auto* copy = std::get_if<PlannedCopy>(&step)) {
    return {{"step", "copy"},
            {"value", {copy->value.node, copy->value.output}},
            {"from", json_of(copy->from)},
            {"to", json_of(copy->to)}};
  }
  return {{"step", "barrier"}};
}

json json_of(const Plan& plan, const std::vector<Split>& splits) {
  json array = json::array();
  for (const Split& split : splits) {
    json steps = json::array();
    for (const PlannedStep& step : split.steps) steps.push_back(json_of(plan, step));
    const SplitFigures figures = figures_of(split);
    array.push_back({{"device", split.device->name()},
                     {"ops", figures.ops},
                     {"barriers", figures.barriers},
                     {"copies", figures.copies},
                     {"copied_bytes", figures.copied_bytes},
                     {"inputs", json_of(split.inputs)},
                     {"outputs", json_of(split.outputs)},
                     {"waits", split.waits},
                     {"steps", std::move(steps)}});
  }
  return array;
}

json json_of(const Slot& slot) {
  json object = {
      {"kind", to_string(slot.kind)}, {"device", slot.device->name()}, {"bytes", slot.bytes}};
  if (!slot.name.empty()) object["name"] = slot.name;
  if (slot.kind != SlotKind::arena) object["operand"] = to_string(slot.operand);
  if (slot.value) object["value"] = {slot.value->node, slot.value->output};
  return object;
}

json json_of(const Work& work) {
  return {{"nodes", work.nodes}, {"bytes", work.bytes}, {"operations", work.operations}};
}

json json_of(const Plan& plan, const Figures& figures) {
  json families = json::object(), device_ops = json::object();
  for (const auto& [device, ops] : figures.device_ops) device_ops[std::string(device)] = ops;
  for (const auto& [name, work] : figures.families) families[std::string(name)] = json_of(work);
  return {{"families", std::move(families)},
          {"total", json_of(figures.total)},
          {"device_ops", std::move(device_ops)},
          {"host_ops", host_ops(plan)},
          {"copies", figures.copies},
          {"copied_bytes", figures.copied_bytes}};
}

// ---- Dot

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// The node whose kernel, or leaf, makes what the value shows.
NodeId source_of(const Graph& graph, ValueId value) {
  while (is_view(graph.node(value).op)) value = graph.node(value).inputs[0];
  return value.node;
}

std::string dot_of(const Plan& plan, const Split& split, const std::string& id,
                   std::string* edges) {
  const Graph& graph = plan.placed.graph;
  std::string text = fmt::format("  subgraph cluster_{} {{\n    label=\"{} on {}\";\n", id, id,
                                 escape(split.device->name()));
  for (const PlannedStep& step : split.steps) {
    const auto* launch = std::get_if<PlannedLaunch>(&step);
    if (!launch) continue;
    const GraphNode& node = graph.nodes[launch->node];
    const std::string specs =
        join(node.outputs, [](const TensorSpec& spec) { return to_string(spec); });
    text += fmt::format("    n{} [label=\"%{} {}\\n{}\"];\n", launch->node, launch->node,
                        name(node.op), specs);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool staged = plan.slots[launch->inputs[i].slot].kind == SlotKind::staging;
      *edges += fmt::format("  n{} -> n{}{};\n", source_of(graph, node.inputs[i]), launch->node,
                            staged ? " [style=bold, color=red, label=copy]" : "");
    }
  }
  return text + "  }\n";
}

}  // namespace

std::map<std::string, std::uint64_t> host_ops(const Plan& plan) {
  std::map<std::string, std::uint64_t> ops;
  for (NodeId id = 0; id < plan.placed.graph.nodes.size(); ++id) {
    const GraphNode& node = plan.placed.graph.nodes[id];
    const bool elsewhere =
        node.pin && plan.placed.placement[id] == &cpu_device() && node.pin != &cpu_device();
    if (!node.dead && elsewhere) ++ops[std::string(name(node.op))];
  }
  return ops;
}

std::string splits_text(const Plan& plan) {
  return summary(plan, figures_of(plan));
}

std::string to_text(const Plan& plan) {
  const Figures figures = figures_of(plan);
  std::string text;
  for (const ArenaReport& arena : plan.arenas) {
    text += fmt::format("device {}: arena {} of at least {} ({:.3f} times that)\n",
                        arena.device->name(), human(arena.bytes), human(arena.lower_bound),
                        over_bound(arena));
  }
  for (const auto& [kind, bytes] : figures.slot_bytes) {
    text += fmt::format("{} slots: {}\n", to_string(kind), human(bytes));
  }
  text += fmt::format("{} splits, {} feed splits, {} repacks when loaded, {} copies of {}\n",
                      plan.splits.size(), plan.feeds.size(), plan.load.size(), figures.copies,
                      human(figures.copied_bytes));
  text += summary(plan, figures) + "\n" + text_of(figures) + "\n";
  if (!plan.load.empty()) text += "load\n";
  for (const PlannedLaunch& launch : plan.load) text += line(plan, launch);
  for (std::size_t s = 0; s < plan.splits.size(); ++s)
    text += text_of(plan, plan.splits[s], "split", s);
  for (std::size_t f = 0; f < plan.feeds.size(); ++f)
    text += text_of(plan, plan.feeds[f], "feed split", f);
  for (const PlanOutput& output : plan.outputs) {
    text += fmt::format("output \"{}\" = {} in {}\n", output.name, describe(output.value),
                        place(plan, output.location));
  }
  return text;
}

std::string to_dot(const Plan& plan) {
  const Graph& graph = plan.placed.graph;
  std::string edges, text = "digraph heddle {\n  node [shape=box, fontname=\"monospace\"];\n";
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    if (!is_leaf(graph.nodes[n].op) || graph.nodes[n].dead) continue;
    text += fmt::format("  n{} [label=\"%{} {} {}\\n{}\", style=dashed];\n", n, n,
                        name(graph.nodes[n].op), escape(leaf_name(graph.nodes[n].op)),
                        to_string(graph.nodes[n].outputs[0]));
  }
  for (const PlannedLaunch& launch : plan.load) {
    text += fmt::format("  n{} [label=\"%{} repack when loaded\"];\n", launch.node, launch.node);
    edges += fmt::format("  n{} -> n{};\n", source_of(graph, graph.nodes[launch.node].inputs[0]),
                         launch.node);
  }
  for (std::size_t s = 0; s < plan.splits.size(); ++s) {
    text += dot_of(plan, plan.splits[s], fmt::format("split_{}", s), &edges);
  }
  for (std::size_t f = 0; f < plan.feeds.size(); ++f) {
    text += dot_of(plan, plan.feeds[f], fmt::format("feed_{}", f), &edges);
  }
  return text + edges + "}\n";
}

std::string to_json(const Plan& plan) {
  json slots = json::array(), load = json::array(), arenas = json::array(), outputs = json::array();
  for (const Slot& slot : plan.slots) slots.push_back(json_of(slot));
  for (const PlannedLaunch& launch : plan.load) load.push_back(json_of(plan, launch));
  for (const ArenaReport& arena : plan.arenas) {
    arenas.push_back({{"device", arena.device->name()},
                      {"slot", arena.slot},
                      {"bytes", arena.bytes},
                      {"lower_bound", arena.lower_bound}});
  }
  for (const PlanOutput& output : plan.outputs) {
    outputs.push_back({{"name", output.name},
                       {"value", {output.value.node, output.value.output}},
                       {"location", json_of(output.location)}});
  }
  const json all = {{"slots", std::move(slots)},
                    {"load", std::move(load)},
                    {"splits", json_of(plan, plan.splits)},
                    {"feeds", json_of(plan, plan.feeds)},
                    {"arenas", std::move(arenas)},
                    {"outputs", std::move(outputs)},
                    {"figures", json_of(plan, figures_of(plan))}};
  return all.dump();
}

}  // namespace heddle
