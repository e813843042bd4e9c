#include "array/order.h"

#include <algorithm>
#include <utility>

namespace heddle {

namespace {

/// From nodes to their entries: open addressing, since an evaluation looks up every edge.
class EntryIndex {
 public:
  EntryIndex() : slots_(kFirstSize) {}

  /// The entry of `node`, and whether it was just added as `next`.
  std::pair<std::uint32_t, bool> find_or_add(const Node* node, std::uint32_t next) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = find(node);
    if (slot.node) return {slot.entry, false};
    slot = {node, next};
    ++used_;
    return {next, true};
  }

 private:
  static constexpr std::size_t kFirstSize = 64;  // a power of two, as find() relies on
  struct Slot {
    const Node* node = nullptr;
    std::uint32_t entry = 0;
  };

  Slot& find(const Node* node) {
    // Multiplying by the golden ratio spreads the addresses; their low bits are all alike.
    std::size_t at = (reinterpret_cast<std::uintptr_t>(node) * 0x9e3779b97f4a7c15u) >> 20;
    for (;; ++at) {
      Slot& slot = slots_[at & (slots_.size() - 1)];
      if (!slot.node || slot.node == node) return slot;
    }
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.node) find(slot.node) = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

class TapeMaker {
 public:
  Tape make(std::span<const Array> outputs, std::size_t width) {
    discover(outputs);
    arrange(width);
    return std::move(tape_);
  }

 private:
  /// The entry of an unsettled node; adds and remembers to walk it if it is new.
  std::uint32_t entry_of(const Ref<Node>& node) {
    const auto next = static_cast<std::uint32_t>(tape_.entries.size());
    const auto [entry, added] = index_.find_or_add(node.get(), next);
    if (added) {
      tape_.entries.push_back({node});
      consumers_.push_back(0);
      to_walk_.push_back(entry);
    }
    return entry;
  }

  void discover(std::span<const Array> outputs) {
    for (const Array& output : outputs) {
      if (!output.node()->settled()) entry_of(output.node());
    }
    while (!to_walk_.empty()) {
      const std::uint32_t entry = to_walk_.back();
      to_walk_.pop_back();
      walk(entry);
    }
  }

  void walk(std::uint32_t entry) {
    const auto first = static_cast<std::uint32_t>(tape_.sources.size());
    Node& node = *tape_.entries[entry].node;  // stays put when the entries move
    node.visit_pending([&](const Array& input) {
      if (input.node()->settled()) return;
      const std::uint32_t source = entry_of(input.node());
      ++consumers_[source];
      tape_.sources.push_back(source);
    });
    tape_.entries[entry].first_edge = first;
    tape_.entries[entry].edges = static_cast<std::uint32_t>(tape_.sources.size()) - first;
  }

  void arrange(std::size_t width) {
    struct Position {
      std::uint32_t entry, edge;
    };
    std::vector<std::uint32_t>& order = tape_.order;  // consumers first, until reversed
    order.reserve(tape_.entries.size());
    for (std::uint32_t entry = 0; entry < tape_.entries.size(); ++entry) {
      if (consumers_[entry] == 0) order.push_back(entry);
    }
    std::vector<Position> postponed;
    std::size_t walked = 0;
    while (walked < order.size() || !postponed.empty()) {
      Position at{};
      if (walked < order.size()) {
        at = {order[walked++], 0};
      } else {
        at = postponed.back();
        postponed.pop_back();
      }
      const std::span<const std::uint32_t> sources = tape_.sources_of(at.entry);
      for (; at.edge < sources.size(); ++at.edge) {
        if (order.size() - walked >= width) {
          postponed.push_back(at);
          break;
        }
        if (--consumers_[sources[at.edge]] == 0) order.push_back(sources[at.edge]);
      }
    }
    std::reverse(order.begin(), order.end());
  }

  Tape tape_;
  EntryIndex index_;
  std::vector<std::uint32_t> consumers_;  // of each entry: edges that have not joined the order
  std::vector<std::uint32_t> to_walk_;
};

}  // namespace

Tape make_tape(std::span<const Array> outputs, std::size_t width) {
  return TapeMaker().make(outputs, width);
}

}  // namespace heddle
