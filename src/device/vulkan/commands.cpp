#include "device/vulkan/commands.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/settings.h"

namespace heddle::vulkan {

OperandAt operand_at(std::uint32_t slot, std::uint64_t offset) noexcept {
  return {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(offset >> 32), slot};
}

// ---- Memory for parameters and tables

std::shared_ptr<const Memory> make_memory(const std::shared_ptr<Heap>& heap, std::size_t bytes) {
  Piece piece = heap->allocate(bytes);
  auto memory = std::make_shared<Memory>();
  memory->chunk = std::move(piece.chunk);
  memory->offset = piece.offset;
  memory->bytes = piece.bytes;
  memory->heap = heap;
  return memory;
}

Arena::Room Arena::take(std::size_t bytes) {
  constexpr std::size_t kBlock = 64 * 1024;
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (memory_.empty() || memory_.back()->bytes - used_ < bytes) {
    memory_.push_back(make_memory(heap_, std::max(bytes, kBlock)));
    used_ = 0;
  }
  const Memory& memory = *memory_.back();
  const Room room{memory.host() + used_, memory.address() + used_};
  used_ += bytes;
  return room;
}

// ---- Command buffers

CommandBuffer::CommandBuffer(std::shared_ptr<Context> context) : context_(std::move(context)) {
  const VolkDeviceTable& vk = context_->vk;
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = context_->physical().queue_family;
  context_->check(
      call(Site::command_pool,
           [&] { return vk.vkCreateCommandPool(context_->device, &pool, nullptr, &pool_); }),
      "vkCreateCommandPool");
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  const VkResult result = call(Site::command_buffer, [&] {
    return vk.vkAllocateCommandBuffers(context_->device, &info, &handle_);
  });
  if (result != VK_SUCCESS) vk.vkDestroyCommandPool(context_->device, pool_, nullptr);
  context_->check(result, "vkAllocateCommandBuffers");
}

CommandBuffer::~CommandBuffer() {
  context_->vk.vkDestroyCommandPool(context_->device, pool_, nullptr);
}

void CommandBuffer::begin(bool once) {
  context_->vk.vkResetCommandPool(context_->device, pool_, 0);
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = once ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT : 0;
  context_->check(
      call(Site::begin, [&] { return context_->vk.vkBeginCommandBuffer(handle_, &info); }),
      "vkBeginCommandBuffer");
}

void CommandBuffer::end() {
  context_->check(call(Site::end, [&] { return context_->vk.vkEndCommandBuffer(handle_); }),
                  "vkEndCommandBuffer");
}

std::shared_ptr<CommandBuffer> CommandBuffers::take() {
  std::unique_ptr<CommandBuffer> taken;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      taken = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!taken) taken = std::make_unique<CommandBuffer>(context_);
  return {taken.release(), [self = shared_from_this()](CommandBuffer* buffer) {
            const std::lock_guard lock(self->mutex_);
            self->free_.emplace_back(buffer);
          }};
}

// ---- Counts

void Tally::add(const DispatchCount& shader, std::uint64_t times) {
  const auto known =
      std::ranges::find(dispatches, shader, &decltype(dispatches)::value_type::first);
  if (known != dispatches.end()) {
    known->second += times;
  } else {
    dispatches.emplace_back(shader, times);
  }
}

void Tally::merge(const Tally& other) {
  barriers += other.barriers;
  copies += other.copies;
  copied_bytes += other.copied_bytes;
  first_uses += other.first_uses;
  for (const auto& [shader, times] : other.dispatches) add(shader, times);
}

void Tally::count(Counters& counters) const {
  counters.barriers += barriers;
  counters.copies += copies;
  counters.copied_bytes += copied_bytes;
  for (const auto& [shader, times] : dispatches) *shader += times;
}

// ---- Commands

namespace {

struct Extent3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// At least `groups` in all, no more than `most` along an axis, and few more than needed.
Extent3 folded(std::uint64_t groups, std::uint64_t most) {
  const auto along = [&](std::uint64_t left) {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(left, 1, most));
  };
  const auto left_after = [](std::uint64_t left, std::uint32_t taken) {
    return (left + taken - 1) / taken;
  };
  Extent3 grid;
  grid.x = along(groups);
  groups = left_after(groups, grid.x);
  grid.y = along(groups);
  grid.z = along(left_after(groups, grid.y));
  return grid;
}

}  // namespace

/// Writes operands and parameters behind the header of the push constants, or into a block whose
/// address goes there; returns the bytes to push.
std::size_t Encoder::fill(std::byte* push, const Dispatch& dispatch) {
  const std::size_t operand_bytes = operands_.size() * sizeof(OperandAt);
  const std::size_t bytes = operand_bytes + dispatch.params.size();
  std::byte* to = push + kPushHeader;
  std::size_t pushed = kPushHeader + bytes;
  if (in_block(operands_.size(), dispatch.params.size())) {
    const Arena::Room block = arena_.take(bytes);
    std::memcpy(to, &block.address, sizeof block.address);
    pushed = kPushHeader + sizeof block.address;
    to = block.host;
  }
  std::memcpy(to, operands_.data(), operand_bytes);
  std::memcpy(to + operand_bytes, dispatch.params.data(), dispatch.params.size());
  return pushed;
}

void Encoder::add(const Dispatch& dispatch, VkDeviceAddress table, std::uint32_t launch,
                  const Arguments& arguments) {
  if (dispatch.grid.groups == 0) return;
  std::byte push[kMostPushBytes];  // Push of kernel.glsl
  const auto groups = static_cast<std::uint32_t>(dispatch.grid.groups);
  std::memcpy(push, &table, 8);
  std::memcpy(push + 8, &launch, 4);
  std::memcpy(push + 12, &groups, 4);
  const std::size_t pushed = fill(push, dispatch);

  const VolkDeviceTable& vk = context_.vk;
  const Pipeline& pipeline = *dispatch.pipeline;
  if (bound_ != pipeline.handle()) {
    bound_ = pipeline.handle();
    vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, bound_);
  }
  vk.vkCmdPushConstants(commands_, context_.pipeline_layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        static_cast<std::uint32_t>(pushed), push);
  if (arguments.memory) {
    vk.vkCmdDispatchIndirect(commands_, arguments.memory->chunk->buffer,
                             arguments.memory->offset + arguments.offset);
  } else {
    const Extent3 grid = folded(dispatch.grid.groups, context_.limits().max_groups);
    vk.vkCmdDispatch(commands_, grid.x, grid.y, grid.z);
  }
  tally_.add(pipeline.count());
  tally_.first_uses += pipeline.first_use();
}

void Encoder::copy(const Memory& from, std::size_t from_offset, const Memory& to,
                   std::size_t to_offset, std::size_t bytes) {
  if (bytes == 0) return;
  const VkBufferCopy region{from.offset + from_offset, to.offset + to_offset, bytes};
  context_.vk.vkCmdCopyBuffer(commands_, from.chunk->buffer, to.chunk->buffer, 1, &region);
  ++tally_.copies;
  tally_.copied_bytes += bytes;
}

void Encoder::barrier() {
  if (settings().vulkan_barriers == "none") return;
  pipeline_barrier(VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
                   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT |
                       VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT);
  ++tally_.barriers;
}

void Encoder::host_barrier() {
  pipeline_barrier(VK_ACCESS_HOST_READ_BIT, VK_PIPELINE_STAGE_HOST_BIT);
}

void Encoder::pipeline_barrier(VkAccessFlags to, VkPipelineStageFlags stage) {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = to;
  context_.vk.vkCmdPipelineBarrier(
      commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, stage, 0, 1,
      &barrier, 0, nullptr, 0, nullptr);
}

}  // namespace heddle::vulkan
