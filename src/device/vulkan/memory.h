// Memory of a Vulkan device: pieces of large allocations, each at an address.
#pragma once

#include <volk.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/vulkan/context.h"
#include "heddle/memory.h"

namespace heddle::vulkan {

/// A driver allocation with a buffer over all of it.
struct Chunk {
  std::shared_ptr<Context> context;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;
  std::byte* host = nullptr;  // null where the host does not see it
  std::size_t bytes = 0;

  explicit Chunk(std::shared_ptr<Context> of) : context(std::move(of)) {}
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
};
std::shared_ptr<Chunk> allocate_chunk(std::shared_ptr<Context> context, std::size_t bytes,
                                      bool host_visible);
/// The pages of host memory that hold `memory`, as the device sees them, kept by `owner`; null
/// where the driver cannot.
std::shared_ptr<Chunk> import_chunk(std::shared_ptr<Context> context, std::span<std::byte> memory);

/// Bytes of a chunk.
struct Piece {
  std::shared_ptr<Chunk> chunk;
  std::size_t offset = 0, bytes = 0;
};

/// Cuts pieces out of chunks, for one life of a device. Thread-safe.
class Heap : public std::enable_shared_from_this<Heap> {
 public:
  Heap(std::shared_ptr<Context> context, bool host_visible)
      : context_(std::move(context)), host_visible_(host_visible) {}
  /// Throws out_of_memory.
  Piece allocate(std::size_t bytes);
  void free(const Piece& piece) noexcept;

 private:
  struct Pool {
    std::shared_ptr<Chunk> chunk;
    std::map<std::size_t, std::size_t> gaps;  // offset -> bytes
  };
  bool take(Pool& pool, std::size_t bytes, Piece& piece);

  const std::shared_ptr<Context> context_;
  const bool host_visible_;
  std::mutex mutex_;
  std::vector<Pool> pools_;
};

/// What a Vulkan buffer's memory is, for whoever uses it: kept by buffers and by work in flight.
struct Memory {
  std::shared_ptr<Chunk> chunk;
  std::size_t offset = 0, bytes = 0;
  MemoryPool::Block block;            // of the device's pool, or:
  std::shared_ptr<Heap> heap;         // given back to it in the end, or:
  std::shared_ptr<const void> owner;  // of imported memory

  ~Memory();
  VkDeviceAddress address() const noexcept { return chunk->address + offset; }
  std::byte* host() const noexcept { return chunk->host ? chunk->host + offset : nullptr; }
};

class VulkanBuffer final : public Buffer {
 public:
  VulkanBuffer(Device& device, std::size_t size, std::shared_ptr<const Memory> memory)
      : Buffer(device, size, memory->host()), memory_(std::move(memory)) {}
  const std::shared_ptr<const Memory>& memory() const noexcept { return memory_; }
  bool is_lost() const noexcept override { return memory_->chunk->context->lost(); }

 private:
  const std::shared_ptr<const Memory> memory_;
};

inline constexpr std::size_t kAlignment = 64;  // of pieces and of offsets, in bytes

}  // namespace heddle::vulkan
