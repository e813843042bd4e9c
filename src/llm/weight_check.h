// Whether devices that a model was asked onto can read its weights.
#pragma once

#include "exec/plan.h"

namespace heddle::llm {

/// Throws unsupported naming the first tensor whose device has no kernel for an op that reads it,
/// the op and the reason. Ops that read no weights may run elsewhere.
void check_weights_have_kernels(const Plan& plan);

}  // namespace heddle::llm
