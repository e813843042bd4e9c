#include "support/allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local int allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace heddle {

AllocationCount::AllocationCount() : start_(allocations) {}
int AllocationCount::so_far() const {
  return allocations - start_;
}

}  // namespace heddle
