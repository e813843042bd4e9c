// Of quantised products, random numbers, files, transforms.
#include "heddle/compile.h"
#include "heddle/io.h"
#include "heddle/ops.h"
#include "heddle/random.h"
#include "heddle/transforms.h"
#include "mlx_functions.h"

namespace heddle::test {

// clang-format off
#define HEDDLE_QUANTIZED_NAMES(X) \
  X(block_masked_mm) X(from_fp8) X(gather_mm) X(gather_qmm) X(gather_qqmm) X(qqmm) X(quantize) \
  X(quantized_matmul) X(segmented_mm) X(to_fp8)
#define HEDDLE_RANDOM_NAMES(X) \
  X(random::bernoulli) X(random::bits) X(random::categorical) X(random::gumbel) X(random::key) \
  X(random::laplace) X(random::multivariate_normal) X(random::normal) X(random::permutation) \
  X(random::randint) X(random::seed) X(random::split) X(random::truncated_normal) \
  X(random::uniform)
#define HEDDLE_IO_NAMES(X) \
  X(load) X(load_gguf) X(load_safetensors) X(save) X(save_gguf) X(save_safetensors)
#define HEDDLE_TRANSFORM_NAMES(X) \
  X(async_eval) X(eval) X(grad) X(jvp) X(value_and_grad) X(vjp)
#define HEDDLE_COMPILE_NAMES(X) X(disable_compile) X(enable_compile) X(set_compile_mode)
// clang-format on
HEDDLE_HAS("ops.h", HEDDLE_QUANTIZED_NAMES)
namespace random_names {
HEDDLE_HAS("random.h", HEDDLE_RANDOM_NAMES)
}  // namespace random_names
namespace io_names {
HEDDLE_HAS("io.h", HEDDLE_IO_NAMES)
}  // namespace io_names
namespace transform_names {
HEDDLE_HAS("transforms.h", HEDDLE_TRANSFORM_NAMES)
}  // namespace transform_names
namespace compile_names {
HEDDLE_HAS("compile.h", HEDDLE_COMPILE_NAMES)
}  // namespace compile_names

}  // namespace heddle::test
