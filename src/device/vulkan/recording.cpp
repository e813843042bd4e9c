#include "device/vulkan/recording.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/settings.h"

namespace heddle::vulkan {

// ---- Binding tables

VulkanBindingTable::VulkanBindingTable(std::shared_ptr<Life> life, Device& device,
                                       std::size_t slots)
    : life_(std::move(life)), device_(device) {
  rows_->bound.resize(slots);
  const std::size_t rows = slots + kFirstSlot;
  rows_->memory = make_memory(life_->host, rows * sizeof(TableSlot) + sizeof(std::uint32_t));
  rows_->slots = reinterpret_cast<TableSlot*>(rows_->memory->host());
  std::fill_n(rows_->slots, rows, TableSlot{});
  rows_->slots[kReportSlot] = {rows_->memory->address() + rows * sizeof(TableSlot),
                               sizeof(std::uint32_t)};
}

std::uint32_t* VulkanBindingTable::report() const noexcept {
  return reinterpret_cast<std::uint32_t*>(rows_->slots + rows_->bound.size() + kFirstSlot);
}

void VulkanBindingTable::set(std::uint32_t slot, Ref<Buffer> buffer, std::size_t offset,
                             std::size_t bytes) {
  const std::string& name = life_->context->name();
  life_->context->throw_if_lost();
  require(slot < rows_->bound.size(), ErrorCode::invalid_argument, "{}: slot {} of {}", name, slot,
          rows_->bound.size());
  require(!buffer || (offset <= buffer->size() && bytes <= buffer->size() - offset),
          ErrorCode::invalid_argument, "{}: slot {} is bound to bytes {}..+{} of {}", name, slot,
          offset, bytes, buffer ? buffer->size() : 0);
  Bound next{nullptr, buffer ? memory_in(*life_, device_, buffer.get()) : nullptr, offset, bytes};
  if (buffer && !next.memory) {
    require(buffer->host() != nullptr, ErrorCode::invalid_argument,
            "{}: slot {} is bound to memory of {} that the host does not see", name, slot,
            buffer->device().name());
    next.foreign = std::move(buffer);
  }
  Bound& bound = rows_->bound[slot];
  // Staged copies are of one size.
  const bool staged = next.foreign || bound.foreign;
  if (staged && (!next.foreign != !bound.foreign || bound.bytes != bytes)) ++shape_;
  bound = std::move(next);
  rows_->slots[kFirstSlot + slot] =
      bound.memory ? TableSlot{bound.memory->address() + offset, bytes} : TableSlot{};
}

const VulkanBindingTable::Bound& VulkanBindingTable::bound(std::uint32_t slot) const {
  require(slot < rows_->bound.size() && (rows_->bound[slot].memory || rows_->bound[slot].foreign),
          ErrorCode::invalid_argument, "{}: slot {} is not bound", life_->context->name(), slot);
  return rows_->bound[slot];
}

// ---- Recordings

namespace {

/// The longest that one submission should take, so that no watchdog ends it, at the pace of a slow
/// device of its kind.
constexpr double kPieceSeconds = 0.2;

double seconds_of(const Cost& cost, const PhysicalDevice& device) {
  const bool discrete = device.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  const bool processor = device.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const double bytes_a_second = discrete ? 100e9 : processor ? 5e9 : 15e9;
  const double operations_a_second = discrete ? 1e12 : processor ? 5e9 : 100e9;
  return std::max(cost.bytes / bytes_a_second, cost.operations / operations_a_second);
}

}  // namespace

/// What shaders/grids.comp reads for one dispatch.
struct GridEntry {
  OperandAt extent;
  std::uint32_t rows_per_step = 0, groups_per_step = 0, most_steps = 0;
};

/// Writes the steps as commands.
class VulkanRecording::Writer {
 public:
  Writer(const std::shared_ptr<Life>& life, VulkanBindingTable& table, Written& written)
      : life_(life), table_(table), written_(written), arena_(life->host) {}

  void write(std::span<const RecordedStep> steps) {
    begin();
    begins_with_barrier_ = !steps.empty() && std::holds_alternative<RecordedBarrier>(steps[0]);
    size_grids(steps);
    for (const RecordedStep& step : steps) {
      std::visit([&](const auto& one) { add(one); }, step);
    }
    end();
    for (const auto& memory : arena_.memory()) written_.memory.push_back(memory);
  }

 private:
  void begin() {
    written_.pieces.push_back(std::make_shared<CommandBuffer>(life_->context));
    written_.pieces.back()->begin(false);
    encoder_.emplace(*life_->context, arena_, written_.tally, written_.pieces.back()->handle());
    seconds_ = 0;
  }
  void end() {
    encoder_->host_barrier();
    written_.pieces.back()->end();
  }

  void add(const RecordedBarrier&) {
    if (settings().vulkan_barriers == "hazards") encoder_->barrier();
  }
  void add(const RecordedLaunch& launch) {
    const double seconds = seconds_of(launch.cost, life_->context->physical());
    if (seconds_ > 0 && seconds_ + seconds > kPieceSeconds) {
      end();
      begin();
    }
    seconds_ += seconds;
    if (settings().vulkan_barriers == "all") encoder_->barrier();
    encoder_->launch(
        *kernel_in(*life_, launch.kernel), table_.address(), ++launches_,
        [&](const Address& address) { return operand_of(launch, address); },
        [&](const Dispatch& dispatch) { return arguments_of(launch, dispatch); });
  }

  // ---- Grids that depend on extents: computed by one dispatch before all others

  /// Whether the dispatch's grid is worth computing, and can be: its extent is there from the
  /// start.
  bool is_sized(const RecordedLaunch& launch, const Dispatch& dispatch) const {
    const Grid& grid = dispatch.grid;
    return launch.extent && grid.rows_per_step > 0 && grid.groups > grid.groups_per_step &&
           !written_here_.contains(launch.extent->slot);
  }

  void size_grids(std::span<const RecordedStep> steps) {
    for (const RecordedStep& step : steps) {
      if (const auto* copy = std::get_if<RecordedCopy>(&step)) written_here_.insert(copy->to.slot);
      if (const auto* launch = std::get_if<RecordedLaunch>(&step)) {
        for (const SlotView& output : launch->outputs) written_here_.insert(output.slot);
      }
    }
    std::vector<GridEntry> entries;
    for (const RecordedStep& step : steps) {
      const auto* launch = std::get_if<RecordedLaunch>(&step);
      if (!launch) continue;
      for (const Dispatch& dispatch : kernel_in(*life_, launch->kernel)->dispatches()) {
        if (!is_sized(*launch, dispatch)) continue;
        const Grid& grid = dispatch.grid;
        entries.push_back({at(*launch->extent, 0), grid.rows_per_step, grid.groups_per_step,
                           static_cast<std::uint32_t>(grid.groups / grid.groups_per_step)});
      }
    }
    if (entries.empty()) return;
    const Arena::Room room = arena_.take(entries.size() * sizeof(GridEntry));
    std::memcpy(room.host, entries.data(), entries.size() * sizeof(GridEntry));
    arguments_ = make_memory(life_->local, entries.size() * sizeof(VkDispatchIndirectCommand));
    written_.memory.push_back(arguments_);
    dispatch_grids(room.address, static_cast<std::uint32_t>(entries.size()));
  }

  void dispatch_grids(VkDeviceAddress entries, std::uint32_t count) {
    const std::uint32_t params[] = {count, life_->context->limits().max_groups};
    constexpr std::uint32_t kGroup = 32;
    Dispatch dispatch = own_dispatch("grids", kGroup, params);
    dispatch.grid.groups = (count + kGroup - 1) / kGroup;
    // The run before has ended, so nothing reads its grids any more.
    encoder_->launch(
        VulkanKernel({}, {dispatch}, "grids"), table_.address(), 0, [&](const Address& a) {
          return operand_at(kAbsoluteSlot,
                            a.of == Address::Of::input ? entries : arguments_->address());
        });
    if (!begins_with_barrier_) encoder_->barrier();
  }

  Encoder::Arguments arguments_of(const RecordedLaunch& launch, const Dispatch& dispatch) {
    if (!is_sized(launch, dispatch)) return {};
    return {arguments_.get(), sizeof(VkDispatchIndirectCommand) * sized_++};
  }

  /// A dispatch of one of the device's own shaders, from input 0 to output 0.
  template <std::size_t N>
  Dispatch own_dispatch(const char* shader, std::uint32_t group_size,
                        const std::uint32_t (&params)[N]) {
    Dispatch dispatch;
    group_size = std::min(group_size, life_->context->limits().max_group_size);
    dispatch.pipeline = life_->pipelines->get(shader, group_size, {}, 2, sizeof params);
    dispatch.operands = {input(0), output(0)};
    dispatch.params.resize(sizeof params);
    std::memcpy(dispatch.params.data(), params, sizeof params);
    return dispatch;
  }
  void add(const RecordedCopy& copy) {
    if (settings().vulkan_barriers == "all") encoder_->barrier();
    const auto& from = table_.bound(copy.from.slot);
    const auto& to = table_.bound(copy.to.slot);
    const std::string& name = life_->context->name();
    require(from.memory || to.memory, ErrorCode::invalid_argument,
            "{}: a copy between two buffers of other devices", name);
    const std::size_t bytes = std::min(bytes_of(copy.from, from), bytes_of(copy.to, to));
    const bool whole =
        from.memory && to.memory && copy.from.bytes == kWholeSlot && copy.to.bytes == kWholeSlot;
    OperandAt source = at(copy.from, 0), target = at(copy.to, 0);
    if (!from.memory) source = stage(written_.uploads, copy.from, from, bytes);
    if (!to.memory) target = stage(written_.downloads, copy.to, to, bytes);
    copy_bytes(source, target, whole ? kWholeSlot : bytes);
  }

  static std::size_t bytes_of(const SlotView& view, const VulkanBindingTable::Bound& bound) {
    require(view.offset <= bound.bytes, ErrorCode::invalid_argument,
            "slot {}: offset {} in {} bytes", view.slot, view.offset, bound.bytes);
    const std::size_t left = bound.bytes - view.offset;
    require(view.bytes == kWholeSlot || view.bytes <= left, ErrorCode::invalid_argument,
            "slot {}: {} bytes at {} of {}", view.slot, view.bytes, view.offset, bound.bytes);
    return view.bytes == kWholeSlot ? left : view.bytes;
  }

  /// Memory for the bytes of a slot that only the host can reach.
  OperandAt stage(std::vector<Written::Staged>& staged, const SlotView& view,
                  const VulkanBindingTable::Bound& bound, std::size_t bytes) {
    auto memory = make_memory(life_->host, bytes);
    const std::uint64_t address = memory->address();
    staged.push_back({view.slot, bound.offset + view.offset, bytes, memory});
    written_.memory.push_back(std::move(memory));
    return operand_at(kAbsoluteSlot, address);
  }

  void copy_bytes(OperandAt from, OperandAt to, std::size_t bytes) {
    constexpr std::uint32_t kGroup = 64;
    constexpr std::size_t kBytesPerGroup = kGroup * 64, kMostGroups = 1024;
    const std::uint32_t params[] = {static_cast<std::uint32_t>(bytes),
                                    static_cast<std::uint32_t>(std::uint64_t{bytes} >> 32)};
    Dispatch dispatch = own_dispatch("copy_bytes", kGroup, params);
    dispatch.grid.groups = std::clamp<std::size_t>(bytes / kBytesPerGroup, 1, kMostGroups);
    encoder_->launch(VulkanKernel({}, {dispatch}, "copy"), table_.address(), 0,
                     [&](const Address& a) { return a.of == Address::Of::input ? from : to; });
    ++written_.tally.copies;
    if (bytes != kWholeSlot) written_.tally.copied_bytes += bytes;
  }

  static OperandAt at(const SlotView& view, std::uint64_t offset) {
    return operand_at(kFirstSlot + view.slot, view.offset + offset);
  }
  static OperandAt operand_of(const RecordedLaunch& launch, const Address& address) {
    switch (address.of) {
      case Address::Of::input:
        return at(launch.inputs[address.index], address.offset);
      case Address::Of::output:
        return at(launch.outputs[address.index], address.offset);
      case Address::Of::workspace:
        return launch.workspace.bytes > 0 ? at(launch.workspace, address.offset)
                                          : operand_at(kAbsoluteSlot, 0);
      case Address::Of::extent:
        return launch.extent ? at(*launch.extent, address.offset) : operand_at(kAbsoluteSlot, 0);
      case Address::Of::nothing:
        break;
    }
    return operand_at(kAbsoluteSlot, 0);
  }

  const std::shared_ptr<Life>& life_;
  VulkanBindingTable& table_;
  Written& written_;
  Arena arena_;
  std::optional<Encoder> encoder_;
  std::uint32_t launches_ = 0;
  bool begins_with_barrier_ = false;
  std::set<std::uint32_t> written_here_;  // slots
  std::shared_ptr<const Memory> arguments_;
  std::size_t sized_ = 0;  // dispatches that found their arguments
  double seconds_ = 0;     // of the piece that is open, as estimated
};

VulkanRecording::VulkanRecording(std::shared_ptr<Life> life, std::span<const RecordedStep> steps)
    : life_(std::move(life)), steps_(steps.begin(), steps.end()) {
  std::vector<std::string> labels;
  for (const RecordedStep& step : steps_) {
    const auto* launch = std::get_if<RecordedLaunch>(&step);
    if (!launch) continue;
    kernel_in(*life_, launch->kernel);
    labels.push_back(to_string(launch->label));
  }
  labels_ = std::make_shared<const std::vector<std::string>>(std::move(labels));
}

void VulkanRecording::write(VulkanBindingTable& table) {
  auto written = std::make_shared<Written>();
  Writer(life_, table, *written).write(steps_);
  written_ = std::move(written);
  table_ = &table;
  shape_ = table.shape();
  ++life_->context->counters().recorded;
}

void VulkanRecording::add_to(const Life& life, VulkanBindingTable& table,
                             std::vector<VkCommandBuffer>& pieces, Work& work, Tally& tally) {
  require(life.context == life_->context && table.life()->context == life_->context,
          ErrorCode::device_lost, "{}: recorded before the device was lost",
          life_->context->name());
  const bool known = table_ == &table && shape_ == table.shape();
  if (!written_ || !known || !settings().vulkan_recordings) write(table);

  for (const Written::Staged& upload : written_->uploads) {
    const auto& from = table.bound(upload.slot);
    std::memcpy(upload.staging->host(), from.foreign->host() + upload.offset, upload.bytes);
  }
  for (const Written::Staged& download : written_->downloads) {
    work.host_copies.push_back({download.staging->host(), table.bound(download.slot).foreign,
                                download.offset, download.bytes});
  }
  *table.report() = 0;
  work.reports.push_back({table.report(), labels_});
  for (const auto& piece : written_->pieces) pieces.push_back(piece->handle());
  work.kept.push_back(written_);
  work.kept.push_back(table.kept());
  tally.merge(written_->tally);
  if (written_->submitted.exchange(true)) tally.first_uses -= written_->tally.first_uses;
  ++life_->context->counters().replayed;
}

}  // namespace heddle::vulkan
