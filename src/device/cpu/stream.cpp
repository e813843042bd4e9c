#include "device/cpu/stream.h"

#include <array>
#include <cstring>
#include <typeinfo>

#include "base/check.h"
#include "device/cpu/kernel.h"

namespace heddle::cpu {

namespace {

/// A kernel's operands: in place for as many as nearly every op has, else allocated.
class Operands {
 public:
  explicit Operands(std::size_t count) {
    if (count > kInPlace) many_.resize(count);
    all_ = {count > kInPlace ? many_.data() : few_.data(), count};
  }
  Operand& operator[](std::size_t i) { return all_[i]; }
  std::span<const Operand> first(std::size_t n) const { return all_.first(n); }
  std::span<const Operand> from(std::size_t n) const { return all_.subspan(n); }

 private:
  static constexpr std::size_t kInPlace = 16;
  std::array<Operand, kInPlace> few_;
  std::vector<Operand> many_;
  std::span<Operand> all_;
};

const CpuKernel& cpu_kernel(const std::shared_ptr<const Kernel>& kernel, std::size_t inputs,
                            std::size_t outputs) {
  const Kernel* any = kernel.get();
  require(any && typeid(*any) == typeid(CpuKernel), ErrorCode::invalid_argument,
          "cpu: a kernel that it did not prepare");
  const KernelTraits& traits = any->traits();
  require(traits.reads.size() == inputs && traits.writes.size() == outputs,
          ErrorCode::invalid_argument,
          "cpu: the kernel takes {} inputs and {} outputs, {} and {} were given",
          traits.reads.size(), traits.writes.size(), inputs, outputs);
  return static_cast<const CpuKernel&>(*any);
}

std::int64_t read_extent(const std::byte* at) {
  std::int32_t rows;
  std::memcpy(&rows, at, sizeof rows);
  require(rows >= 0, ErrorCode::invalid_argument, "cpu: an extent of {} rows", rows);
  return rows;
}

// ---- Views

Operand resolve(const View& view, std::size_t needed, const char* what) {
  require(view.buffer && (view.buffer->host() || needed == 0), ErrorCode::invalid_argument,
          "cpu: {} has no memory that the host sees", what);
  const std::size_t size = view.buffer->size();
  require(view.offset <= size && needed <= size - view.offset, ErrorCode::invalid_argument,
          "cpu: {} needs {} bytes from offset {} on, of a buffer of {}", what, needed, view.offset,
          size);
  const std::size_t bytes =
      std::min(std::max(span_bytes(view.operand), needed), size - view.offset);
  return {view.host(), bytes};
}

std::byte* resolve_workspace(const View& view, std::size_t needed) {
  return needed == 0 ? nullptr : resolve(view, needed, "the workspace").data;
}

class CpuStream final : public Stream {
 public:
  explicit CpuStream(Device& device) : device_(device) {}
  Device& device() const noexcept override { return device_; }

  void encode(const std::shared_ptr<const Kernel>& kernel, std::span<const View> inputs,
              std::span<const View> outputs, const View& workspace, const View& extent) override {
    const CpuKernel& own = cpu_kernel(kernel, inputs.size(), outputs.size());
    const KernelTraits& traits = own.traits();
    Operands operands(inputs.size() + outputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      operands[i] = resolve(inputs[i], traits.reads[i].end, "an input");
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      operands[inputs.size() + i] = resolve(outputs[i], traits.writes[i].end, "an output");
    }
    std::int64_t rows = -1;
    if (extent.buffer && traits.honours_extent) {
      rows = read_extent(resolve(extent, sizeof(std::int32_t), "the extent").data);
    }
    own.run({operands.first(inputs.size()), operands.from(inputs.size()),
             resolve_workspace(workspace, traits.workspace_bytes), rows, current_team()});
  }

  void copy(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
            std::size_t to_offset, std::size_t bytes) override {
    const View source{from, from_offset, {}}, target{to, to_offset, {}};
    const Operand source_bytes = resolve(source, bytes, "a copy's source");
    const Operand target_bytes = resolve(target, bytes, "a copy's target");
    if (bytes > 0) std::memmove(target_bytes.data, source_bytes.data, bytes);
  }

  void replay(const Recording& recording, const BindingTable& bindings) override;

  void wait_for(const Ref<Completion>& other) override {
    if (other) other->wait();
  }
  Ref<Completion> submit() override { return completed(); }

 private:
  Device& device_;
};

// ---- Recordings

class CpuBindingTable final : public BindingTable {
 public:
  struct Slot {
    Ref<Buffer> buffer;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };

  explicit CpuBindingTable(std::size_t slots) : slots_(slots) {}

  void set(std::uint32_t slot, Ref<Buffer> buffer, std::size_t offset, std::size_t bytes) override {
    require(slot < slots_.size(), ErrorCode::invalid_argument, "cpu: slot {} of a table of {}",
            slot, slots_.size());
    if (!buffer) {
      slots_[slot] = {};
      return;
    }
    require(buffer->host() != nullptr, ErrorCode::invalid_argument,
            "cpu: slot {} is bound to memory that the host does not see", slot);
    require(offset <= buffer->size() && bytes <= buffer->size() - offset,
            ErrorCode::invalid_argument, "cpu: slot {} is bound to bytes {}..+{} of a buffer of {}",
            slot, offset, bytes, buffer->size());
    std::byte* data = buffer->host() + offset;
    slots_[slot] = {std::move(buffer), data, bytes};
  }

  /// What `view` names, which must have `needed` bytes.
  Operand resolve(const SlotView& view, std::size_t needed) const {
    require(view.slot < slots_.size() && slots_[view.slot].buffer, ErrorCode::invalid_argument,
            "slot {} is not bound", view.slot);
    const Slot& slot = slots_[view.slot];
    const std::size_t room = slot.bytes - std::min(view.offset, slot.bytes);
    const std::size_t bytes = view.bytes == kWholeSlot ? room : view.bytes;
    require(view.offset <= slot.bytes && bytes <= room && needed <= bytes,
            ErrorCode::invalid_argument, "slot {} holds {} bytes, {} are needed from offset {} on",
            view.slot, slot.bytes, view.bytes == kWholeSlot ? needed : std::max(needed, bytes),
            view.offset);
    return {slot.data + view.offset, bytes};
  }

 private:
  std::vector<Slot> slots_;
};

class CpuRecording final : public Recording {
 public:
  explicit CpuRecording(std::span<const RecordedStep> steps) {
    for (const RecordedStep& step : steps) {
      if (const auto* launch = std::get_if<RecordedLaunch>(&step)) check(*launch);
      // Nothing to separate: each step ends before the next begins.
      if (!std::holds_alternative<RecordedBarrier>(step)) steps_.push_back(step);
    }
  }

  void run(const CpuBindingTable& bindings) const {
    for (const RecordedStep& step : steps_) {
      if (const auto* launch = std::get_if<RecordedLaunch>(&step)) {
        run_launch(*launch, bindings);
      } else {
        run_copy(std::get<RecordedCopy>(step), bindings);
      }
    }
  }

 private:
  static void check(const RecordedLaunch& launch) {
    const CpuKernel& kernel =
        cpu_kernel(launch.kernel, launch.inputs.size(), launch.outputs.size());
    const KernelTraits& traits = kernel.traits();
    const auto check_view = [&](const SlotView& view, std::size_t needed) {
      require(needed <= view.bytes, ErrorCode::invalid_argument,
              "{}: {} bytes are needed of slot {}, its view gives {}", to_string(launch.label),
              needed, view.slot, view.bytes);
    };
    for (std::size_t i = 0; i < launch.inputs.size(); ++i) {
      check_view(launch.inputs[i], traits.reads[i].end);
    }
    for (std::size_t i = 0; i < launch.outputs.size(); ++i) {
      check_view(launch.outputs[i], traits.writes[i].end);
    }
    check_view(launch.workspace, traits.workspace_bytes);
  }

  static void run_launch(const RecordedLaunch& launch, const CpuBindingTable& bindings) {
    try {
      launch_unlabelled(launch, bindings);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", to_string(launch.label), error.what()));
    } catch (const std::exception& error) {
      fail(ErrorCode::backend, "{}: {}", to_string(launch.label), error.what());
    }
  }

  static void launch_unlabelled(const RecordedLaunch& launch, const CpuBindingTable& bindings) {
    const auto& kernel = static_cast<const CpuKernel&>(*launch.kernel);
    const KernelTraits& traits = kernel.traits();
    const std::size_t inputs = launch.inputs.size();
    Operands operands(inputs + launch.outputs.size());
    for (std::size_t i = 0; i < inputs; ++i) {
      operands[i] = bindings.resolve(launch.inputs[i], traits.reads[i].end);
    }
    for (std::size_t i = 0; i < launch.outputs.size(); ++i) {
      operands[inputs + i] = bindings.resolve(launch.outputs[i], traits.writes[i].end);
    }
    std::byte* workspace = nullptr;
    if (traits.workspace_bytes > 0) {
      workspace = bindings.resolve(launch.workspace, traits.workspace_bytes).data;
    }
    std::int64_t rows = -1;
    if (launch.extent && traits.honours_extent) {
      rows = read_extent(bindings.resolve(*launch.extent, sizeof(std::int32_t)).data);
    }
    kernel.run({operands.first(inputs), operands.from(inputs), workspace, rows, current_team()});
  }

  static void run_copy(const RecordedCopy& copy, const CpuBindingTable& bindings) {
    const Operand from = bindings.resolve(copy.from, 0);
    const Operand to = bindings.resolve(copy.to, from.bytes);
    if (from.bytes > 0) std::memmove(to.data, from.data, from.bytes);
  }

  std::vector<RecordedStep> steps_;
};

void CpuStream::replay(const Recording& recording, const BindingTable& bindings) {
  const auto* own = dynamic_cast<const CpuRecording*>(&recording);
  const auto* table = dynamic_cast<const CpuBindingTable*>(&bindings);
  require(own && table, ErrorCode::invalid_argument,
          "cpu: the recording or the binding table is another device's");
  const Team::Session session(current_team());
  own->run(*table);
}

}  // namespace

Ref<Stream> make_stream(Device& device) {
  return make_ref<CpuStream>(device);
}

std::unique_ptr<Recording> make_recording(std::span<const RecordedStep> steps) {
  return std::make_unique<CpuRecording>(steps);
}

std::unique_ptr<BindingTable> make_binding_table(std::size_t slots) {
  return std::make_unique<CpuBindingTable>(slots);
}

}  // namespace heddle::cpu
