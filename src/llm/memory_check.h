// Whether a context fits the memory there is, said before anything is allocated.
#pragma once

#include "llm/plans.h"

namespace heddle::llm {

/// Throws invalid_argument unless KV states may be of this type: f32, f16, or q8_0 with whole
/// blocks.
void check_kv_type(const ModelConfig& config, DType type);

std::uint64_t kv_bytes(const ModelConfig& config, const PlanShape& shape);

/// Sets options.n_ctx if it is 0, to the most that fits up to 4096. Throws out_of_memory saying
/// what is needed, what there is, and which of -c, --kv-type or a smaller model type would fit.
void fit_to_memory(const Model& model, ContextOptions& options);

}  // namespace heddle::llm
