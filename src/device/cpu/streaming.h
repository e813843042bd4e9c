// Stores past the caches, for outputs so large that nobody finds them in a cache afterwards: plain
// stores would first read what they overwrite, and push out what others read.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace heddle::cpu {

/// Outputs of this many bytes are streamed: about the part of a last-level cache that one program
/// may count on.
inline constexpr std::int64_t kStreamedBytes = std::int64_t{32} << 20;
/// Elements that are computed before they are streamed: few enough for both to go on side by side.
inline constexpr std::int64_t kStreamedAtOnce = 256;

/// Elements between what is computed, to be streamed, and what is fetched meanwhile.
inline constexpr std::int64_t kStreamedAhead = 4 * kStreamedAtOnce;

/// How a function on arrays stores its results: past the caches, they must begin on a cache line.
enum class Stores { cached, streamed };

/// Its end comes after all stores that this thread streamed (RowOps::stream): others may read them
/// then. A chunk of a parallel loop that streams has one.
class StreamFence {
 public:
  StreamFence() = default;
  StreamFence(const StreamFence&) = delete;
  StreamFence& operator=(const StreamFence&) = delete;
  ~StreamFence() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
  }
};

}  // namespace heddle::cpu
