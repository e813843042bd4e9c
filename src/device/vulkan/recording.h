// Recordings: commands written once, and submitted again with whatever the binding table holds.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/vulkan/completion.h"
#include "device/vulkan/life.h"

namespace heddle::vulkan {

/// Where a recording's operands are, in memory that its kernels read.
class VulkanBindingTable final : public BindingTable {
 public:
  VulkanBindingTable(std::shared_ptr<Life> life, Device& device, std::size_t slots);
  void set(std::uint32_t slot, Ref<Buffer> buffer, std::size_t offset, std::size_t bytes) override;

  /// What is bound; memory is null where it is another device's.
  struct Bound {
    Ref<Buffer> foreign;  // only where it is another device's: own memory is kept, not buffers
    std::shared_ptr<const Memory> memory;
    std::size_t offset = 0, bytes = 0;  // from the buffer's start
  };
  /// Throws invalid_argument for a slot that is not bound.
  const Bound& bound(std::uint32_t slot) const;

  const std::shared_ptr<Life>& life() const noexcept { return life_; }
  VkDeviceAddress address() const noexcept { return rows_->memory->address(); }
  std::uint32_t* report() const noexcept;
  /// Changes whenever a slot turns from own memory to another device's, or back.
  std::uint64_t shape() const noexcept { return shape_; }
  /// Keeps all that is bound. (While a run uses it, and after a loss, nothing is bound anew.)
  std::shared_ptr<const void> kept() const noexcept { return rows_; }

 private:
  const std::shared_ptr<Life> life_;
  Device& device_;
  struct Rows {
    std::vector<Bound> bound;
    std::shared_ptr<const Memory> memory;
    TableSlot* slots = nullptr;
  };
  const std::shared_ptr<Rows> rows_ = std::make_shared<Rows>();
  std::uint64_t shape_ = 0;
};

/// One at a time submits it: see Stream::replay.
class VulkanRecording final : public Recording {
 public:
  VulkanRecording(std::shared_ptr<Life> life, std::span<const RecordedStep> steps);

  /// Adds its command buffers, written for this table if they are not yet, and what must be kept
  /// and done when they end.
  void add_to(const Life& life, VulkanBindingTable& table, std::vector<VkCommandBuffer>& pieces,
              Work& work, Tally& tally);

 private:
  /// The commands for one binding table.
  struct Written {
    std::vector<std::shared_ptr<CommandBuffer>> pieces;
    std::vector<std::shared_ptr<const Memory>> memory;  // whose addresses they contain
    Tally tally;
    mutable std::atomic<bool> submitted{false};
    /// Copies between the host and staging memory, before and after.
    struct Staged {
      std::uint32_t slot;
      std::size_t offset, bytes;
      std::shared_ptr<const Memory> staging;
    };
    std::vector<Staged> uploads, downloads;
  };
  class Writer;
  void write(VulkanBindingTable& table);

  const std::shared_ptr<Life> life_;
  const std::vector<RecordedStep> steps_;
  Labels labels_;
  std::shared_ptr<const Written> written_;
  const VulkanBindingTable* table_ = nullptr;  // for which
  std::uint64_t shape_ = 0;
};

}  // namespace heddle::vulkan
