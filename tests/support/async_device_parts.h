// What the asynchronous test device is made of.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <variant>
#include <vector>

#include "support/async_device.h"

namespace heddle::test {

/// Fills memory with kPoison.
void poison(std::byte* memory, std::size_t bytes);

class AsyncKernel final : public Kernel {
 public:
  AsyncKernel(std::shared_ptr<const Kernel> on_cpu, std::size_t workspace)
      : Kernel(with_workspace(on_cpu->traits(), workspace)), inner(std::move(on_cpu)) {}
  const std::shared_ptr<const Kernel> inner;

 private:
  static KernelTraits with_workspace(KernelTraits traits, std::size_t bytes) {
    traits.workspace_bytes += bytes;
    return traits;
  }
};

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

struct Submission {
  std::uint64_t number = 0;
  std::vector<Step> steps;
  Ref<AsyncCompletion> end;
  std::string status = "queued";
  bool poisoned = false;
};

struct AsyncDevice::Impl : std::enable_shared_from_this<Impl> {
  Impl(AsyncDevice& d, AsyncOptions o) : device(d), options(std::move(o)) {}

  AsyncDevice& device;
  const AsyncOptions options;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Submission>> queue;  // the first is running
  std::uint64_t submitted = 0, ended = 0;
  bool stopping = false, lost = false, hung = false, releasing = false;
  std::deque<std::string> operations;  // the last, begun or done
  std::vector<Ref<Buffer>> quarantine;
  std::uint64_t fault_in = 0, hang_in = 0;
  bool fault_happened = false;
  ErrorCode fault_code = ErrorCode::backend;
  Counts counts;
  std::map<std::thread::id, std::vector<Step>> added;  // not submitted yet
  std::thread worker;

  void call(const char* what);
  void call_locked(const char* what);
  Ref<Completion> submit(std::vector<Step> steps);
  void work();
  void run(Submission& submission);
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

/// The host memory behind a buffer of this device, or of another that the host can see.
Ref<Buffer> memory_of(const Ref<Buffer>& buffer, const AsyncDevice::Impl& impl);

/// Poisons what the steps write, but for what they read before: that may have been there already.
void poison_targets(const std::vector<Step>& steps, const AsyncDevice::Impl& impl);

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
      error = std::make_exception_ptr(impl_->timed_out(*this, timeout));
      impl_->lose(this);
    }
    if (error) std::rethrow_exception(error);
  }

  std::uint64_t number() const { return number_; }

  bool ended = false;  // under the device's mutex, like the error
  std::exception_ptr error;

 private:
  const std::shared_ptr<AsyncDevice::Impl> impl_;
  const std::uint64_t number_;
};

Ref<Stream> make_async_stream(std::shared_ptr<AsyncDevice::Impl> impl);
std::unique_ptr<Recording> make_async_recording(std::span<const RecordedStep> steps,
                                                const AsyncDevice::Impl& impl);
std::unique_ptr<BindingTable> make_async_table(std::shared_ptr<AsyncDevice::Impl> impl,
                                               std::size_t slots);

}  // namespace heddle::test
