// One life of a device: from its opening until it is lost. What is made of it belongs to that life.
#pragma once

#include <volk.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/failure.h"
#include "device/vulkan/faults.h"
#include "device/vulkan/instance.h"
#include "heddle/error.h"

namespace heddle::vulkan {

class Timeline;

/// What a device has done, over all of its lives.
struct Counters {
  std::atomic<std::uint64_t> submissions{0}, recorded{0}, replayed{0}, barriers{0}, copies{0},
      copied_bytes{0};
};

struct ContextOptions {
  std::string name;  // "vulkan:0"
  LimitOverrides overrides;
  std::uint64_t generation = 0;
  std::shared_ptr<Counters> counters;
};

/// Thread-safe. Held by whatever was made of it. Its end never waits: if work may still run by
/// then, the driver's objects are left to the process's end.
class Context : public std::enable_shared_from_this<Context> {
 public:
  static std::shared_ptr<Context> open(const PhysicalDevice& physical, ContextOptions options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const std::string& name() const noexcept { return options_.name; }
  std::uint64_t generation() const noexcept { return options_.generation; }
  const PhysicalDevice& physical() const noexcept { return physical_; }
  const Limits& limits() const noexcept { return limits_; }
  Counters& counters() const noexcept { return *options_.counters; }
  VkPipelineLayout pipeline_layout() const noexcept { return pipeline_layout_; }

  VkDevice device = VK_NULL_HANDLE;
  VolkDeviceTable vk{};

  // ---- Errors

  /// Throws unless the call went well: out_of_memory, device_lost (after which the device is lost)
  /// or backend, naming the device, the call and `what`.
  void check(VkResult result, std::string_view called, std::string_view what = {});
  /// Whether this life is over, and how it ended.
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  std::shared_ptr<const Failure> loss() const;
  void throw_if_lost() const;
  /// Ends this life, the first time. What pending work uses is kept until that is known to have
  /// ended, for a device that has only been given up may still be writing.
  void lose(const Failure& failure);
  /// Called once, when it is lost.
  std::function<void()> on_lost;

  // ---- Queues

  /// A queue for one more stream: they take turns.
  struct Queue {
    VkQueue handle = VK_NULL_HANDLE;
    std::mutex mutex;  // submissions take it
  };
  Queue& next_queue() noexcept;
  /// Streams' order of work, in flight until they are retired.
  void add(const std::shared_ptr<Timeline>& timeline);
  /// Lets go of what ended work has kept. Never waits.
  void retire();

  /// The index of the best type of memory among those `allowed`, or nothing: host_visible, or else
  /// the device's own.
  std::uint32_t memory_type(std::uint32_t allowed, bool host_visible) const;
  bool is_host_visible(std::uint32_t memory_type) const;

 private:
  Context(const PhysicalDevice& physical, ContextOptions options);
  void create_device();
  void create_pipeline_layout();

  const PhysicalDevice& physical_;
  const ContextOptions options_;
  Limits limits_;
  VkPhysicalDeviceMemoryProperties memory_{};
  VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::atomic<std::uint32_t> next_queue_{0};

  std::atomic<bool> lost_{false};
  bool work_ended_ = false;
  mutable std::mutex mutex_;
  std::shared_ptr<const Failure> loss_;
  std::vector<std::weak_ptr<Timeline>> timelines_;
  /// Of a lost life whose work may still run: what that work uses, until it is known to have ended.
  std::vector<std::shared_ptr<Timeline>> quarantine_;
};

}  // namespace heddle::vulkan
