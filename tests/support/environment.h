// Numbers by which a longer run is asked for, from the environment.
#pragma once

#include <cstdlib>

namespace heddle::test {

/// The value of a variable, or `otherwise` where it is not set.
inline int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atoi(text) : otherwise;
}

}  // namespace heddle::test
