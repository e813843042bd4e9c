// What random bits mean.
#pragma once

#include "support/reference.h"

namespace heddle::test {

/// Nothing for ops that are not its own.
std::vector<Values> reference_random(const Op& op, const std::vector<Values>& inputs);

}  // namespace heddle::test
