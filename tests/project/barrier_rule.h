// Rule 14 in shaders: no barrier is skipped by some invocations of a workgroup only.
#pragma once

#include <string>
#include <vector>

#include "project/shader_text.h"

namespace heddle::test {

struct SkippedBarrier {
  std::string file;  // where the return, continue, break or barrier is
  int line = 0;
  std::string what;  // "return before barrier (tile.glsl:31)"
  friend auto operator<=>(const SkippedBarrier&, const SkippedBarrier&) = default;
};

/// Every `return`, `continue` and `break` in `name` and what it includes by which an invocation may
/// leave out a barrier of the same function: its own, or one in a function that it calls. Where
/// nothing but constants (kName, literals) decides whether it is taken, all invocations take it or
/// none, and it is no finding. Also every barrier that stands where an invocation's own index, or a
/// variable of the function made of it, decides.
std::vector<SkippedBarrier> skipped_barriers(const ShaderFiles& files, const std::string& name);

}  // namespace heddle::test
