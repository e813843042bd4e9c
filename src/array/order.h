// The order in which an evaluation runs nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "array/node.h"

namespace heddle {

/// The nodes that some arrays still need.
struct Tape {
  struct Entry {
    Ref<Node> node;
    std::uint32_t first_edge = 0, edges = 0;  // into Tape::sources
  };
  std::vector<Entry> entries;
  std::vector<std::uint32_t> sources;  // entries that are inputs of other entries
  std::vector<std::uint32_t> order;    // of entries; sources come before consumers

  std::span<const std::uint32_t> sources_of(std::uint32_t entry) const {
    return std::span(sources).subspan(entries[entry].first_edge, entries[entry].edges);
  }
};

/// Every node that `outputs` reach and that has not settled, once. Ordered breadth-first back from
/// the outputs, a node joining once all its consumers have, while fewer than `width` are open, and
/// depth-first beyond: independent work lies side by side, and what must live at once stays
/// bounded. Nodes that other threads run are included, without what they read.
Tape make_tape(std::span<const Array> outputs, std::size_t width);

}  // namespace heddle
