// Counts calls of operator new, for tests of what must not allocate. Link support/allocations.cpp.
#pragma once

namespace heddle {

/// Allocations of this thread since it was made.
class AllocationCount {
 public:
  AllocationCount();
  int so_far() const;

 private:
  int start_;
};

}  // namespace heddle
