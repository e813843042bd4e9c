// GLSL as a compiler's parser sees it: comments gone, includes and macros put in, a variant for
// each way that conditions can turn out.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace heddle::test {

struct ShaderToken {
  std::string text, file;
  int line = 0;
  bool spaced = false;  // after white space
};
using ShaderTokens = std::vector<ShaderToken>;

/// By name, as `#include` says it.
using ShaderFiles = std::map<std::string, std::string>;

/// `name` and what it includes, once for each combination of conditions that nothing in these files
/// decides (they may come from the compiler's command line). Tokens of a macro's body keep the
/// lines of its definition. Throws std::runtime_error for a file that is not there, conditions that
/// do not close, or more than 4096 variants.
std::vector<ShaderTokens> shader_variants(const ShaderFiles& files, const std::string& name);

}  // namespace heddle::test
