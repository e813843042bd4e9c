// Command buffers, and what goes into them: dispatches, copies, barriers.
#pragma once

#include <volk.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/vulkan/kernel.h"
#include "device/vulkan/memory.h"
#include "device/vulkan/pipelines.h"

namespace heddle::vulkan {

/// An operand as shaders find it: bytes from where a slot of the binding table lies. (OperandAt of
/// kernel.glsl.)
struct OperandAt {
  std::uint32_t offset_low = 0, offset_high = 0, slot = 0;
};
OperandAt operand_at(std::uint32_t slot, std::uint64_t offset) noexcept;

/// A row of the binding table. (Slot of kernel.glsl.)
struct TableSlot {
  std::uint64_t base = 0, bytes = 0;
};
inline constexpr std::uint32_t kReportSlot = 0, kAbsoluteSlot = 1, kFirstSlot = 2;

/// Small host-visible memory, handed out from front to back and freed as a whole. Not thread-safe.
class Arena {
 public:
  explicit Arena(std::shared_ptr<Heap> heap) : heap_(std::move(heap)) {}
  struct Room {
    std::byte* host = nullptr;
    VkDeviceAddress address = 0;
  };
  Room take(std::size_t bytes);  // 64-byte aligned
  /// What was handed out lives as long as all of these.
  const std::vector<std::shared_ptr<const Memory>>& memory() const noexcept { return memory_; }

 private:
  const std::shared_ptr<Heap> heap_;
  std::vector<std::shared_ptr<const Memory>> memory_;
  std::size_t used_ = 0;
};
/// Memory of a heap that is given back with the last owner.
std::shared_ptr<const Memory> make_memory(const std::shared_ptr<Heap>& heap, std::size_t bytes);

/// A command buffer with its pool.
class CommandBuffer {
 public:
  explicit CommandBuffer(std::shared_ptr<Context> context);
  ~CommandBuffer();
  CommandBuffer(const CommandBuffer&) = delete;
  CommandBuffer& operator=(const CommandBuffer&) = delete;
  VkCommandBuffer handle() const noexcept { return handle_; }
  void begin(bool once);
  void end();

 private:
  const std::shared_ptr<Context> context_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer handle_ = VK_NULL_HANDLE;
};

/// Command buffers that are used again. Thread-safe.
class CommandBuffers : public std::enable_shared_from_this<CommandBuffers> {
 public:
  explicit CommandBuffers(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  /// Comes back here with the last owner.
  std::shared_ptr<CommandBuffer> take();

 private:
  const std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CommandBuffer>> free_;
};

/// What a sequence of commands adds to the device's counts each time it is submitted.
struct Tally {
  std::uint64_t barriers = 0, copies = 0, copied_bytes = 0;
  std::uint64_t first_uses = 0;  // of pipelines
  std::vector<std::pair<DispatchCount, std::uint64_t>> dispatches;
  void add(const DispatchCount& shader, std::uint64_t times = 1);
  void merge(const Tally& other);
  void count(Counters& counters) const;
};

/// Writes commands. Where they need memory it comes from the arena, which must live as long.
class Encoder {
 public:
  Encoder(Context& context, Arena& arena, Tally& tally, VkCommandBuffer commands)
      : context_(context), arena_(arena), tally_(tally), commands_(commands) {}

  /// Where an indirect dispatch finds its grid.
  struct Arguments {
    const Memory* memory = nullptr;  // null: the grid that the dispatch has
    std::size_t offset = 0;
  };
  /// `operand_of(Address)` says where each operand lies, `grid_of(Dispatch)` where its grid;
  /// `launch` is the number under which it reports bad indices.
  template <class OperandOf, class GridOf>
  void launch(const VulkanKernel& kernel, VkDeviceAddress table, std::uint32_t launch,
              const OperandOf& operand_of, const GridOf& grid_of) {
    for (const Dispatch& dispatch : kernel.dispatches()) {
      if (dispatch.after_previous) barrier();
      operands_.clear();
      for (const Address& address : dispatch.operands) operands_.push_back(operand_of(address));
      add(dispatch, table, launch, grid_of(dispatch));
    }
  }
  template <class OperandOf>
  void launch(const VulkanKernel& kernel, VkDeviceAddress table, std::uint32_t number,
              const OperandOf& operand_of) {
    launch(kernel, table, number, operand_of, [](const Dispatch&) { return Arguments{}; });
  }
  void copy(const Memory& from, std::size_t from_offset, const Memory& to, std::size_t to_offset,
            std::size_t bytes);
  /// What follows sees what came before, in this submission and earlier ones of the queue.
  void barrier();
  /// The host will see what came before, once the submission has ended.
  void host_barrier();

 private:
  void add(const Dispatch& dispatch, VkDeviceAddress table, std::uint32_t launch,
           const Arguments& arguments);
  std::size_t fill(std::byte* push, const Dispatch& dispatch);
  void pipeline_barrier(VkAccessFlags to, VkPipelineStageFlags stage);

  Context& context_;
  Arena& arena_;
  Tally& tally_;
  const VkCommandBuffer commands_;
  VkPipeline bound_ = VK_NULL_HANDLE;
  std::vector<OperandAt> operands_;
};

}  // namespace heddle::vulkan
