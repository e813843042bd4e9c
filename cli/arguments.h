// The command line.
#pragma once

#include <functional>

namespace heddle::cli {

/// What was asked for, ready to be done. Prints help, the version, or what is wrong, and then gives
/// a function that only returns the exit code.
std::function<int()> parse_arguments(int argc, char** argv);

}  // namespace heddle::cli
