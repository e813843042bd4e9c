// Chunks for threads that take one after another and should end together.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle::cpu {

/// [0, count) in chunks that dwindle: three quarters of it shared evenly among the threads, then
/// three quarters of what is left, and so on, down to chunks of `least`. So each thread reads long
/// runs of memory, and none waits long for the last chunk.
class Dwindling {
 public:
  struct Range {
    std::int64_t begin, end;
  };

  Dwindling(std::int64_t count, std::int64_t least, std::int64_t threads)
      : count_(count), least_(std::max<std::int64_t>(1, least)), threads_(threads) {}

  std::int64_t chunks() const {
    std::int64_t before = 0, left = count_;
    for (std::int64_t size; (size = shared(left)) > 0; left -= size * threads_) before += threads_;
    return before + (left + least_ - 1) / least_;
  }

  Range range(std::int64_t chunk) const {
    std::int64_t left = count_;
    for (std::int64_t size; (size = shared(left)) > 0; left -= size * threads_) {
      if (chunk < threads_) return sized(count_ - left + chunk * size, size);
      chunk -= threads_;
    }
    return sized(count_ - left + chunk * least_, least_);
  }

 private:
  /// What each thread gets of `left`; 0 where that would be less than `least`.
  std::int64_t shared(std::int64_t left) const {
    const std::int64_t size = threads_ == 1 ? left : left * 3 / (4 * threads_);
    return size < least_ ? 0 : size;
  }
  Range sized(std::int64_t begin, std::int64_t size) const {
    return {begin, std::min(begin + size, count_)};
  }

  std::int64_t count_, least_, threads_;
};

}  // namespace heddle::cpu
