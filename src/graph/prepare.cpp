#include <utility>

#include "graph/passes.h"

namespace heddle {

PlacedGraph prepare_graph(Graph graph, const PassOptions& options) {
  validate(graph);
  graph = mark_dead(std::move(graph));
  if (options.fuse) graph = fuse(std::move(graph), options);
  PlacedGraph placed = place_and_legalize(std::move(graph), options);
  if (options.repack) placed = repack_parameters(std::move(placed));
  if (options.check_result) validate(placed.graph);
  placed.extents = propagate_extents(placed.graph);
  return placed;
}

}  // namespace heddle
