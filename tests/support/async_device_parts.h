// What the asynchronous test device is made of.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <variant>
#include <vector>

#include "base/failure.h"
#include "support/async_device.h"

namespace heddle::test {

/// Fills memory with kPoison.
void poison(std::byte* memory, std::size_t bytes);

class AsyncKernel final : public Kernel {
 public:
  AsyncKernel(std::string_view op, std::shared_ptr<const Kernel> on_cpu, KernelTraits traits,
              std::uint64_t prepared_in)
      : Kernel(std::move(traits)), name(op), inner(std::move(on_cpu)), generation(prepared_in) {}
  const std::string name;
  const std::shared_ptr<const Kernel> inner;
  const std::uint64_t generation;
};

// Steps hold memory as the host sees it and not this device's Buffers, whose handles are counted.
struct LaunchStep {
  std::shared_ptr<const AsyncKernel> kernel;
  std::vector<View> inputs, outputs;
  View workspace, extent;
  std::string label;
};
struct CopyStep {
  Ref<Buffer> from, to;
  std::size_t from_offset = 0, to_offset = 0, bytes = 0;
};
struct WaitStep {
  Ref<Completion> other;
};
using Step = std::variant<LaunchStep, CopyStep, WaitStep, RecordedBarrier>;

class AsyncCompletion;

/// A piece of memory.
struct Piece {
  const Buffer* memory;
  std::size_t begin, end;
};

/// Poisons what a submission's steps write before they run, but for what earlier ones have read or
/// written: that may have been there already.
class Poisoner {
 public:
  void cover(std::span<const Step> steps);

 private:
  void cover(const LaunchStep& launch);
  void target(const Piece& written);
  std::vector<Piece> kept_;
};

struct Submission {
  std::uint64_t number = 0;
  std::vector<Step> steps;
  Ref<AsyncCompletion> end;
  std::string status = "queued";
  Poisoner poisoner;
  std::size_t poisoned = 0;  // steps
};

/// Submitted work of one stream, and the thread that does it, until the device is lost.
struct Queue {
  std::deque<std::shared_ptr<Submission>> pending;  // the first is running
  std::chrono::microseconds delay{0};               // before each submission's work
  std::uint64_t generation = 0;
  bool closing = false;  // no more will come
  bool ended = false;    // the thread has nothing left to do
  std::thread worker;
};

/// A stream, which outlives losses.
struct Lane {
  struct Added {
    std::vector<Step> steps;
    std::uint64_t generation = 0;  // when the first of them was added
  };
  std::map<std::thread::id, Added> added;  // not submitted yet
  std::shared_ptr<Queue> queue;
};

/// Bytes of a device's memory, each counted until nothing needs it.
class MemoryCount {
 public:
  /// False if that would be more than `limit`.
  bool add(std::size_t bytes, std::size_t limit);
  void subtract(std::size_t bytes) { live_ -= bytes; }
  std::size_t live() const { return live_; }

 private:
  std::atomic<std::size_t> live_{0};
};

/// What an AsyncBuffer and the steps that use it hold.
class AsyncMemory final : public Buffer {
 public:
  AsyncMemory(Ref<Buffer> host_memory, std::shared_ptr<MemoryCount> count)
      : Buffer(cpu_device(), host_memory->size(), host_memory->host()),
        host_memory_(std::move(host_memory)),
        count_(std::move(count)) {}
  ~AsyncMemory() override { count_->subtract(size()); }

 private:
  Ref<Buffer> host_memory_;
  std::shared_ptr<MemoryCount> count_;
};

struct AsyncDevice::Impl : std::enable_shared_from_this<Impl> {
  Impl(AsyncDevice& d, AsyncOptions o) : device(d), options(std::move(o)) {}

  AsyncDevice& device;
  const AsyncOptions options;
  mutable std::mutex mutex;
  std::condition_variable changed;
  const std::shared_ptr<Lane> main = std::make_shared<Lane>();  // the default stream's
  std::vector<std::shared_ptr<Queue>> queues;                   // those of lost generations too
  std::atomic<std::uint64_t> generation{0};
  std::uint64_t submitted = 0, ended = 0;
  bool stopping = false, hung = false, releasing = false;
  std::deque<std::string> operations;  // the last, begun or done
  std::vector<Ref<Buffer>> quarantine;
  const std::shared_ptr<MemoryCount> memory_count = std::make_shared<MemoryCount>();
  std::uint64_t calls = 0, fault_in = 0, hang_in = 0;
  bool fault_happened = false, fault_loses = false;
  ErrorCode fault_code = ErrorCode::backend;
  DeviceCounts counts;

  std::shared_ptr<Queue> open_queue(std::chrono::microseconds delay);
  std::shared_ptr<Lane> open_lane();
  void close(Lane& lane);
  void join_all();
  bool idle() const;           // nothing is in flight
  bool has_lost_work() const;  // something of lost generations is
  void require_current(std::uint64_t of, const char* what) const;

  void call(const char* what);
  void call_locked(const char* what);
  Ref<Completion> submit(Lane& lane, Lane::Added& added);
  void work(Queue& queue);
  void end(Queue& queue, std::shared_ptr<const Failure> error);
  void run(Submission& submission);
  void count_barrier();
  void run_unordered(Submission& submission, std::span<Step> steps);
  void run_step(Submission& submission, const Step& step);
  void run_launch(const LaunchStep& launch);
  void run_copy(const CopyStep& copy);
  void hang_if_asked();
  Error timed_out(const AsyncCompletion& end, std::chrono::nanoseconds timeout) const;
  void lose_locked(const std::string& why);
  void retire(Ref<Buffer> memory, std::uint64_t of);
};

class AsyncBuffer final : public Buffer {
 public:
  AsyncBuffer(AsyncDevice& device, std::shared_ptr<AsyncDevice::Impl> impl, Ref<Buffer> memory,
              std::size_t size, bool visible)
      : Buffer(device, size, visible ? memory->host() : nullptr),
        impl_(std::move(impl)),
        generation_(impl_->generation),
        memory_(std::move(memory)) {}
  ~AsyncBuffer() override { impl_->retire(std::move(memory_), generation_); }
  bool is_lost() const noexcept override { return generation_ != impl_->generation; }
  const Ref<Buffer>& memory() const { return memory_; }

 private:
  std::shared_ptr<AsyncDevice::Impl> impl_;
  const std::uint64_t generation_;
  Ref<Buffer> memory_;
};

/// The host memory behind a buffer of this device, or of another that the host can see. Throws
/// invalid_argument for what the device cannot reach, device_lost for what is gone.
Ref<Buffer> memory_of(const Ref<Buffer>& buffer, const AsyncDevice::Impl& impl);

class AsyncCompletion final : public Completion {
 public:
  AsyncCompletion(std::shared_ptr<AsyncDevice::Impl> impl, std::uint64_t number)
      : impl_(std::move(impl)), number_(number) {}

  bool done() const noexcept override {
    const std::lock_guard lock(impl_->mutex);
    return ended;
  }

  void wait(std::chrono::nanoseconds timeout) override {
    std::unique_lock lock(impl_->mutex);
    const auto limit = std::chrono::steady_clock::now() + timeout;
    impl_->changed.wait_until(lock, limit, [&] { return ended || error; });
    if (!ended && !error) {
      const Error late = impl_->timed_out(*this, timeout);
      error = std::make_shared<const Failure>(Failure{late.code(), late.what()});
      impl_->lose_locked(fmt::format("submission {} timed out", number_));
    }
    if (error) error->raise();
  }

  std::uint64_t number() const { return number_; }

  bool ended = false;  // under the device's mutex, like the error
  std::shared_ptr<const Failure> error;

 private:
  const std::shared_ptr<AsyncDevice::Impl> impl_;
  const std::uint64_t number_;
};

/// `own`: the lane goes with the stream.
Ref<Stream> make_async_stream(std::shared_ptr<AsyncDevice::Impl> impl, std::shared_ptr<Lane> lane,
                              bool own);
std::unique_ptr<Recording> make_async_recording(std::span<const RecordedStep> steps,
                                                const AsyncDevice::Impl& impl);
std::unique_ptr<BindingTable> make_async_table(std::shared_ptr<AsyncDevice::Impl> impl,
                                               std::size_t slots);

}  // namespace heddle::test
