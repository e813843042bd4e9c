// What the address sanitizer is told of memory that changes hands without its knowing.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define HEDDLE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEDDLE_ADDRESS_SANITIZER 1
#endif
#endif

#ifndef HEDDLE_ADDRESS_SANITIZER
#define HEDDLE_ADDRESS_SANITIZER 0
#endif

#if HEDDLE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace heddle {

inline constexpr bool kAddressSanitizer = HEDDLE_ADDRESS_SANITIZER;

#if HEDDLE_ADDRESS_SANITIZER
inline void forbid_access(const void* memory, std::size_t bytes) {
  __asan_poison_memory_region(memory, bytes);
}
inline void allow_access(const void* memory, std::size_t bytes) {
  __asan_unpoison_memory_region(memory, bytes);
}
#else
inline void forbid_access(const void*, std::size_t) {}
inline void allow_access(const void*, std::size_t) {}
#endif

}  // namespace heddle
