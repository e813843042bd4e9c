// For programs whose devices hang: waits are given up after a second, not after ten.
#pragma once

#include <cstdlib>

namespace heddle::test {

inline const bool kWaitsAreShort =
    setenv("HEDDLE_TIMEOUT", "1", 1) == 0;  // before settings are read

}  // namespace heddle::test
