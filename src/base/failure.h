// Errors that are kept and thrown again: at every read, and on any thread.
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "heddle/error.h"

namespace heddle {

/// An error as its owner keeps it: every read throws a new one that says the same. (A kept
/// exception would be one object in the hands of all who catch it.)
struct Failure {
  ErrorCode code = ErrorCode::backend;
  std::string message;
  [[noreturn]] void raise() const { throw Error(code, message); }
};

/// What an exception says; anything but an Error is a backend's.
std::shared_ptr<const Failure> failure_of(const std::exception_ptr& error) noexcept;

/// The failure of what was to say something else but found no memory for it.
std::shared_ptr<const Failure> out_of_host_memory() noexcept;

}  // namespace heddle
