#include "text/grammar/schema_work.h"

#include <algorithm>

#include "base/check.h"
#include "text/grammar/pattern.h"

namespace heddle::text::grammar {

void SchemaWork::spend(std::size_t steps) {
  require(steps <= left_, ErrorCode::unsupported,
          "JSON schema: it takes too much work to be made into a grammar; make it smaller, or its "
          "anyOf, oneOf, enum and pattern fewer");
  left_ -= steps;
}

const CharDfa& SchemaWork::pattern(const std::string& pattern, std::string_view where) {
  constexpr std::size_t kEach = 5'000'000;
  const auto known = patterns_.find(pattern);
  if (known != patterns_.end()) return known->second;
  std::size_t steps = std::min(left_, kEach);
  const std::size_t before = steps;
  CharDfa dfa = pattern_dfa(pattern, where, steps);
  spend(before - steps);
  return patterns_.emplace(pattern, std::move(dfa)).first->second;
}

}  // namespace heddle::text::grammar
