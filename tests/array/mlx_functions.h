// Which of MLX's functions are there: each family names its own, in a file of its own.
//
//   #define HEDDLE_NAMES(X) X(abs) X(add) X(fft::fft)
//   HEDDLE_HAS("ops.h", HEDDLE_NAMES)
//
// A name that does not exist does not compile.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>

namespace heddle::test {

class NamedFunctions {
 public:
  /// `header` is MLX's. Namespaces before a name are left out.
  NamedFunctions(const char* header, std::initializer_list<const char*> names);
  static std::map<std::string, std::set<std::string>>& by_header();
};

#define HEDDLE_USING_NAME(NAME) using ::heddle::NAME;
#define HEDDLE_NAME_TEXT(NAME) #NAME,
#define HEDDLE_HAS(HEADER, NAMES)                                                 \
  namespace {                                                                     \
  NAMES(HEDDLE_USING_NAME)                                                        \
  const ::heddle::test::NamedFunctions kNamed{HEADER, {NAMES(HEDDLE_NAME_TEXT)}}; \
  }

}  // namespace heddle::test
