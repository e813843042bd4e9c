#include <csignal>
#include <exception>

#include "base/check.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"

int main(int argc, char** argv) {
  using namespace heddle::cli;
  // A reader that has gone ends the program quietly, even if whoever started it ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  try {
    const int code = parse_arguments(argc, argv)();
    flush_output();
    return code;
  } catch (const UsageError& error) {
    fmt::print(stderr, "heddle: {}\n", error.what());
    return kUsage;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "heddle: out of memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "heddle: {}\n", error.what());
  }
  return kFailure;
}
