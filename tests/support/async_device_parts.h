// What the asynchronous test device is made of.
#pragma once

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
  AsyncKernel(std::string_view op, std::shared_ptr<const Kernel> on_cpu, KernelTraits traits)
      : Kernel(std::move(traits)), name(op), inner(std::move(on_cpu)) {}
  const std::string name;
  const std::shared_ptr<const Kernel> inner;
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

/// A stream's work, and the thread that does it.
struct Queue {
  std::deque<std::shared_ptr<Submission>> pending;     // the first is running
  std::map<std::thread::id, std::vector<Step>> added;  // not submitted yet
  std::chrono::microseconds delay{0};                  // before each submission's work
  bool closing = false;                                // no more will come
  bool ended = false;                                  // the thread has nothing left to do
  std::thread worker;
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
  std::vector<std::shared_ptr<Queue>> queues;  // the first is the default stream's
  std::uint64_t submitted = 0, ended = 0;
  bool stopping = false, lost = false, hung = false, releasing = false;
  std::deque<std::string> operations;  // the last, begun or done
  std::vector<Ref<Buffer>> quarantine;
  const std::shared_ptr<MemoryCount> memory_count = std::make_shared<MemoryCount>();
  std::uint64_t fault_in = 0, hang_in = 0;
  bool fault_happened = false;
  ErrorCode fault_code = ErrorCode::backend;
  DeviceCounts counts;

  std::shared_ptr<Queue> open_queue();
  void close(Queue& queue);
  void join_all();
  bool idle() const;  // nothing is in flight

  void call(const char* what);
  void call_locked(const char* what);
  Ref<Completion> submit(Queue& queue, std::vector<Step> steps);
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
  void lose(const AsyncCompletion* culprit);
  void retire(Ref<Buffer> memory);
};

class AsyncBuffer final : public Buffer {
 public:
  AsyncBuffer(AsyncDevice& device, std::shared_ptr<AsyncDevice::Impl> impl, Ref<Buffer> memory,
              std::size_t size, bool visible)
      : Buffer(device, size, visible ? memory->host() : nullptr),
        impl_(std::move(impl)),
        memory_(std::move(memory)) {}
  ~AsyncBuffer() override { impl_->retire(std::move(memory_)); }
  const Ref<Buffer>& memory() const { return memory_; }

 private:
  std::shared_ptr<AsyncDevice::Impl> impl_;
  Ref<Buffer> memory_;
};

/// The host memory behind a buffer of this device, or of another that the host can see. Throws
/// invalid_argument for what the device cannot reach.
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
      impl_->lose(this);
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

/// `own`: the queue goes with the stream.
Ref<Stream> make_async_stream(std::shared_ptr<AsyncDevice::Impl> impl, std::shared_ptr<Queue> queue,
                              bool own);
std::unique_ptr<Recording> make_async_recording(std::span<const RecordedStep> steps,
                                                const AsyncDevice::Impl& impl);
std::unique_ptr<BindingTable> make_async_table(std::shared_ptr<AsyncDevice::Impl> impl,
                                               std::size_t slots);

}  // namespace heddle::test
