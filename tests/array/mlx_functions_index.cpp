// Of ops_index.h and ops_order.h.
#include "mlx_functions.h"

#include "heddle/ops.h"

namespace heddle::test {

// clang-format off
#define HEDDLE_NAMES(X) \
  X(argmax) X(argmin) X(argpartition) X(argsort) X(gather) X(masked_scatter) X(partition) \
  X(put_along_axis) X(scatter) X(scatter_add) X(scatter_add_axis) X(scatter_max) X(scatter_min) \
  X(scatter_prod) X(searchsorted) X(slice_update) X(slice_update_add) X(slice_update_max) \
  X(slice_update_min) X(slice_update_prod) X(sort) X(take) X(take_along_axis) X(topk)
// clang-format on
HEDDLE_HAS("ops.h", HEDDLE_NAMES)

}  // namespace heddle::test
