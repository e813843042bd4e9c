// A CPU in disguise: an asynchronous device for tests.
//
// Its kernels are the CPU's, but its work starts only when submitted and then runs on a thread of
// its stream's own, a little late; until it has run, memory that it will write is poisoned. Steps
// between two barriers run backwards, or shuffled. Calls can be made to fail, kernels to hang,
// and the whole to be lost, as a driver would have it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "heddle/device.h"
#include "heddle/error.h"

namespace heddle::test {

struct AsyncOptions {
  std::string name = "async";
  std::function<bool(const Op&)> accepts;   // none: every op that the CPU has a kernel for
  bool hides_local = false;                 // the host does not see MemoryKind::local
  bool offers_any_order = false;            // to write over inputs that lie otherwise too
  bool packs = false;                       // prefers the CPU's packed layouts
  std::size_t workspace = 0;                // bytes that each kernel asks for beyond its needs
  std::optional<std::size_t> memory_limit;  // bytes; those that work in flight uses count
  std::optional<std::size_t> largest_allocation;  // bytes
  std::size_t most_imported = 0;                  // bytes that import_host takes, in whole pages
  std::optional<unsigned> shuffle;                // seed; without one, steps run backwards
  std::chrono::microseconds delay{100};           // before a submission's work begins
  std::chrono::microseconds lag{0};               // and more for each stream opened before
  std::chrono::milliseconds patience{10'000};     // of waits for other devices
  std::function<void(std::span<const RecordedStep>)> on_record;
};

/// f32 and f64 NaNs; as an index out of bounds.
inline constexpr std::uint32_t kPoison = 0xFFA5A5A5u;

class AsyncDevice final : public Device {
 public:
  explicit AsyncDevice(AsyncOptions options = {});
  /// Ends pending work first.
  ~AsyncDevice() override;

  std::string_view name() const noexcept override;
  std::size_t alignment() const noexcept override { return 64; }
  DeviceInfo describe() const override;
  DeviceCounts counts() const override;
  Prepared prepare(const Op& op, std::span<const OperandSpec> inputs,
                   std::span<const OperandSpec> outputs) override;
  std::optional<LayoutKind> preferred_layout(const Op& op, std::size_t operand,
                                             std::span<const TensorSpec> inputs) const override;
  Ref<Buffer> allocate(std::size_t bytes, MemoryKind kind = MemoryKind::local) override;
  Ref<Buffer> import_host(std::span<std::byte> memory, std::shared_ptr<const void> owner) override;
  std::uint64_t generation() const noexcept override;
  bool shares_host_memory() const noexcept override;
  Ref<Stream> default_stream() override;
  /// With a queue and a thread of its own. Dropping it leaves what was submitted to run.
  Ref<Stream> new_stream() override;
  std::unique_ptr<Recording> record(std::span<const RecordedStep> steps) override;
  std::unique_ptr<BindingTable> make_binding_table(std::size_t slots) override;

  // ---- Faults

  /// The `n`th driver call from now (1 is the next) fails: allocate, prepare, record, bind, encode,
  /// copy, replay, wait, submit, and on the device's thread each kernel, copy and wait.
  void fail_call(std::uint64_t n, ErrorCode code = ErrorCode::backend);
  /// The device is lost at the `n`th driver call from now, or now.
  void lose_at_call(std::uint64_t n);
  void lose();
  /// Takes back a fault, or loss, that has not happened; says whether it has.
  bool end_fault();
  /// The `n`th kernel from now does not end before `end_hang`. A wait for it that times out loses
  /// the device; so does its end.
  void hang_at(std::uint64_t n);
  /// Returns once it hangs.
  void wait_for_hang();
  /// Ends what hangs, and returns once nothing is in flight.
  void end_hang();

  std::size_t quarantined_bytes() const;
  /// Of all buffers, and of dropped ones that work in flight (or the quarantine) still needs.
  std::size_t live_bytes() const;

  /// Launched so far, of all names.
  std::uint64_t kernels() const;
  /// What fail_call and lose_at_call count.
  std::uint64_t driver_calls() const;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace heddle::test
