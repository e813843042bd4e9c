// Whether a context fits the devices there are, said before anything is allocated.
#pragma once

#include "llm/plans.h"

namespace heddle::llm {

/// Throws invalid_argument unless KV states may be of this type: f32, f16, or q8_0 with whole
/// blocks.
void check_kv_type(const ModelConfig& config, DType type);

std::uint64_t kv_bytes(const ModelConfig& config, const PlanShape& shape);

/// Sets options.n_ctx if it is 0, to the most that fits up to 4096. Throws out_of_memory saying
/// what is needed, what there is, the first tensor that does not fit, and which of --gpu-layers,
/// -c, --kv-type or a smaller model type would fit; unsupported as check_weights_have_kernels does.
void fit_to_devices(const Model& model, ContextOptions& options, const LayerDevices& devices);

}  // namespace heddle::llm
