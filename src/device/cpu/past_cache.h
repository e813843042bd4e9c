// Stores that go past the caches. An ordinary store reads the line first that it is going to
// overwrite: a third of the traffic of a copy that no cache can hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace heddle::cpu {

/// Outputs so large are gone from a core's caches before anyone reads them.
inline constexpr std::size_t kPastCacheBytes = std::size_t{32} << 20;

/// Copies `bytes` bytes from cached memory. Others see them after `end_past_cache`.
inline void write_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__SSE2__)
  constexpr std::size_t kLine = 64;
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = std::min(bytes, (kLine - misaligned) % kLine);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
  }
  std::memcpy(to + at, from + at, bytes - at);
#else
  std::memcpy(to, from, bytes);
#endif
}

/// Such stores are not ordered with others; this is, for the thread that made them.
inline void end_past_cache() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace heddle::cpu
