// Asking for memory before it is needed, where processors do not foresee it: at the next row, in
// the next page.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::cpu {

inline constexpr std::int64_t kCacheLine = 64;

/// Memory that is read soon. It may lie beyond the end: then nothing happens.
inline void prefetch(const void* at, std::int64_t bytes) {
  const auto* line = static_cast<const std::byte*>(at);
  for (std::int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(line + i);
}
/// Memory that is read after some thousand cycles of other work: into the second cache, as misses
/// of the first one are few at a time, and needed by that work.
inline void prefetch_later(const void* at, std::int64_t bytes) {
  const auto* line = static_cast<const std::byte*>(at);
  for (std::int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(line + i, 0, 2);
}
/// Memory that is written soon.
inline void prefetch_for_write(const void* at, std::int64_t bytes) {
  const auto* line = static_cast<const std::byte*>(at);
  for (std::int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(line + i, 1);
}

}  // namespace heddle::cpu
