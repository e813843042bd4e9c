// Graphs as text, for people and for tools.
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "graph/values.h"
#include "heddle/device.h"

namespace heddle {

namespace {

/// What is handed out of each node, such as `output "logits"`.
std::map<NodeId, std::string> results(const Graph& graph) {
  std::map<NodeId, std::string> text;
  const auto add = [&](const char* what, const Graph::Named& result) {
    std::string& line = text[result.value.node];
    if (!line.empty()) line += ", ";
    line += fmt::format("{} \"{}\"", what, result.name);
    if (result.value.output != 0) line += fmt::format(" (.{})", result.value.output);
  };
  for (const Graph::Named& output : graph.outputs) add("output", output);
  for (const Graph::Named& update : graph.state_updates) add("update", update);
  return text;
}

std::string join(const auto& items, auto&& text_of) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += text_of(item);
  }
  return text;
}

std::string specs(const GraphNode& node) {
  return join(node.outputs, [](const TensorSpec& spec) { return to_string(spec); });
}

std::string dot_escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

nlohmann::json json_of(const TensorSpec& spec) {
  return {{"dtype", to_string(spec.dtype)},
          {"shape", std::vector<std::int64_t>(spec.shape.begin(), spec.shape.end())}};
}

nlohmann::json json_of(ValueId value) {
  return {value.node, value.output};
}

nlohmann::json json_of(const std::vector<Graph::Named>& results) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [name, value] : results) {
    json.push_back({{"name", name}, {"value", json_of(value)}});
  }
  return json;
}

nlohmann::json json_of(const GraphNode& node) {
  nlohmann::json json = nlohmann::json::parse(to_json(node.op));
  json["inputs"] = nlohmann::json::array();
  for (const ValueId input : node.inputs) json["inputs"].push_back(json_of(input));
  json["outputs"] = nlohmann::json::array();
  for (const TensorSpec& spec : node.outputs) json["outputs"].push_back(json_of(spec));
  if (node.pin) json["pin"] = node.pin->name();
  if (node.dead) json["dead"] = true;
  return json;
}

}  // namespace

std::string to_text(const Graph& graph) {
  const auto handed_out = results(graph);
  std::string text;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    const std::string inputs = join(node.inputs, [](ValueId value) { return describe(value); });
    text += fmt::format("%{} = {}", id, to_string(node.op));
    if (!inputs.empty()) text += fmt::format(" <- {}", inputs);
    text += fmt::format(" : {}", specs(node));
    if (node.pin) text += fmt::format(" on {}", node.pin->name());
    if (node.dead) text += " dead";
    if (const auto found = handed_out.find(id); found != handed_out.end()) {
      text += fmt::format("  # {}", found->second);
    }
    text += '\n';
  }
  for (const std::string& fed : graph.fed_inputs) text += fmt::format("# fed input \"{}\"\n", fed);
  return text;
}

std::string to_dot(const Graph& graph) {
  const auto handed_out = results(graph);
  std::string text = "digraph heddle {\n  node [shape=box, fontname=\"monospace\"];\n";
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    if (node.dead) continue;
    const std::string name = is_leaf(node.op) && !leaf_name(node.op).empty()
                                 ? fmt::format("{} {}", describe(graph, id), leaf_name(node.op))
                                 : describe(graph, id);
    std::string label = dot_escape(name) + "\\n" + dot_escape(specs(node));
    if (node.pin) label += "\\non " + dot_escape(node.pin->name());
    const auto found = handed_out.find(id);
    if (found != handed_out.end()) label += "\\n" + dot_escape(found->second);
    text += fmt::format("  n{} [label=\"{}\"{}{}];\n", id, label,
                        is_leaf(node.op) ? ", style=dashed" : "",
                        found != handed_out.end() ? ", peripheries=2" : "");
    for (const ValueId input : node.inputs) {
      text += fmt::format("  n{} -> n{}", input.node, id);
      if (input.output != 0) text += fmt::format(" [label=\".{}\"]", input.output);
      text += ";\n";
    }
  }
  return text + "}\n";
}

std::string to_json(const Graph& graph) {
  nlohmann::json json{{"nodes", nlohmann::json::array()},
                      {"outputs", json_of(graph.outputs)},
                      {"state_updates", json_of(graph.state_updates)},
                      {"fed_inputs", graph.fed_inputs}};
  for (const GraphNode& node : graph.nodes) json["nodes"].push_back(json_of(node));
  return json.dump();
}

}  // namespace heddle
