// What one schema may cost to be compiled, and what is kept meanwhile.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "text/grammar/char_dfa.h"

namespace heddle::text::grammar {

class SchemaWork {
 public:
  /// Throws unsupported when all that was done together exceeds what a schema may cost: some
  /// seconds at most.
  void spend(std::size_t steps);
  /// The machine of a pattern, made once.
  const CharDfa& pattern(const std::string& pattern, std::string_view where);

 private:
  std::size_t left_ = 50'000'000;
  std::map<std::string, CharDfa> patterns_;
};

}  // namespace heddle::text::grammar
