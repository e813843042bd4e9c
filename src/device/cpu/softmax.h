// Softmax over the last axis, causal softmax too, for every floating dtype.
#pragma once

#include "device/cpu/kernel.h"

namespace heddle::cpu {

Prepared prepare_softmax(const PrepareArgs& args);

}  // namespace heddle::cpu
