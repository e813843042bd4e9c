// Of what ops.h declares itself: convolution, products; and of fast.
#include "mlx_functions.h"

#include "heddle/ops.h"

namespace heddle::test {

// clang-format off
#define HEDDLE_NAMES(X) \
  X(conv1d) X(conv2d) X(conv3d) X(conv_general) X(conv_transpose1d) \
  X(conv_transpose2d) X(conv_transpose3d) X(dequantize) X(matmul)
#define HEDDLE_FAST_NAMES(X) \
  X(fast::layer_norm) X(fast::rms_norm) X(fast::rope) X(fast::scaled_dot_product_attention)
// clang-format on
HEDDLE_HAS("ops.h", HEDDLE_NAMES)
namespace fast_names {
HEDDLE_HAS("fast.h", HEDDLE_FAST_NAMES)
}  // namespace fast_names

}  // namespace heddle::test
