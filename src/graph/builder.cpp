#include <algorithm>
#include <utility>

#include "array/tracer.h"
#include "base/check.h"
#include "graph/capture.h"
#include "graph/versions.h"

namespace heddle {

namespace {

constexpr ErrorCode kInvalid = ErrorCode::invalid_argument;
const TensorSpec kExtentSpec{DType::i32, {}};

const Op& op_of(const Array& array) {
  return array.node()->op();
}

}  // namespace

Array GraphBuilder::leaf(const std::string& name, Op op) {
  const auto place = leaves_.lower_bound(name);
  if (place != leaves_.end() && place->first == name) {
    fail(kInvalid, "\"{}\" is a name of the graph already: of {}", name,
         to_string(op_of(place->second)));
  }
  return leaves_.emplace_hint(place, name, apply(std::move(op), {}))->second;
}

void GraphBuilder::need_extent(const std::string& name) {
  const auto known = leaves_.find(name);
  if (known == leaves_.end()) {
    leaf(name, Input{name, kExtentSpec, ""});
    return;
  }
  const Array& array = known->second;
  require(std::holds_alternative<Input>(op_of(array)) && array.spec() == kExtentSpec, kInvalid,
          "extent \"{}\" must be an i32 scalar input, not {}", name, to_string(op_of(array)));
}

Array GraphBuilder::input(const std::string& name, const TensorSpec& spec,
                          const std::string& extent) {
  Array array = leaf(name, Input{name, spec, extent});
  if (!extent.empty()) need_extent(extent);
  return array;
}

Array GraphBuilder::parameter(const std::string& name, const TensorSpec& spec) {
  return leaf(name, Parameter{name, spec});
}

Array GraphBuilder::state(const std::string& name, const TensorSpec& spec) {
  return leaf(name, StateRef{name, spec});
}

void GraphBuilder::output(const std::string& name, const Array& value) {
  require(!name.empty(), kInvalid, "an output has no name");
  require(std::ranges::find(outputs_, name, &Result::name) == outputs_.end(), kInvalid,
          "there is an output \"{}\" already", name);
  outputs_.push_back({name, value});
}

void GraphBuilder::update(const std::string& state, const Array& value) {
  const auto known = leaves_.find(state);
  require(known != leaves_.end() && std::holds_alternative<StateRef>(op_of(known->second)),
          kInvalid, "update: \"{}\" is no state of the graph", state);
  require(value.spec() == known->second.spec(), kInvalid,
          "update: state \"{}\" is {}, the new version {}", state, to_string(known->second.spec()),
          to_string(value.spec()));
  require(std::ranges::find(updates_, state, &Result::name) == updates_.end(), kInvalid,
          "update: state \"{}\" has an update already", state);
  updates_.push_back({state, value});
}

void GraphBuilder::feed(const Array& input, const Array& value, FeedKind kind,
                        const std::string& extent) {
  const auto* leaf = std::get_if<Input>(&op_of(input));
  const auto known = leaf ? leaves_.find(leaf->name) : leaves_.end();
  require(known != leaves_.end() && known->second.node() == input.node(), kInvalid,
          "feed: only an input of this builder can be fed, not {}", to_string(op_of(input)));
  const std::string name = leaf->name;
  require(std::ranges::find(feeds_, name, &FedBack::input) == feeds_.end(), kInvalid,
          "feed: input \"{}\" is fed already", name);
  require((kind == FeedKind::whole) == extent.empty(), kInvalid, "feed: input \"{}\": {}", name,
          extent.empty() ? "a prefix or a row needs an extent to say which"
                         : "a whole value has no extent");
  std::vector<TensorSpec> specs{input.spec(), value.spec()};
  if (!extent.empty()) {
    need_extent(extent);
    specs.push_back(kExtentSpec);
  }
  infer(Feed{kind}, specs);
  feeds_.push_back({name, value, kind, extent});
}

/// `values` are those to feed back, then their extents, where they have one.
void GraphBuilder::append_feeds(Graph& graph, const std::vector<ValueId>& values) const {
  std::vector<NodeId> states;
  const auto add = [&](GraphNode node) {
    graph.nodes.push_back(std::move(node));
    return static_cast<NodeId>(graph.nodes.size() - 1);
  };
  for (const FedBack& feed : feeds_) {
    const TensorSpec& spec = leaves_.at(feed.input).spec();
    states.push_back(add({StateRef{feed.input, spec}, {}, {spec}}));
  }
  std::size_t next_extent = feeds_.size();
  for (std::size_t i = 0; i < feeds_.size(); ++i) {
    std::vector<ValueId> inputs{{states[i], 0}, values[i]};
    if (!feeds_[i].extent.empty()) inputs.push_back(values[next_extent++]);
    const std::vector<TensorSpec> spec{graph.spec(inputs[0])};
    const NodeId fed = add({Feed{feeds_[i].kind}, std::move(inputs), spec});
    graph.fed_inputs.push_back(feeds_[i].input);
    graph.state_updates.push_back({feeds_[i].input, {fed, 0}});
  }
}

Graph GraphBuilder::build() const {
  std::vector<Array> roots;
  for (const Result& output : outputs_) roots.push_back(output.value);
  for (const Result& update : updates_) roots.push_back(update.value);
  for (const FedBack& feed : feeds_) roots.push_back(feed.value);
  for (const FedBack& feed : feeds_) {
    if (!feed.extent.empty()) roots.push_back(leaves_.at(feed.extent));
  }
  // Inputs and states are what callers may name, used or not.
  for (const auto& [name, array] : leaves_) {
    if (!std::holds_alternative<Parameter>(op_of(array))) roots.push_back(array);
  }
  auto [graph, values] = capture(roots);
  auto value = values.begin();
  for (const Result& output : outputs_) graph.outputs.push_back({output.name, *value++});
  for (const Result& update : updates_) graph.state_updates.push_back({update.name, *value++});
  append_feeds(graph, {value, values.end()});
  graph = keep_old_versions(std::move(graph));
  validate_names_and_states(graph);
  return graph;
}

Graph trace(const std::function<std::vector<Array>(const std::vector<Array>&)>& function,
            std::span<const TensorSpec> inputs) {
  const TracerScope scope;  // what the function looked at on its way stays part of the graph
  GraphBuilder builder;
  std::vector<Array> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(builder.input(std::to_string(i), inputs[i]));
  }
  const std::vector<Array> results = function(arguments);
  for (std::size_t i = 0; i < results.size(); ++i) {
    builder.output(std::to_string(i), results[i]);
  }
  return builder.build();
}

}  // namespace heddle
