// Python programs as oracles.
#pragma once

#include <cstdlib>
#include <string>

namespace heddle::test {

/// The first python3 that has `modules` (names with spaces between): that of Debian's packages may
/// not be the first of the PATH. Empty where there is none.
inline std::string python_with(const std::string& modules) {
  for (const std::string python : {"python3", "/usr/bin/python3"}) {
    const std::string command = python + " -c 'import sys; from importlib.util import find_spec; " +
                                "sys.exit(not all(map(find_spec, sys.argv[1:])))' " + modules +
                                " >/dev/null 2>&1";
    if (std::system(command.c_str()) == 0) return python;
  }
  return {};
}

}  // namespace heddle::test
