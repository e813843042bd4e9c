// The same computation with fewer nodes.
#pragma once

#include "heddle/graph.h"

namespace heddle {

/// Equal nodes become one; what follows from constants alone is computed here (up to 64 KiB a
/// value); casts, views and factors of one that change nothing are left out, views of views become
/// one, and element-wise ops broadcast by themselves. Values have the same bits. What nothing needs
/// any more is left out too, inputs and states excepted.
Graph simplify(const Graph& graph);

}  // namespace heddle
