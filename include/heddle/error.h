// Errors. Everything heddle refuses or fails to do is reported as one exception type with a code
// that a program can act on and a message that a person can.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace heddle {

enum class ErrorCode {
  invalid_argument,  // the caller's shapes, dtypes, names or values
  unsupported,       // well formed, but nothing here can do it
  out_of_memory,
  timeout,      // a bounded wait on a device ran out
  device_lost,  // the device, and what lived only on it, is gone
  backend,      // a driver or library call failed
  io,           // a file is missing, unreadable or malformed
  cancelled,
};

std::string_view to_string(ErrorCode code) noexcept;

/// What heddle throws, and what a failed node or run stores and rethrows at every later read.
/// Messages name the operation, the shapes or field at fault and, where there is one, the remedy.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace heddle
