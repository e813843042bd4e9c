// The kernel contract: what a device is asked, and what it promises.
//
// A device prepares kernels for ops (once per op, specs and layouts), and its streams run them: at
// once (a CPU), recorded (Vulkan) or queued (CUDA); callers may not rely on which. Devices know ops
// and views, not arrays or graphs, and never each other. To add one, implement these four classes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/buffer.h"
#include "heddle/op.h"

namespace heddle {

class MemoryPool;  // memory.h

struct ByteRange {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// What everyone but the kernel itself needs to know of it.
struct KernelTraits {
  std::size_t workspace_bytes = 0;

  /// Output `output` may be written over input `input`, which must then be dead; or, if `required`,
  /// always is the same memory (a state's next version).
  struct Alias {
    std::size_t output, input;
    bool required = false;
    friend bool operator==(const Alias&, const Alias&) = default;
  };
  std::vector<Alias> aliases;

  /// The bytes of each input that may be read, of each output that may be written, counted from the
  /// operand's start. Rows chosen by data count as the whole tensor.
  std::vector<ByteRange> reads, writes;

  /// Whether an extent operand makes the kernel leave out the rows beyond it.
  bool honours_extent = false;

  friend bool operator==(const KernelTraits&, const KernelTraits&) = default;
};

/// Traits of a kernel that reads and writes its operands whole.
KernelTraits whole_operand_traits(std::span<const OperandSpec> inputs,
                                  std::span<const OperandSpec> outputs);

/// An op made ready for particular specs and layouts. Immutable; used by any number of threads.
/// One that was prepared before its device was lost may throw device_lost when used.
class Kernel {
 public:
  explicit Kernel(KernelTraits traits) : traits_(std::move(traits)) {}
  virtual ~Kernel() = default;
  const KernelTraits& traits() const noexcept { return traits_; }

 private:
  KernelTraits traits_;
};

/// A kernel, or why there is none. This is the only answer to "can this device run that?".
struct Prepared {
  std::shared_ptr<const Kernel> kernel;
  std::string reason;
  explicit operator bool() const noexcept { return kernel != nullptr; }
};

// ---- Recordings: a split's work, kept for replay. Operands go through slots of a binding table,
// so that rebinding a buffer needs no new recording.

inline constexpr std::size_t kWholeSlot = ~std::size_t{0};

/// A piece of what is bound to a slot. `bytes` = kWholeSlot is all of it, whatever its size
/// (states, which grow).
struct SlotView {
  std::uint32_t slot = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// What a launch is, for errors and traces. Kept as data: most are never read, and to write one
/// takes longer than to record the launch.
struct LaunchLabel {
  std::uint32_t node = 0;  // in its graph
  Op op;
  std::vector<TensorSpec> inputs;
};
std::string to_string(const LaunchLabel& label);  // "node 3: add f32[2, 3] f32[3]"

struct RecordedLaunch {
  std::shared_ptr<const Kernel> kernel;
  std::vector<SlotView> inputs, outputs;
  SlotView workspace;              // bytes = 0: none
  std::optional<SlotView> extent;  // i32: the number of leading rows that count
  LaunchLabel label;
  Cost cost;  // of the op: long work is submitted in pieces of bounded time
};
struct RecordedCopy {  // bytes moved as they are; `to` may be another device's host-visible buffer
  SlotView from, to;
};
struct RecordedBarrier {};  // what follows sees what came before
using RecordedStep = std::variant<RecordedLaunch, RecordedCopy, RecordedBarrier>;

class Recording {
 public:
  virtual ~Recording() = default;
};

/// Where a recording's operands are. Not thread-safe; changed only while no run uses it.
class BindingTable {
 public:
  virtual ~BindingTable() = default;
  /// Puts a slot of the recording at `bytes` bytes of `buffer`, from `offset` on. Without a buffer
  /// the slot is let go of: nothing is kept alive for it, and a replay needs it set again. Throws
  /// invalid_argument where there is no such slot, the bytes are not the buffer's, or it is another
  /// device's and the host does not see it.
  virtual void set(std::uint32_t slot, Ref<Buffer> buffer, std::size_t offset,
                   std::size_t bytes) = 0;
};

/// An order of work on a device. Any thread may use one; work is done as if in the order encoded.
/// Two streams are ordered by `wait_for` alone.
///
/// What a thread adds, it alone submits: threads that share a stream do not see each other's open
/// work. A call that throws drops all that its thread has added since it last submitted.
///
/// The memory that work uses is kept until the work has ended, but not the Buffer objects of the
/// stream's own device. A buffer's count of handles says who can still see the memory, and lazy
/// evaluation writes over memory whose only handle it has while earlier work on it is in flight.
/// (Other devices' buffers may be held as they are.)
///
/// An error inside a stream's work latches: it fails the completion of that submission and of later
/// ones that depend on it.
class Stream : public RefCounted {
 public:
  virtual Device& device() const noexcept = 0;

  /// Adds a kernel. `workspace` and `extent` may be views without a buffer. Throws what can be
  /// known now.
  virtual void encode(const std::shared_ptr<const Kernel>& kernel, std::span<const View> inputs,
                      std::span<const View> outputs, const View& workspace, const View& extent) = 0;
  /// Adds a copy of `bytes` bytes as they lie. Either buffer may be another device's if it is
  /// host-visible.
  virtual void copy(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
                    std::size_t to_offset, std::size_t bytes) = 0;
  /// Adds a recording's work with the bindings as they are now. Both are kept alive by the caller
  /// until the work has ended.
  virtual void replay(const Recording& recording, const BindingTable& bindings) = 0;
  /// Work added later begins after `other` has ended well, and fails with its error. The wait is
  /// bounded.
  virtual void wait_for(const Ref<Completion>& other) = 0;
  /// Starts all that was added. The completion ends when it has.
  virtual Ref<Completion> submit() = 0;
};

enum class MemoryKind : std::uint8_t {
  local,         // the device's fastest
  host_visible,  // the host can read and write it too
};

/// What there is to say of a device, for people.
struct DeviceInfo {
  std::string hardware;                  // "NVIDIA H200"
  std::string driver;                    // its name and version; empty for the CPU
  std::uint64_t memory = 0;              // bytes of its own, or that it may use; 0: not known
  std::uint64_t largest_allocation = 0;  // bytes; 0: no limit but memory
  std::vector<std::pair<std::string, std::string>> details;  // features and limits
};

/// What a device has done since the process began.
struct DeviceCounts {
  std::uint64_t submissions = 0;  // that reached the driver
  std::uint64_t recorded = 0;     // recordings made
  std::uint64_t replayed = 0;     // and submitted, each time
  std::uint64_t barriers = 0;     // passed, those of replays included
  std::uint64_t copies = 0, copied_bytes = 0;
  std::map<std::string, std::uint64_t> dispatches;  // by kernel, those of replays included
};

/// A device. Thread-safe throughout. Lives until the program ends, or at least as long as every
/// buffer, stream and recording of it.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const noexcept = 0;  // "cpu", "vulkan:0"
  virtual std::size_t alignment() const noexcept = 0;  // of offsets within buffers, in bytes
  virtual DeviceInfo describe() const;
  virtual DeviceCounts counts() const;

  /// How often the device has been lost. Losing it fails what was pending; then buffers, recordings
  /// and binding tables of an earlier generation are gone, and using them throws device_lost, while
  /// new ones work: the device opens again at its next use.
  virtual std::uint64_t generation() const noexcept;

  /// A kernel for the op with operands so laid out (outputs are contiguous unless the op is
  /// Repack), or the precondition that fails. Every limit of the kernel is checked here.
  virtual Prepared prepare(const Op& op, std::span<const OperandSpec> inputs,
                           std::span<const OperandSpec> outputs) = 0;

  /// The packed layout in which the op would best read weight operand `operand`, if any.
  virtual std::optional<LayoutKind> preferred_layout(const Op& op, std::size_t operand,
                                                     std::span<const TensorSpec> inputs) const;

  /// Throws out_of_memory naming the device and the size. Where work in flight keeps memory that it
  /// will free, trying again after it has ended may succeed.
  virtual Ref<Buffer> allocate(std::size_t bytes, MemoryKind kind = MemoryKind::local) = 0;
  /// Whether the host sees MemoryKind::local too, and reads it about as fast as its own memory:
  /// then plans let the CPU work in it, without a copy.
  virtual bool shares_host_memory() const noexcept;
  /// A buffer over host memory that `owner` keeps, without a copy; null where that is impossible.
  virtual Ref<Buffer> import_host(std::span<std::byte> memory, std::shared_ptr<const void> owner);

  /// The pool from which `allocate` takes memory, with its counts and limits; null where nothing is
  /// counted. Always the same one, and there as long as the device.
  virtual MemoryPool* memory() noexcept;

  virtual Ref<Stream> default_stream() = 0;
  /// Another order of work on the device, independent of the default one; usable from any thread. A
  /// device with one queue gives its default stream again.
  virtual Ref<Stream> new_stream();
  virtual std::unique_ptr<Recording> record(std::span<const RecordedStep> steps) = 0;
  virtual std::unique_ptr<BindingTable> make_binding_table(std::size_t slots) = 0;

  /// `prepare`, remembered per op, specs and layouts until the device is lost.
  Prepared prepare_cached(const Op& op, std::span<const OperandSpec> inputs,
                          std::span<const OperandSpec> outputs);

 protected:
  Device();

 private:
  struct KernelCache;
  std::shared_ptr<KernelCache> cache_;
};

/// An output of an op as kernels write it: contiguous, or packed by Repack.
OperandSpec output_operand(const Op& op, const TensorSpec& output);
/// All of them.
std::vector<OperandSpec> output_operands(const Op& op, std::span<const TensorSpec> outputs);

// ---- The devices of this process

Device& cpu_device();
/// What work is placed on unless a caller names devices: those that were registered, then the CPU.
std::vector<Device*> default_devices();
/// Every device of this machine: those, with the Vulkan devices before the CPU. The first call
/// looks for them, which takes as long as their drivers take to load.
std::vector<Device*> devices();
/// Why this machine has no Vulkan device; empty if it has.
std::string why_no_vulkan();
/// "cpu", "vulkan:0" ("vulkan" for short), or what was registered. Throws invalid_argument listing
/// the names there are. Asking for a device that is known looks for no others.
Device& find_device(std::string_view name);
/// Adds a device before the CPU. It must live until the program ends.
void register_device(std::unique_ptr<Device> device);

}  // namespace heddle
