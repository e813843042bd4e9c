// What barriers a plan's splits have, checked by a simulator that knows nothing but the byte ranges
// that kernels declare and where the barriers are.
#pragma once

#include <string>
#include <vector>

#include "exec/plan.h"

namespace heddle::test {

/// Two uses of the same bytes, one of them a write, without a barrier between them: "split 0: step
/// 3 reads bytes 0..64 of slot 2, which step 1 writes". Empty if there are none in two runs in a
/// row.
std::string unordered_use(const Plan& plan);

/// Barriers without which there would still be none. Those that begin a split are left out: they
/// order a submission after earlier ones, whatever those were.
std::vector<std::string> barriers_for_nothing(const Plan& plan);

/// Barriers within splits.
std::size_t inner_barriers(const Plan& plan);

}  // namespace heddle::test
