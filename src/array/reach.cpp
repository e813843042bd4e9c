#include "array/reach.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/failure.h"

namespace heddle {

namespace {

/// The inputs of a node that is still to run, or was run by what is being traced; nothing, once it
/// is done. A node that another thread is running counts as done as soon as it is.
std::optional<std::vector<Array>> inputs_to_follow(const Node& node) {
  std::vector<Array> inputs;
  const auto add = [&](const Array& input) { inputs.push_back(input); };
  if (node.visit_pending(add)) return inputs;
  node.wait_while_running();
  if (node.state() == Node::State::failed) node.failure()->raise();
  if (node.visit_retained(add)) return inputs;
  return std::nullopt;
}

}  // namespace

std::vector<Reached> reach(std::span<const Array> roots,
                           const std::function<bool(const Node&)>& stop) {
  std::unordered_set<const Node*> seen;
  std::vector<Ref<Node>> open;
  std::vector<Reached> reached;
  const auto visit = [&](const Array& array) {
    if (seen.insert(array.node().get()).second) open.push_back(array.node());
  };
  for (const Array& root : roots) visit(root);
  while (!open.empty()) {
    Reached next{std::move(open.back()), {}, true};
    open.pop_back();
    if (!stop || !stop(*next.node)) {
      if (auto inputs = inputs_to_follow(*next.node)) {
        next.inputs = std::move(*inputs);
        next.done = false;
      }
    }
    for (const Array& input : next.inputs) visit(input);
    reached.push_back(std::move(next));
  }
  std::ranges::sort(reached, {}, [](const Reached& r) { return r.node->sequence(); });
  return reached;
}

}  // namespace heddle
