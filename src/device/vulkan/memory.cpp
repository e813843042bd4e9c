#include "device/vulkan/memory.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace heddle::vulkan {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 20;

constexpr VkBufferUsageFlags kUsage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
    VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
    VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

void create_buffer(Chunk& chunk, std::size_t bytes, const void* next) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, next};
  info.size = chunk.bytes = bytes;
  info.usage = kUsage;
  Context& context = *chunk.context;
  context.check(
      call(
          Site::buffer,
          [&] { return context.vk.vkCreateBuffer(context.device, &info, nullptr, &chunk.buffer); }),
      "vkCreateBuffer", fmt::format("{} bytes", bytes));
}

VkMemoryRequirements requirements_of(const Chunk& chunk) {
  VkMemoryRequirements requirements;
  chunk.context->vk.vkGetBufferMemoryRequirements(chunk.context->device, chunk.buffer,
                                                  &requirements);
  return requirements;
}

VkResult allocate_memory(Chunk& chunk, Site site, std::size_t bytes, std::uint32_t type,
                         const void* next) {
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, next};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags};
  info.allocationSize = bytes;
  info.memoryTypeIndex = type;
  const Context& context = *chunk.context;
  return call(site, [&] {
    return context.vk.vkAllocateMemory(context.device, &info, nullptr, &chunk.memory);
  });
}

void bind(Chunk& chunk) {
  Context& context = *chunk.context;
  context.check(call(Site::bind,
                     [&] {
                       return context.vk.vkBindBufferMemory(context.device, chunk.buffer,
                                                            chunk.memory, 0);
                     }),
                "vkBindBufferMemory");
  VkBufferDeviceAddressInfo info{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  info.buffer = chunk.buffer;
  chunk.address = context.vk.vkGetBufferDeviceAddress(context.device, &info);
}

}  // namespace

Chunk::~Chunk() {
  const VolkDeviceTable& vk = context->vk;
  if (buffer) vk.vkDestroyBuffer(context->device, buffer, nullptr);
  if (memory) vk.vkFreeMemory(context->device, memory, nullptr);
}

std::shared_ptr<Chunk> allocate_chunk(std::shared_ptr<Context> context, std::size_t bytes,
                                      bool host_visible) {
  context->throw_if_lost();
  require(bytes <= context->limits().max_allocation, ErrorCode::out_of_memory,
          "{}: {} bytes at once; the device allocates at most {}", context->name(), bytes,
          context->limits().max_allocation);
  auto chunk = std::make_shared<Chunk>(std::move(context));
  create_buffer(*chunk, bytes, nullptr);
  const VkMemoryRequirements needed = requirements_of(*chunk);
  const std::uint32_t type = chunk->context->memory_type(needed.memoryTypeBits, host_visible);
  chunk->context->check(allocate_memory(*chunk, Site::allocate, needed.size, type, nullptr),
                        "vkAllocateMemory", fmt::format("{} bytes", needed.size));
  bind(*chunk);
  const bool seen = host_visible || (chunk->context->limits().shares_memory &&
                                     chunk->context->is_host_visible(type));
  if (seen) {
    void* host = nullptr;
    Context& of = *chunk->context;
    of.check(call(Site::map,
                  [&] {
                    return of.vk.vkMapMemory(of.device, chunk->memory, 0, VK_WHOLE_SIZE, 0, &host);
                  }),
             "vkMapMemory", fmt::format("{} bytes", needed.size));
    chunk->host = static_cast<std::byte*>(host);
  }
  return chunk;
}

std::shared_ptr<Chunk> import_chunk(std::shared_ptr<Context> context, std::span<std::byte> memory) {
  constexpr auto kKind = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const std::size_t alignment = context->limits().host_import_alignment;
  if (alignment == 0 || memory.size() > context->limits().max_allocation) return nullptr;
  VkMemoryHostPointerPropertiesEXT properties{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  if (context->vk.vkGetMemoryHostPointerPropertiesEXT(context->device, kKind, memory.data(),
                                                      &properties) != VK_SUCCESS ||
      properties.memoryTypeBits == 0) {
    return nullptr;
  }
  VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  external.handleTypes = kKind;
  auto chunk = std::make_shared<Chunk>(std::move(context));
  create_buffer(*chunk, memory.size(), &external);
  const std::uint32_t allowed = requirements_of(*chunk).memoryTypeBits & properties.memoryTypeBits;
  if (allowed == 0) return nullptr;
  VkImportMemoryHostPointerInfoEXT import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
  import.handleType = kKind;
  import.pHostPointer = memory.data();
  const std::uint32_t type = static_cast<std::uint32_t>(std::countr_zero(allowed));
  if (allocate_memory(*chunk, Site::import, memory.size(), type, &import) != VK_SUCCESS) {
    return nullptr;  // of read-only memory, say: whoever asked copies instead
  }
  bind(*chunk);
  chunk->host = memory.data();
  return chunk;
}

// ---- Pieces

bool Heap::take(Pool& pool, std::size_t bytes, Piece& piece) {
  auto best = pool.gaps.end();
  for (auto gap = pool.gaps.begin(); gap != pool.gaps.end(); ++gap) {
    if (gap->second >= bytes && (best == pool.gaps.end() || gap->second < best->second)) best = gap;
  }
  if (best == pool.gaps.end()) return false;
  const auto [offset, size] = *best;
  pool.gaps.erase(best);
  if (size > bytes) pool.gaps.emplace(offset + bytes, size - bytes);
  piece = {pool.chunk, offset, bytes};
  return true;
}

Piece Heap::allocate(std::size_t bytes) {
  bytes = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  Piece piece;
  if (bytes >= kChunkBytes / 4) {  // alone, so that freeing it gives it back
    piece = {allocate_chunk(context_, bytes, host_visible_), 0, bytes};
    return piece;
  }
  const std::lock_guard lock(mutex_);
  for (Pool& pool : pools_) {
    if (take(pool, bytes, piece)) return piece;
  }
  const std::size_t whole = std::min<std::size_t>({kChunkBytes, context_->limits().max_allocation,
                                                   std::max(context_->limits().memory / 8, bytes)});
  pools_.push_back({allocate_chunk(context_, whole, host_visible_), {{0, whole}}});
  take(pools_.back(), bytes, piece);
  return piece;
}

void Heap::free(const Piece& piece) noexcept {
  std::shared_ptr<Chunk> empty;  // given back outside the lock
  const std::lock_guard lock(mutex_);
  const auto pool = std::ranges::find(pools_, piece.chunk, &Pool::chunk);
  if (pool == pools_.end()) return;  // a chunk of its own, which goes with the piece
  auto gap = pool->gaps.emplace(piece.offset, piece.bytes).first;
  if (const auto next = std::next(gap);
      next != pool->gaps.end() && gap->first + gap->second == next->first) {
    gap->second += next->second;
    pool->gaps.erase(next);
  }
  if (gap != pool->gaps.begin()) {
    const auto before = std::prev(gap);
    if (before->first + before->second == gap->first) {
      before->second += gap->second;
      pool->gaps.erase(gap);
    }
  }
  const bool unused = pool->gaps.size() == 1 && pool->gaps.begin()->second == pool->chunk->bytes;
  if (!unused || pools_.size() == 1) return;
  empty = std::move(pool->chunk);
  pools_.erase(pool);
}

Memory::~Memory() {
  if (heap) heap->free({chunk, offset, bytes});
}

}  // namespace heddle::vulkan
