// How the asynchronous test device takes work: recordings, binding tables, streams.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "support/async_device_parts.h"

namespace heddle::test {

namespace {

using Impl = AsyncDevice::Impl;

// ---- What submissions write, poisoned before they run

/// Parts of `piece` outside all of `kept`.
std::vector<Piece> without(const Piece& piece, const std::vector<Piece>& kept) {
  std::vector<Piece> left{piece};
  for (const Piece& k : kept) {
    std::vector<Piece> next;
    for (const Piece& p : left) {
      if (p.memory != k.memory || k.end <= p.begin || p.end <= k.begin) {
        next.push_back(p);
        continue;
      }
      if (p.begin < k.begin) next.push_back({p.memory, p.begin, k.begin});
      if (k.end < p.end) next.push_back({p.memory, k.end, p.end});
    }
    left = std::move(next);
  }
  return left;
}

Piece piece_of(const View& view, ByteRange bytes) {
  return {view.buffer.get(), view.offset + bytes.begin,
          std::min(view.offset + bytes.end, view.buffer->size())};
}

bool is_in_place(const KernelTraits& traits, std::size_t output) {
  return std::any_of(traits.aliases.begin(), traits.aliases.end(),
                     [&](const auto& alias) { return alias.required && alias.output == output; });
}

}  // namespace

void Poisoner::target(const Piece& written) {
  for (const Piece& p : without(written, kept_))
    poison(p.memory->host() + p.begin, p.end - p.begin);
  kept_.push_back(written);
}

void Poisoner::cover(const LaunchStep& launch) {
  const KernelTraits& traits = launch.kernel->traits();
  for (std::size_t i = 0; i < launch.inputs.size(); ++i) {
    if (launch.inputs[i].buffer) kept_.push_back(piece_of(launch.inputs[i], traits.reads[i]));
  }
  for (std::size_t o = 0; o < launch.outputs.size(); ++o) {
    if (launch.outputs[o].buffer && !is_in_place(traits, o))
      target(piece_of(launch.outputs[o], traits.writes[o]));
  }
}

void Poisoner::cover(std::span<const Step> steps) {
  for (const Step& step : steps) {
    if (const auto* launch = std::get_if<LaunchStep>(&step)) {
      cover(*launch);
    } else if (const auto* copy = std::get_if<CopyStep>(&step)) {
      kept_.push_back(piece_of({copy->from, copy->from_offset, {}}, {0, copy->bytes}));
      target(piece_of({copy->to, copy->to_offset, {}}, {0, copy->bytes}));
    }
  }
}

namespace {

// ---- Recordings

class AsyncTable final : public BindingTable {
 public:
  AsyncTable(std::shared_ptr<Impl> impl, std::size_t slots)
      : generation(impl->generation), impl_(std::move(impl)), slots_(slots) {}

  void set(std::uint32_t slot, Ref<Buffer> buffer, std::size_t offset, std::size_t bytes) override {
    impl_->call("bind");
    impl_->require_current(generation, "the binding table");
    require(slot < slots_.size(), ErrorCode::invalid_argument, "{}: slot {} of {}",
            impl_->options.name, slot, slots_.size());
    require(!buffer || (offset <= buffer->size() && bytes <= buffer->size() - offset),
            ErrorCode::invalid_argument, "{}: slot {} is bound to bytes {}..+{} of {}",
            impl_->options.name, slot, offset, bytes, buffer ? buffer->size() : 0);
    slots_[slot] = {std::move(buffer), offset, bytes};
  }

  View view(const SlotView& view) const {
    require(view.slot < slots_.size() && slots_[view.slot].buffer, ErrorCode::invalid_argument,
            "{}: slot {} is not bound", impl_->options.name, view.slot);
    const Slot& slot = slots_[view.slot];
    const std::size_t bytes =
        view.bytes == kWholeSlot ? slot.bytes - std::min(slot.bytes, view.offset) : view.bytes;
    require(view.offset <= slot.bytes && bytes <= slot.bytes - view.offset,
            ErrorCode::invalid_argument, "{}: bytes {}..+{} of slot {}, which has {}",
            impl_->options.name, view.offset, bytes, view.slot, slot.bytes);
    return {memory_of(slot.buffer, *impl_), slot.offset + view.offset,
            OperandSpec::contiguous({DType::u8, {static_cast<std::int64_t>(bytes)}})};
  }
  std::vector<View> views(const std::vector<SlotView>& all) const {
    std::vector<View> views;
    for (const SlotView& one : all) views.push_back(view(one));
    return views;
  }

  const std::uint64_t generation;

 private:
  struct Slot {
    Ref<Buffer> buffer;
    std::size_t offset = 0, bytes = 0;
  };
  std::shared_ptr<Impl> impl_;
  std::vector<Slot> slots_;
};

View in_memory(const View& view, const Impl& impl) {
  return {memory_of(view.buffer, impl), view.offset, view.operand};
}

std::vector<View> in_memory(std::span<const View> views, const Impl& impl) {
  std::vector<View> resolved;
  for (const View& view : views) resolved.push_back(in_memory(view, impl));
  return resolved;
}

std::shared_ptr<const AsyncKernel> own_kernel(const std::shared_ptr<const Kernel>& kernel,
                                              const Impl& impl) {
  auto own = std::dynamic_pointer_cast<const AsyncKernel>(kernel);
  require(own != nullptr, ErrorCode::invalid_argument, "{}: a kernel that it did not prepare",
          impl.options.name);
  impl.require_current(own->generation, "the kernel");
  return own;
}

class AsyncRecording final : public Recording {
 public:
  AsyncRecording(std::span<const RecordedStep> recorded, const Impl& impl)
      : steps(recorded.begin(), recorded.end()), generation(impl.generation) {
    for (const RecordedStep& step : steps) {
      if (const auto* launch = std::get_if<RecordedLaunch>(&step)) own_kernel(launch->kernel, impl);
    }
  }

  Step bound(const RecordedStep& step, const AsyncTable& table, const Impl& impl) const {
    if (std::holds_alternative<RecordedBarrier>(step)) return RecordedBarrier{};
    if (const auto* copy = std::get_if<RecordedCopy>(&step)) {
      const View from = table.view(copy->from), to = table.view(copy->to);
      return CopyStep{from.buffer, to.buffer, from.offset, to.offset, span_bytes(from.operand)};
    }
    const auto& launch = std::get<RecordedLaunch>(step);
    LaunchStep out{own_kernel(launch.kernel, impl),
                   table.views(launch.inputs),
                   table.views(launch.outputs),
                   {},
                   {},
                   to_string(launch.label)};
    if (launch.workspace.bytes > 0) out.workspace = table.view(launch.workspace);
    if (launch.extent) out.extent = table.view(*launch.extent);
    return out;
  }

  const std::vector<RecordedStep> steps;
  const std::uint64_t generation;
};

// ---- The stream

class AsyncStream final : public Stream {
 public:
  AsyncStream(std::shared_ptr<Impl> impl, std::shared_ptr<Lane> lane, bool own)
      : impl_(std::move(impl)), lane_(std::move(lane)), own_(own) {}
  ~AsyncStream() override {
    if (own_) impl_->close(*lane_);
  }
  Device& device() const noexcept override { return impl_->device; }

  void encode(const std::shared_ptr<const Kernel>& kernel, std::span<const View> inputs,
              std::span<const View> outputs, const View& workspace, const View& extent) override {
    guarded("encode", [&](std::vector<Step>& steps) {
      auto own = own_kernel(kernel, *impl_);
      steps.emplace_back(LaunchStep{std::move(own), in_memory(inputs, *impl_),
                                    in_memory(outputs, *impl_), in_memory(workspace, *impl_),
                                    in_memory(extent, *impl_), "encoded kernel"});
      steps.emplace_back(RecordedBarrier{});
    });
  }

  void copy(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
            std::size_t to_offset, std::size_t bytes) override {
    guarded("copy", [&](std::vector<Step>& steps) {
      require(from_offset + bytes <= from->size() && to_offset + bytes <= to->size(),
              ErrorCode::invalid_argument, "{}: a copy past the end of a buffer",
              impl_->options.name);
      steps.emplace_back(
          CopyStep{memory_of(from, *impl_), memory_of(to, *impl_), from_offset, to_offset, bytes});
      steps.emplace_back(RecordedBarrier{});
    });
  }

  void replay(const Recording& recording, const BindingTable& bindings) override {
    guarded("replay", [&](std::vector<Step>& steps) {
      const auto* own = dynamic_cast<const AsyncRecording*>(&recording);
      const auto* table = dynamic_cast<const AsyncTable*>(&bindings);
      require(own && table, ErrorCode::invalid_argument, "{}: another device's recording",
              impl_->options.name);
      impl_->require_current(own->generation, "the recording");
      impl_->require_current(table->generation, "the binding table");
      for (const RecordedStep& step : own->steps) steps.push_back(own->bound(step, *table, *impl_));
      const std::lock_guard lock(impl_->mutex);
      ++impl_->counts.replayed;
    });
  }

  void wait_for(const Ref<Completion>& other) override {
    guarded("wait", [&](std::vector<Step>& steps) { steps.push_back(WaitStep{other}); });
  }

  Ref<Completion> submit() override {
    Ref<Completion> end;
    guarded("submit", [&](std::vector<Step>&) { end = impl_->submit(*lane_, own_added()); });
    const std::lock_guard lock(impl_->mutex);
    lane_->added.erase(std::this_thread::get_id());
    return end;
  }

 private:
  /// What this thread has added; no other touches it.
  Lane::Added& own_added() const {
    const std::lock_guard lock(impl_->mutex);
    return lane_->added[std::this_thread::get_id()];
  }

  template <class Body>
  void guarded(const char* what, const Body& body) {
    Lane::Added& added = own_added();
    try {
      impl_->call(what);
      if (added.steps.empty()) added.generation = impl_->generation;
      impl_->require_current(added.generation, "what was added to the stream, and not submitted,");
      body(added.steps);
    } catch (...) {
      added.steps.clear();
      throw;
    }
  }

  const std::shared_ptr<Impl> impl_;
  const std::shared_ptr<Lane> lane_;
  const bool own_;
};

}  // namespace

Ref<Stream> make_async_stream(std::shared_ptr<AsyncDevice::Impl> impl, std::shared_ptr<Lane> lane,
                              bool own) {
  return make_ref<AsyncStream>(std::move(impl), std::move(lane), own);
}

std::unique_ptr<Recording> make_async_recording(std::span<const RecordedStep> steps,
                                                const AsyncDevice::Impl& impl) {
  return std::make_unique<AsyncRecording>(steps, impl);
}

std::unique_ptr<BindingTable> make_async_table(std::shared_ptr<AsyncDevice::Impl> impl,
                                               std::size_t slots) {
  return std::make_unique<AsyncTable>(std::move(impl), slots);
}

}  // namespace heddle::test
