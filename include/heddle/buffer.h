// Memory of a device, and views of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "heddle/completion.h"
#include "heddle/ref.h"
#include "heddle/tensor.h"

namespace heddle {

class Device;

/// A piece of one device's memory. Freed with its last Ref, which may be dropped on any thread and
/// while the device still works on it: the device keeps what its submitted work needs.
///
/// A buffer remembers the last submission that writes it and those that read it since, so that
/// whoever touches it next, on another stream or on the host, knows what to wait for.
class Buffer : public RefCounted {
 public:
  Buffer(Device& device, std::size_t size, std::byte* host)
      : device_(device), size_(size), host_(host) {}

  Device& device() const noexcept { return device_; }
  std::size_t size() const noexcept { return size_; }
  /// Where the host sees the memory; null if it does not. Not to be read before `wait_for_writes`.
  std::byte* host() const noexcept { return host_; }
  /// Whether the memory went with a loss of its device (Device::generation): its bytes are gone.
  virtual bool is_lost() const noexcept { return false; }
  /// Throws device_lost naming the device if so.
  void check_alive() const;

  void note_write(Ref<Completion> end);
  void note_read(Ref<Completion> end);
  /// What a reader must wait for, and what a writer must: the last write, null if there was none;
  /// that and the reads since (those that have ended may be left out).
  Ref<Completion> last_write() const;
  std::vector<Ref<Completion>> last_uses() const;
  /// Returns when the host may read, or write, the memory; rethrows the error of the work that
  /// wrote it, and throws device_lost if the memory is lost.
  void wait_for_writes() const;
  void wait_for_uses() const;

 private:
  Device& device_;
  std::size_t size_;
  std::byte* host_;
  std::atomic<bool> noted_{false};  // most are never used by work that outlives a call
  mutable std::mutex mutex_;
  Ref<Completion> write_;
  std::vector<Ref<Completion>> reads_;
};

/// Host memory that nobody's kernels run on yet: for constants and results. 64-byte aligned; throws
/// out_of_memory. (It belongs to the CPU device; declared here, made there.)
Ref<Buffer> allocate_host(std::size_t bytes);

/// A tensor in memory: what a kernel is given.
struct View {
  Ref<Buffer> buffer;
  std::size_t offset = 0;  // bytes from the buffer's start to the lowest that the operand touches
  OperandSpec operand;

  const TensorSpec& spec() const noexcept { return operand.spec; }
  const Layout& layout() const noexcept { return operand.layout; }
  /// Where the host sees the lowest byte; the buffer must be host-visible. The first element is
  /// `first_element` elements on.
  std::byte* host() const noexcept { return buffer->host() + offset; }
};

}  // namespace heddle
