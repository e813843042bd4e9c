// Where devices get memory: a pool that keeps freed blocks for whoever asks next, what it counts,
// and its limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "heddle/device.h"

namespace heddle {

inline constexpr std::size_t kNoMemoryLimit = ~std::size_t{0};

// ---- For users. Names are MLX's. Sizes are in bytes and count whole blocks of the pool, which are
// up to 1/8 larger than what was asked for, and up to 1/8 more when a cached block is used again
// (but 64 bytes at least). Imported memory is not counted. A device that does not count its memory
// (Device::memory() is null) has none by these functions, and takes no limits: unsupported.

/// In buffers that somebody holds.
std::size_t get_active_memory(Device& device = cpu_device());
/// The most that was active at once since the start, or since `reset_peak_memory`.
std::size_t get_peak_memory(Device& device = cpu_device());
void reset_peak_memory(Device& device = cpu_device());
/// Freed, and kept for the next allocations.
std::size_t get_cache_memory(Device& device = cpu_device());
/// Gives all cached memory back to the system.
void clear_cache(Device& device = cpu_device());

/// Active and cached memory together stay within `limit`: the cache gives way first, then
/// allocation throws out_of_memory. What is active already stays. 0 or kNoMemoryLimit: no limit.
/// Returns the previous one. A process starts with HEDDLE_MEMORY_LIMIT.
std::size_t set_memory_limit(std::size_t limit, Device& device = cpu_device());
std::size_t get_memory_limit(Device& device = cpu_device());
/// The most to cache; 0 is nothing. Returns the previous limit. A process starts with
/// HEDDLE_CACHE_LIMIT.
std::size_t set_cache_limit(std::size_t limit, Device& device = cpu_device());

// ---- For devices

/// Hands out blocks of a device's memory and keeps them when they are freed. A block is used again
/// for the smallest request that wastes at most 1/8 of it. The cache cannot make a program larger
/// for long: what it holds goes, oldest first, when
/// - there is more of it than the cache limit,
/// - active and cached memory would pass the memory limit, or by more than 1/8 (and 16 MiB) what
///   the program has needed at its worst, or
/// - it lay unused for 10 s (seen at the next large request or free, or at some small one).
///
/// Any thread may call anything, and free a block. The source is called without the pool's lock.
/// Blocks may outlive the pool: what they need of it lives as long as they do.
class MemoryPool {
 public:
  /// Where the memory comes from, by as many threads at once as there are. What `allocate` returns
  /// need not be an address: the pool only hands it back.
  struct Source {
    /// Null, or Error out_of_memory, where there is none; the cache is freed, and it is asked
    /// again.
    std::function<void*(std::size_t bytes)> allocate;
    std::function<void(void* memory, std::size_t bytes)> free;  // must not throw
  };
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::string name;  // the device's, for errors
    std::size_t memory_limit = kNoMemoryLimit;
    std::size_t cache_limit = kNoMemoryLimit;
    /// `Source::allocate` gives addresses, of memory that the host may touch: lets the address
    /// sanitizer find who touches cached blocks, or the room behind what was asked for.
    bool addressable = false;
    std::function<Clock::time_point()> now = Clock::now;
  };

  MemoryPool(Source source, Options options);
  ~MemoryPool();  // frees the cache
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Memory that is somebody's until the Block goes.
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
    Block& operator=(Block&& other) noexcept {
      std::swap(record_, other.record_);
      return *this;
    }
    ~Block();
    /// As the source gave it; null for a default-made block.
    void* memory() const noexcept;
    /// At least what was asked for.
    std::size_t bytes() const noexcept;
    /// Gives the memory back to the source, past the cache: nobody should get it again.
    void discard() noexcept;

   private:
    friend class MemoryPool;
    struct Record;
    explicit Block(Record* record) noexcept : record_(record) {}
    Record* record_ = nullptr;
  };

  /// At least `bytes` bytes; a block of its own for 0, too. Throws out_of_memory naming the device,
  /// the bytes asked for, active and cached, and the limit.
  Block allocate(std::size_t bytes);

  // As the functions above.
  std::size_t active() const noexcept;
  std::size_t peak() const noexcept;
  std::size_t cached() const noexcept;
  void reset_peak() noexcept;
  void clear_cache() noexcept;
  std::size_t memory_limit() const noexcept;
  std::size_t cache_limit() const noexcept;
  std::size_t set_memory_limit(std::size_t limit) noexcept;
  std::size_t set_cache_limit(std::size_t limit) noexcept;

 private:
  struct Impl;
  Impl* impl_;  // deleted with the last block
};

}  // namespace heddle
