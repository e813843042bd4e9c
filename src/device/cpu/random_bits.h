// Random bits.
#pragma once

#include "device/cpu/kernel.h"

namespace heddle::cpu {

Prepared prepare_random_bits(const PrepareArgs&);

}  // namespace heddle::cpu
