// Where the user called: the line that nodes made on this thread belong to.
#pragma once

#include <source_location>
#include <string>

namespace heddle {

/// Until the end of the scope, nodes are made for the call at `where`. Functions call each other:
/// the outermost scope of a thread counts.
class CallSite {
 public:
  explicit CallSite(const std::source_location& where) noexcept : outermost_(!current) {
    if (outermost_) current = &where;
  }
  ~CallSite() {
    if (outermost_) current = nullptr;
  }
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

  bool outermost() const noexcept { return outermost_; }
  /// Nowhere outside of a scope.
  static std::source_location now() noexcept { return current ? *current : std::source_location(); }

 private:
  static inline thread_local const std::source_location* current = nullptr;
  const bool outermost_;
};

/// "[model.cpp:12]"
std::string to_string(const std::source_location& where);

}  // namespace heddle
