#include "device/vulkan/stream.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/settings.h"
#include "device/vulkan/completion.h"
#include "device/vulkan/hazards.h"
#include "device/vulkan/recording.h"

namespace heddle::vulkan {

namespace {

// ---- What a thread has added and not yet submitted

class Batch {
 public:
  Batch(std::shared_ptr<Life> life, std::shared_ptr<Timeline> timeline, Device& device)
      : life_(std::move(life)),
        timeline_(std::move(timeline)),
        device_(device),
        arena_(life_->host) {}

  const Life& life() const noexcept { return *life_; }

  void launch(const std::shared_ptr<const Kernel>& kernel, std::span<const View> inputs,
              std::span<const View> outputs, const View& workspace, const View& extent);
  void copy(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
            std::size_t to_offset, std::size_t bytes);
  void replay(VulkanRecording& recording, VulkanBindingTable& table);
  void wait_for(const Ref<Completion>& other);
  Ref<Completion> submit();

 private:
  /// Rows of a binding table that only this batch uses.
  struct Table {
    TableSlot* slots = nullptr;
    VkDeviceAddress address = 0;
    std::uint32_t used = 0;
  };
  static constexpr std::uint32_t kTableSlots = 512;

  Encoder& encoder();
  void close();
  void order(std::vector<Hazards::Access> accesses);
  std::uint32_t add_slot(const View& view);
  void reserve_slots(std::size_t count);
  std::shared_ptr<const Memory> keep(const Buffer* buffer);
  std::shared_ptr<const Memory> staging(std::size_t bytes);

  const std::shared_ptr<Life> life_;
  const std::shared_ptr<Timeline> timeline_;
  Device& device_;
  Arena arena_;
  Tally tally_;
  Work work_;
  std::set<const Memory*> kept_;
  std::vector<VkCommandBuffer> pieces_;

  std::shared_ptr<CommandBuffer> open_;  // its commands are being written
  std::optional<Encoder> encoder_;
  Hazards hazards_;
  Table table_;
  std::uint32_t* report_ = nullptr;
  VkDeviceAddress report_address_ = 0;
  std::vector<std::string> labels_;  // of the launches that report there
};

Encoder& Batch::encoder() {
  if (encoder_) return *encoder_;
  open_ = life_->command_buffers->take();
  open_->begin(true);
  encoder_.emplace(*life_->context, arena_, tally_, open_->handle());
  encoder_->barrier();  // after what the stream did before
  hazards_.clear();
  return *encoder_;
}

/// Ends the command buffer that is open: what follows is another's.
void Batch::close() {
  if (!encoder_) return;
  encoder_->host_barrier();
  open_->end();
  pieces_.push_back(open_->handle());
  work_.kept.push_back(std::move(open_));
  encoder_.reset();
}

void Batch::order(std::vector<Hazards::Access> accesses) {
  Encoder& commands = encoder();
  if (settings().vulkan_barriers == "all" || hazards_.conflict(accesses)) {
    commands.barrier();
    hazards_.clear();
  }
  hazards_.note(accesses);
}

std::shared_ptr<const Memory> Batch::keep(const Buffer* buffer) {
  auto memory = memory_in(*life_, device_, buffer);
  if (memory && kept_.insert(memory.get()).second) work_.kept.push_back(memory);
  return memory;
}

std::shared_ptr<const Memory> Batch::staging(std::size_t bytes) {
  auto memory = make_memory(life_->host, bytes);
  work_.kept.push_back(memory);
  return memory;
}

void Batch::reserve_slots(std::size_t count) {
  if (!report_) {
    const Arena::Room room = arena_.take(sizeof *report_);
    report_ = reinterpret_cast<std::uint32_t*>(room.host);
    report_address_ = room.address;
    *report_ = 0;
  }
  if (table_.slots && table_.used + count <= kTableSlots) return;
  const Arena::Room room = arena_.take(kTableSlots * sizeof(TableSlot));
  table_ = {reinterpret_cast<TableSlot*>(room.host), room.address, kFirstSlot};
  table_.slots[kReportSlot] = {report_address_, sizeof *report_};
  table_.slots[kAbsoluteSlot] = {};
}

std::uint32_t Batch::add_slot(const View& view) {
  if (!view.buffer) return kAbsoluteSlot;
  const auto memory = keep(view.buffer.get());
  require(memory != nullptr, ErrorCode::invalid_argument, "{}: an operand in {}'s memory",
          life_->context->name(), view.buffer->device().name());
  table_.slots[table_.used] = {memory->address() + view.offset, view.buffer->size() - view.offset};
  return table_.used++;
}

void Batch::launch(const std::shared_ptr<const Kernel>& kernel, std::span<const View> inputs,
                   std::span<const View> outputs, const View& workspace, const View& extent) {
  const auto own = kernel_in(*life_, kernel);
  reserve_slots(inputs.size() + outputs.size() + 2);
  std::vector<Hazards::Access> accesses;
  const auto use = [&](const View& view, ByteRange bytes, bool writes) {
    const std::uint32_t slot = add_slot(view);
    const std::uint64_t base = table_.slots[slot].base;
    if (bytes.end > bytes.begin) accesses.push_back({base + bytes.begin, base + bytes.end, writes});
    return slot;
  };
  std::vector<std::uint32_t> slots;
  const KernelTraits& traits = own->traits();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    slots.push_back(use(inputs[i], traits.reads[i], false));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    slots.push_back(use(outputs[i], traits.writes[i], true));
  }
  slots.push_back(use(workspace, {0, traits.workspace_bytes}, true));
  slots.push_back(use(extent, {0, extent.buffer ? sizeof(std::int32_t) : 0}, false));
  order(std::move(accesses));

  labels_.push_back(own->label());
  const auto operand_of = [&](const Address& address) {
    std::uint32_t slot = kAbsoluteSlot;
    if (address.of == Address::Of::input) slot = slots[address.index];
    if (address.of == Address::Of::output) slot = slots[inputs.size() + address.index];
    if (address.of == Address::Of::workspace) slot = slots[slots.size() - 2];
    if (address.of == Address::Of::extent) slot = slots.back();
    return operand_at(slot, slot == kAbsoluteSlot ? 0 : address.offset);
  };
  encoder().launch(*own, table_.address, static_cast<std::uint32_t>(labels_.size()), operand_of);
  work_.kept.push_back(own);
}

void Batch::copy(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
                 std::size_t to_offset, std::size_t bytes) {
  const auto holds = [&](const Buffer& buffer, std::size_t offset) {
    return offset <= buffer.size() && bytes <= buffer.size() - offset;
  };
  require(holds(*from, from_offset) && holds(*to, to_offset), ErrorCode::invalid_argument,
          "{}: a copy of {} bytes past the end of a buffer: from {} of {} to {} of {}",
          life_->context->name(), bytes, from_offset, from->size(), to_offset, to->size());
  if (bytes == 0) return;
  auto source = keep(from.get()), target = keep(to.get());
  require((source || from->host()) && (target || to->host()) && (source || target),
          ErrorCode::invalid_argument, "{}: a copy between {} and {}, neither of which it sees",
          life_->context->name(), from->device().name(), to->device().name());
  if (!source) {
    source = staging(bytes);
    std::memcpy(source->host(), from->host() + from_offset, bytes);
    from_offset = 0;
  }
  if (!target) {
    target = staging(bytes);
    work_.host_copies.push_back({target->host(), to, to_offset, bytes});
    to_offset = 0;
  }
  labels_.push_back(fmt::format("copy of {} bytes", bytes));
  const std::uint64_t source_at = source->address() + from_offset;
  const std::uint64_t target_at = target->address() + to_offset;
  order({{source_at, source_at + bytes, false}, {target_at, target_at + bytes, true}});
  encoder().copy(*source, from_offset, *target, to_offset, bytes);
}

void Batch::replay(VulkanRecording& recording, VulkanBindingTable& table) {
  close();
  recording.add_to(*life_, table, pieces_, work_, tally_);
}

void Batch::wait_for(const Ref<Completion>& other) {
  if (!other) return;
  auto* own = dynamic_cast<Submission*>(other.get());
  if (own && &own->timeline().context() == life_->context.get()) {
    // A run waits for the same work once for each of its states.
    if (std::ranges::find(work_.after, other) == work_.after.end()) {
      work_.after.push_back(Ref<Submission>(own));
    }
    return;
  }
  try {
    other->wait();
  } catch (...) {
    if (!work_.failed) work_.failed = failure_of(std::current_exception());
  }
}

Ref<Completion> Batch::submit() {
  close();
  if (pieces_.empty() && work_.after.empty() && !work_.failed) return completed();
  if (!labels_.empty()) {
    work_.reports.push_back(
        {report_, std::make_shared<const std::vector<std::string>>(std::move(labels_))});
  }
  for (const auto& memory : arena_.memory()) work_.kept.push_back(memory);
  tally_.count(life_->context->counters());
  constexpr std::chrono::seconds kCompiling{5};  // a pipeline, on a busy processor
  work_.extra_time = kCompiling * tally_.first_uses;
  return timeline_->submit(pieces_, std::move(work_));
}

// ---- The stream

class VulkanStream final : public Stream {
 public:
  explicit VulkanStream(LifeSource& source) : source_(source) {}
  Device& device() const noexcept override { return source_.device(); }

  void encode(const std::shared_ptr<const Kernel>& kernel, std::span<const View> inputs,
              std::span<const View> outputs, const View& workspace, const View& extent) override {
    guarded([&](Batch& batch) { batch.launch(kernel, inputs, outputs, workspace, extent); });
  }
  void copy(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
            std::size_t to_offset, std::size_t bytes) override {
    guarded([&](Batch& batch) { batch.copy(from, from_offset, to, to_offset, bytes); });
  }
  void replay(const Recording& recording, const BindingTable& bindings) override {
    // Its commands are written, and its report cleared, by whoever replays it: one at a time.
    auto* own = dynamic_cast<VulkanRecording*>(const_cast<Recording*>(&recording));
    auto* table = dynamic_cast<VulkanBindingTable*>(const_cast<BindingTable*>(&bindings));
    guarded([&](Batch& batch) {
      require(own && table, ErrorCode::invalid_argument, "{}: another device's recording",
              device().name());
      batch.replay(*own, *table);
    });
  }
  void wait_for(const Ref<Completion>& other) override {
    guarded([&](Batch& batch) { batch.wait_for(other); });
  }

  Ref<Completion> submit() override {
    const std::unique_ptr<Batch> batch = take();
    if (!batch) return completed();
    batch->life().context->throw_if_lost();
    return batch->submit();
  }

 private:
  template <class Body>
  void guarded(const Body& body) {
    Batch& batch = open();
    try {
      batch.life().context->throw_if_lost();
      body(batch);
    } catch (...) {
      take();
      throw;
    }
  }

  /// The calling thread's batch.
  Batch& open() {
    {
      const std::lock_guard lock(mutex_);
      const auto found = batches_.find(std::this_thread::get_id());
      if (found != batches_.end()) return *found->second;
    }
    std::shared_ptr<Life> life = source_.life();
    auto batch = std::make_unique<Batch>(life, timeline_of(life), source_.device());
    const std::lock_guard lock(mutex_);
    return *(batches_[std::this_thread::get_id()] = std::move(batch));
  }
  std::unique_ptr<Batch> take() {
    const std::lock_guard lock(mutex_);
    auto node = batches_.extract(std::this_thread::get_id());
    return node.empty() ? nullptr : std::move(node.mapped());
  }
  std::shared_ptr<Timeline> timeline_of(const std::shared_ptr<Life>& life) {
    const std::lock_guard lock(mutex_);
    if (!timeline_ || &timeline_->context() != life->context.get()) {
      timeline_ = std::make_shared<Timeline>(life->context);
      life->context->add(timeline_);
    }
    return timeline_;
  }

  LifeSource& source_;
  std::mutex mutex_;
  std::shared_ptr<Timeline> timeline_;
  std::map<std::thread::id, std::unique_ptr<Batch>> batches_;
};

}  // namespace

Ref<Stream> make_stream(LifeSource& source) {
  return make_ref<VulkanStream>(source);
}

}  // namespace heddle::vulkan
