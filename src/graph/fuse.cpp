#include "graph/fusion.h"

namespace heddle {

Graph fuse(Graph graph, const PassOptions& options) {
  Fusion fusion(std::move(graph), options);
  LinearGroups linears;
  for (NodeId id = 0; id < fusion.size(); ++id) {
    if (fusion.node(id).dead) continue;
    fusion.refresh(id);
    linears.join(fusion, id);
    join_gated_multiply(fusion, id);
    join_add_rms_norm(fusion, id);
    join_bias_rope(fusion, id);
    join_norm_rope(fusion, id);
    join_write(fusion, id);
  }
  if (options.fuse_elements) {
    // Backwards: a program ends where nobody of its kind reads on.
    for (NodeId id = static_cast<NodeId>(fusion.size()); id-- > 0;) join_elements(fusion, id);
  }
  return fusion.finish();
}

}  // namespace heddle
