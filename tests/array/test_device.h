// A device that computes with the CPU's kernels and keeps count: of launches, of memory, of what is
// in flight. At once, or later on a thread of its own, with its memory hidden from the host and
// poisoned until work has written it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "heddle/device.h"

namespace heddle::test {

struct TestDeviceOptions {
  bool later = false;        // work runs on another thread, after submit
  bool hide_memory = false;  // the host sees host_visible memory only
  std::function<bool(const Op&)> allows = [](const Op&) { return true; };
};

class TestDevice final : public Device {
 public:
  using Options = TestDeviceOptions;
  explicit TestDevice(std::string name, Options options = {})
      : name_(std::move(name)),
        options_(std::move(options)),
        stream_(make_ref<TestStream>(*this)) {}
  ~TestDevice() override { stream_->stop(); }

  std::string_view name() const noexcept override { return name_; }
  std::size_t alignment() const noexcept override { return 64; }

  Prepared prepare(const Op& op, std::span<const OperandSpec> inputs,
                   std::span<const OperandSpec> outputs) override {
    if (!options_.allows(op)) return {nullptr, "the test forbids it"};
    return cpu_device().prepare(op, inputs, outputs);
  }

  Ref<Buffer> allocate(std::size_t bytes, MemoryKind kind) override {
    Ref<Buffer> memory = cpu_device().allocate(bytes, kind);
    if (bytes > 0) std::memset(memory->host(), kPoison, bytes);
    const bool hidden = options_.hide_memory && kind == MemoryKind::local;
    return make_ref<TestBuffer>(*this, make_ref<Memory>(*this, std::move(memory)), hidden);
  }

  Ref<Stream> default_stream() override { return stream_; }
  std::unique_ptr<Recording> record(std::span<const RecordedStep>) override {
    fail(ErrorCode::unsupported, "{} makes no recordings", name_);
  }
  std::unique_ptr<BindingTable> make_binding_table(std::size_t) override {
    fail(ErrorCode::unsupported, "{} makes no recordings", name_);
  }

  // What tests ask.
  std::atomic<int> launches{0}, submissions{0};
  std::atomic<std::int64_t> live_bytes{0}, peak_bytes{0}, live_buffers{0}, peak_buffers{0};
  void reset_peaks() {
    peak_bytes = live_bytes.load();
    peak_buffers = live_buffers.load();
  }
  /// Called as each kernel is encoded, or, for work done later, as it runs; may throw.
  std::function<void()> on_launch;

 private:
  static constexpr int kPoison = 0xCD;

  /// Real memory, counted as live until neither a buffer nor work in flight needs it.
  class Memory final : public Buffer {
   public:
    Memory(TestDevice& device, Ref<Buffer> memory)
        : Buffer(cpu_device(), memory->size(), memory->host()),
          owner_(device),
          memory_(std::move(memory)) {
      raise(owner_.live_bytes, owner_.peak_bytes, static_cast<std::int64_t>(size()));
      raise(owner_.live_buffers, owner_.peak_buffers, 1);
    }
    ~Memory() override {
      owner_.live_bytes -= static_cast<std::int64_t>(size());
      --owner_.live_buffers;
    }

   private:
    static void raise(std::atomic<std::int64_t>& live, std::atomic<std::int64_t>& peak,
                      std::int64_t by) {
      const std::int64_t now = live += by;
      for (std::int64_t seen = peak; seen < now && !peak.compare_exchange_weak(seen, now);) {
      }
    }
    TestDevice& owner_;
    Ref<Buffer> memory_;
  };

  class TestBuffer final : public Buffer {
   public:
    TestBuffer(TestDevice& device, Ref<Memory> memory, bool hidden)
        : Buffer(device, memory->size(), hidden ? nullptr : memory->host()),
          memory_(std::move(memory)) {}
    const Ref<Memory>& memory() const { return memory_; }

   private:
    Ref<Memory> memory_;
  };

  class TestCompletion final : public Completion {
   public:
    bool done() const noexcept override {
      const std::lock_guard lock(mutex_);
      return done_;
    }
    void wait(std::chrono::nanoseconds timeout) override {
      std::unique_lock lock(mutex_);
      if (!ended_.wait_for(lock, timeout, [&] { return done_; })) {
        fail(ErrorCode::timeout, "test device: work did not end");
      }
      if (failed_) fail(code_, "{}", message_);
    }
    void end(const Error* error) {
      {
        const std::lock_guard lock(mutex_);
        done_ = true;
        if (error) failed_ = true, code_ = error->code(), message_ = error->what();
      }
      ended_.notify_all();
    }

   private:
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    bool done_ = false, failed_ = false;
    ErrorCode code_ = ErrorCode::backend;
    std::string message_;
  };

  class TestStream final : public Stream {
   public:
    explicit TestStream(TestDevice& device) : device_(device) {}

    Device& device() const noexcept override { return device_; }

    void encode(const std::shared_ptr<const Kernel>& kernel, std::span<const View> inputs,
                std::span<const View> outputs, const View& workspace, const View&) override {
      ++device_.launches;
      // The steps hold the real memory: this device's buffers are handles that others count.
      add([&device = device_, kernel, in = real(inputs), out = real(outputs),
           scratch = real(workspace)] {
        if (device.on_launch) device.on_launch();
        cpu_device().default_stream()->encode(kernel, in, out, scratch, {});
      });
    }

    void copy(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
              std::size_t to_offset, std::size_t bytes) override {
      add([from = real(from), from_offset, to = real(to), to_offset, bytes] {
        if (bytes > 0) std::memcpy(to->host() + to_offset, from->host() + from_offset, bytes);
      });
    }
    void replay(const Recording&, const BindingTable&) override {}
    void wait_for(const Ref<Completion>& other) override {
      add([other] {
        if (other) other->wait();
      });
    }

    Ref<Completion> submit() override {
      ++device_.submissions;
      if (!device_.options_.later) return completed();
      const auto completion = make_ref<TestCompletion>();
      const std::lock_guard lock(mutex_);
      const auto open = open_.find(std::this_thread::get_id());
      Submission& submission = submitted_.emplace_back();
      submission.completion = completion;
      if (open != open_.end()) submission.steps = std::move(open->second), open_.erase(open);
      if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
      added_.notify_one();
      return completion;
    }

    void stop() {
      {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
      }
      added_.notify_one();
      if (worker_.joinable()) worker_.join();
    }

   private:
    using Step = std::function<void()>;
    struct Submission {
      std::vector<Step> steps;
      Ref<TestCompletion> completion;
    };

    static Ref<Buffer> real(const Ref<Buffer>& buffer) {
      const auto* own = dynamic_cast<const TestBuffer*>(buffer.get());
      return own ? Ref<Buffer>(own->memory()) : buffer;
    }
    static View real(const View& view) { return {real(view.buffer), view.offset, view.operand}; }
    static std::vector<View> real(std::span<const View> views) {
      std::vector<View> result;
      for (const View& view : views) result.push_back(real(view));
      return result;
    }

    void add(Step step) {
      if (!device_.options_.later) return step();
      const std::lock_guard lock(mutex_);
      open_[std::this_thread::get_id()].push_back(std::move(step));
    }

    void work() {
      for (;;) {
        std::unique_lock lock(mutex_);
        added_.wait(lock, [&] { return stopping_ || !submitted_.empty(); });
        if (submitted_.empty()) return;
        Submission submission = std::move(submitted_.front());
        submitted_.pop_front();
        lock.unlock();
        std::optional<Error> error;
        try {
          for (const Step& step : submission.steps) step();
        } catch (const Error& e) {
          error = e;
        }
        submission.steps.clear();  // the memory goes before anyone knows that the work ended
        submission.completion->end(error ? &*error : nullptr);
      }
    }

    TestDevice& device_;
    std::mutex mutex_;
    std::condition_variable added_;
    std::map<std::thread::id, std::vector<Step>> open_;  // not submitted yet
    std::deque<Submission> submitted_;
    bool stopping_ = false;
    std::thread worker_;
  };

  std::string name_;
  Options options_;
  Ref<TestStream> stream_;
};

}  // namespace heddle::test
