#include "array/reach.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/failure.h"

namespace heddle {

bool follow_inputs(const Node& node, std::vector<Array>& inputs) {
  const auto add = [&](const Array& input) { inputs.push_back(input); };
  if (node.visit_pending(add)) return true;
  node.wait_while_running();
  if (node.state() == Node::State::failed) node.failure()->raise();
  return node.visit_retained(add);
}

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
    if (!stop || !stop(*next.node)) next.done = !follow_inputs(*next.node, next.inputs);
    for (const Array& input : next.inputs) visit(input);
    reached.push_back(std::move(next));
  }
  std::ranges::sort(reached, {}, [](const Reached& r) { return r.node->sequence(); });
  return reached;
}

}  // namespace heddle
