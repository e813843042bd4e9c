// Rule 11, in place only by proof: who may write over memory.
#pragma once

#include <atomic>

namespace heddle {

/// While one lives, anywhere in the process, nothing is written in place unless the op requires it.
/// For tests: what is computed may not depend on it.
class NoDonation {
 public:
  NoDonation() noexcept { ++living_; }
  ~NoDonation() { --living_; }
  NoDonation(const NoDonation&) = delete;
  NoDonation& operator=(const NoDonation&) = delete;
  static bool is_on() noexcept { return living_ > 0; }

 private:
  static inline std::atomic<int> living_{0};
};

}  // namespace heddle
