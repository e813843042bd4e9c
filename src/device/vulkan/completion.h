// Work on a Vulkan device: the order of a stream, and what of it has ended.
#pragma once

#include <volk.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/failure.h"
#include "device/vulkan/context.h"
#include "heddle/buffer.h"
#include "heddle/completion.h"

namespace heddle::vulkan {

class Submission;

/// What the last operations of a submission were called; shared by a recording and its replays.
using Labels = std::shared_ptr<const std::vector<std::string>>;

/// What a submission needs until it has ended, and does when it has.
struct Work {
  std::vector<std::shared_ptr<const void>> kept;
  std::vector<Ref<Submission>> after;  // what it waits for: their errors are its own
  /// How much longer than others it may take: drivers may compile when a pipeline first runs.
  std::chrono::nanoseconds extra_time{0};
  std::shared_ptr<const Failure> failed;  // what it waited for on the host ended so

  /// Bytes that the device left in host-visible memory for a buffer of another device.
  struct HostCopy {
    const std::byte* from;
    Ref<Buffer> to;
    std::size_t offset, bytes;
  };
  std::vector<HostCopy> host_copies;

  /// Where kernels report an index out of bounds: a launch's number from 1, by which `labels` names
  /// it; 0: none. Null where nothing reports.
  struct Report {
    const std::uint32_t* launch;
    Labels labels;
  };
  std::vector<Report> reports;
};

/// A stream's order of work: a semaphore that counts what has ended. Thread-safe.
class Timeline : public std::enable_shared_from_this<Timeline> {
 public:
  explicit Timeline(std::shared_ptr<Context> context);
  ~Timeline();

  Context& context() const noexcept { return *context_; }
  VkSemaphore semaphore() const noexcept { return semaphore_; }

  /// Starts command buffers, each a submission of its own to the driver, after what `work.after`
  /// waits for.
  Ref<Submission> submit(std::span<const VkCommandBuffer> pieces, Work work);

  /// Settles what has ended. Never waits.
  void retire();
  /// Settles what has not ended as failed by the loss of the device; keeps what it uses.
  void fail_pending();
  /// Whether all that was submitted is known to have ended.
  bool idle();

 private:
  friend class Submission;
  /// How far the device has come; the submissions' count where it cannot be asked any more.
  std::uint64_t reached();

  const std::shared_ptr<Context> context_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  Context::Queue& queue_;
  std::mutex mutex_;
  std::uint64_t submitted_ = 0;                                       // pieces
  std::deque<Ref<Submission>> in_flight_;                             // in order
  std::vector<std::vector<std::shared_ptr<const void>>> quarantine_;  // of failed ones
};

/// The end of one submission.
class Submission final : public Completion {
 public:
  Submission(std::shared_ptr<Timeline> timeline, std::uint64_t first, std::uint64_t last,
             Work work);

  bool done() const noexcept override;
  void wait(std::chrono::nanoseconds timeout) override;
  using Completion::wait;

  const Timeline& timeline() const noexcept { return *timeline_; }
  std::uint64_t last() const noexcept { return last_; }

 private:
  friend class Timeline;
  void wait_for(std::uint64_t value, std::chrono::nanoseconds timeout);
  [[noreturn]] void timed_out(std::uint64_t value, std::chrono::nanoseconds timeout);
  /// The end, once: does what the host has to do, and lets go of what was kept.
  void settle() const noexcept;
  void settle_failed(std::shared_ptr<const Failure> failure) const noexcept;
  std::shared_ptr<const Failure> failure_of_work() const;  // under the lock
  std::string last_operations() const;

  const std::shared_ptr<Timeline> timeline_;
  const std::uint64_t first_, last_;  // its pieces' values on the timeline
  const std::chrono::nanoseconds extra_time_;
  mutable std::mutex mutex_;
  mutable std::atomic<bool> settled_{false};
  mutable std::shared_ptr<const Failure> failure_;
  mutable Work work_;
};

}  // namespace heddle::vulkan
