#include "graph/passes.h"

namespace heddle {

PlacedGraph prepare_graph(const Graph& graph, const PassOptions& options) {
  validate(graph);
  Graph needed = mark_dead(graph);
  if (options.fuse) needed = fuse(needed, options);
  PlacedGraph placed = place_and_legalize(needed, options);
  if (options.repack) placed = repack_parameters(std::move(placed));
  if (options.check_result) validate(placed.graph);
  placed.extents = propagate_extents(placed.graph);
  return placed;
}

}  // namespace heddle
