// The buffers behind a plan's slots, for one Executable.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/parameters.h"
#include "exec/plan.h"
#include "exec/state_use.h"

namespace heddle {

class Bindings {
 public:
  explicit Bindings(const Plan& plan);

  /// Whether a device of the plan was lost since this was made: then it serves no more runs.
  bool is_outdated() const;
  /// Makes the arenas, staging and constants, once. Throws out_of_memory.
  void allocate();
  /// Memory for inputs and outputs that have none.
  void make_inputs();
  void make_outputs();
  /// Binds what changed among the parameters since the last call; repacks what nobody has yet.
  void bind_parameters(Parameters& parameters);
  /// Copies the bytes into every slot of the input and binds it there.
  void bind_input(std::string_view name, std::span<const std::byte> bytes);
  /// As that, but where a slot's device can read the view as it lies, without a copy.
  void bind_input(std::string_view name, const View& view, std::span<const std::byte> bytes);
  /// Binds an output where the input is bound.
  void bind_over(const Overwrite& overwrite);
  /// Lets go of outputs, and of inputs that were bound where they lay.
  void release();
  /// Binds a state's buffer to the state's slots, or to those of the input that it feeds; on other
  /// devices the input gets a copy.
  void bind_state(std::span<const std::uint32_t> slots, const StateUse& use);

  const Ref<Buffer>& buffer(std::uint32_t slot) const { return bound_[slot].buffer; }
  std::size_t offset(std::uint32_t slot) const { return bound_[slot].offset; }
  BindingTable& table(Device* device) const { return *tables_.at(device); }

 private:
  struct Bound {
    Ref<Buffer> buffer;
    std::size_t offset = 0;
  };
  void bind(std::uint32_t slot, Ref<Buffer> buffer, std::size_t offset, std::size_t bytes);
  void unbind(std::uint32_t slot);
  void bind_copy(std::uint32_t slot);
  void copy_input(std::uint32_t slot, std::span<const std::byte> bytes);
  void pack(const PlannedLaunch& launch, const View& plain, const View& packed) const;

  const Plan& plan_;
  std::map<Device*, std::uint64_t> generations_;
  std::vector<Bound> bound_;
  std::vector<Ref<Buffer>> inputs_;  // by slot: the buffer that inputs are copied to, if any are
  std::map<Device*, std::unique_ptr<BindingTable>> tables_;
  std::map<std::string, std::vector<std::uint32_t>, std::less<>> input_slots_;
  std::uint64_t parameters_seen_ = ~std::uint64_t{0};
  bool allocated_ = false;
};

/// Every device that takes part in the plan.
std::vector<Device*> devices_of(const Plan& plan);

/// By slot, whether a run or a caller reads it. Plain parameters that only repacks read are not
/// kept.
std::vector<bool> slots_that_runs_read(const Plan& plan);

/// Lets devices see the plan's plain parameters where the host has them, as far as they can: those
/// take none of their memory.
void import_parameters(const Plan& plan, Parameters& parameters);

/// A split's work in the device's own form. Kernels that were prepared before their device was lost
/// are prepared again.
std::unique_ptr<Recording> record(const Plan& plan, const Split& split);

}  // namespace heddle
