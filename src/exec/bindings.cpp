#include "exec/bindings.h"

#include <algorithm>

#include "base/check.h"
#include "exec/transfer.h"
#include "graph/values.h"

namespace heddle {

namespace {

SlotView slot_view(const Plan& plan, const Location& location) {
  // A state may have outgrown its spec: kernels see all of what is bound.
  const bool whole = plan.slots[location.slot].kind == SlotKind::state && location.offset == 0;
  return {location.slot, location.offset, whole ? kWholeSlot : location.bytes};
}

std::vector<SlotView> slot_views(const Plan& plan, const std::vector<Location>& locations) {
  std::vector<SlotView> views;
  for (const Location& location : locations) views.push_back(slot_view(plan, location));
  return views;
}

LaunchLabel label(const Plan& plan, NodeId node) {
  const GraphNode& n = plan.placed.graph.nodes[node];
  return {node, n.op, input_specs(plan.placed.graph, n)};
}

/// The launch's kernel, or the same anew if its device was lost since it was planned.
std::shared_ptr<const Kernel> current_kernel(const Plan& plan, const PlannedLaunch& launch,
                                             Device& device) {
  const auto planned = plan.generations.find(&device);
  if (planned == plan.generations.end() || planned->second == device.generation()) {
    return launch.kernel;
  }
  std::vector<OperandSpec> inputs, outputs;
  for (const Location& input : launch.inputs) inputs.push_back(input.operand);
  for (const Location& output : launch.outputs) outputs.push_back(output.operand);
  const Op& op = plan.placed.graph.nodes[launch.node].op;
  Prepared prepared = device.prepare_cached(op, inputs, outputs);
  const bool same = prepared && prepared.kernel->traits() == launch.kernel->traits();
  require(same, ErrorCode::device_lost,
          "{}: the device was lost, and has {} for it now: compile the graph again",
          to_string(label(plan, launch.node)), prepared ? "another kernel" : "no kernel");
  return std::move(prepared.kernel);
}

Cost cost_of(const Graph& graph, const GraphNode& node) {
  return cost(node.op, input_specs(graph, node), node.outputs);
}

RecordedStep recorded(const Plan& plan, const PlannedStep& step, Device& device) {
  if (const auto* copy = std::get_if<PlannedCopy>(&step)) {
    return RecordedCopy{slot_view(plan, copy->from), slot_view(plan, copy->to)};
  }
  if (std::holds_alternative<PlannedBarrier>(step)) return RecordedBarrier{};
  const auto& launch = std::get<PlannedLaunch>(step);
  RecordedLaunch out{
      .kernel = current_kernel(plan, launch, device),
      .inputs = slot_views(plan, launch.inputs),
      .outputs = slot_views(plan, launch.outputs),
      .workspace = {launch.workspace_slot, launch.workspace_offset, launch.workspace_bytes},
      .label = label(plan, launch.node),
      .cost = cost_of(plan.placed.graph, plan.placed.graph.nodes[launch.node])};
  if (launch.extent) out.extent = slot_view(plan, *launch.extent);
  return out;
}

/// Tells of the weights that a plan needs and that are not there yet.
class Loading {
 public:
  Loading(const Plan& plan, const std::vector<bool>& wanted, const Parameters::Impl& parameters)
      : progress_(parameters.progress()) {
    if (!progress_) return;
    for (std::size_t s = 0; s < plan.slots.size(); ++s) {
      if (wanted[s] && is_missing(plan.slots[s], parameters)) total_ += plan.slots[s].bytes;
    }
  }
  bool is_missing(const Slot& slot, const Parameters::Impl& parameters) const {
    return slot.kind == SlotKind::parameter &&
           !parameters.holds(slot.name, slot.operand, *slot.device);
  }
  void add(const Slot& slot, std::size_t bytes) {
    if (!progress_) return;
    done_ = std::min(total_, done_ + bytes);
    progress_({done_, total_, slot.name});
  }

 private:
  const std::function<void(const LoadProgress&)> progress_;
  std::uint64_t done_ = 0, total_ = 0;
};

}  // namespace

std::vector<Device*> devices_of(const Plan& plan) {
  std::vector<Device*> devices;
  for (const Slot& slot : plan.slots) {
    if (std::find(devices.begin(), devices.end(), slot.device) == devices.end())
      devices.push_back(slot.device);
  }
  for (const Split& split : plan.splits) {
    if (std::find(devices.begin(), devices.end(), split.device) == devices.end())
      devices.push_back(split.device);
  }
  return devices;
}

std::unique_ptr<Recording> record(const Plan& plan, const Split& split) {
  std::vector<RecordedStep> steps;
  for (const PlannedStep& step : split.steps) steps.push_back(recorded(plan, step, *split.device));
  return split.device->record(steps);
}

std::vector<bool> slots_that_runs_read(const Plan& plan) {
  std::vector<bool> read(plan.slots.size());
  for (const auto* splits : {&plan.splits, &plan.feeds}) {
    for (const Split& split : *splits) {
      for (const PlannedStep& step : split.steps) {
        const auto* launch = std::get_if<PlannedLaunch>(&step);
        if (!launch) continue;
        for (const Location& input : launch->inputs) read[input.slot] = true;
      }
    }
  }
  for (const PlanOutput& output : plan.outputs) read[output.location.slot] = true;
  return read;
}

void import_parameters(const Plan& plan, Parameters& parameters) {
  std::map<Device*, std::vector<std::string>> plain;
  for (const Slot& slot : plan.slots) {
    const bool is_plain = slot.operand.layout.kind == LayoutKind::strided;
    if (slot.kind == SlotKind::parameter && is_plain) plain[slot.device].push_back(slot.name);
  }
  for (const auto& [device, names] : plain) parameters.impl().import_together(names, *device);
}

Bindings::Bindings(const Plan& plan)
    : plan_(plan), bound_(plan.slots.size()), inputs_(plan.slots.size()) {
  for (Device* device : devices_of(plan)) {
    generations_[device] = device->generation();
    tables_[device] = device->make_binding_table(plan.slots.size());
  }
  for (std::uint32_t s = 0; s < plan.slots.size(); ++s) {
    if (plan.slots[s].kind == SlotKind::input) input_slots_[plan.slots[s].name].push_back(s);
  }
}

bool Bindings::is_outdated() const {
  return std::ranges::any_of(
      generations_, [](const auto& known) { return known.first->generation() != known.second; });
}

void Bindings::bind(std::uint32_t slot, Ref<Buffer> buffer, std::size_t offset, std::size_t bytes) {
  if (bound_[slot].buffer == buffer && bound_[slot].offset == offset) return;
  // A device touches its own memory and the staging copies that it sends; the CPU what it shares.
  const Slot& planned = plan_.slots[slot];
  const bool has_results = planned.kind == SlotKind::arena || planned.kind == SlotKind::output;
  const bool shared = has_results && planned.device->shares_host_memory();
  for (const auto& [device, table] : tables_) {
    if (device == planned.device || planned.kind == SlotKind::staging ||
        (shared && device == &cpu_device()))
      table->set(slot, buffer, offset, bytes);
  }
  bound_[slot] = {std::move(buffer), offset};
}

void Bindings::allocate() {
  if (allocated_) return;
  for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
    const Slot& slot = plan_.slots[s];
    const bool made_here = slot.kind == SlotKind::arena || slot.kind == SlotKind::staging ||
                           slot.kind == SlotKind::constant;
    if (!made_here) continue;
    const bool local = slot.kind == SlotKind::arena || slot.kind == SlotKind::constant;
    Ref<Buffer> buffer =
        slot.device->allocate(slot.bytes, local ? MemoryKind::local : MemoryKind::host_visible);
    if (slot.kind == SlotKind::constant) {
      const auto& constant = std::get<Constant>(plan_.placed.graph.node(*slot.value).op);
      write_buffer(buffer, 0, {constant.data->host(), slot.bytes});
    }
    bind(s, std::move(buffer), 0, slot.bytes);
  }
  allocated_ = true;
}

void Bindings::make_outputs() {
  for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
    const Slot& slot = plan_.slots[s];
    if (slot.kind != SlotKind::output || bound_[s].buffer) continue;
    bind(s, slot.device->allocate(slot.bytes, MemoryKind::host_visible), 0, slot.bytes);
  }
}

void Bindings::make_inputs() {
  for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
    const Slot& slot = plan_.slots[s];
    if (slot.kind == SlotKind::input && !bound_[s].buffer) bind_copy(s);
  }
}

void Bindings::bind_copy(std::uint32_t slot) {
  const Slot& planned = plan_.slots[slot];
  if (!inputs_[slot]) {
    inputs_[slot] = planned.device->allocate(planned.bytes, MemoryKind::host_visible);
  }
  bind(slot, inputs_[slot], 0, planned.bytes);
}

void Bindings::bind_over(const Overwrite& overwrite) {
  const Bound& input = bound_[overwrite.input];
  bind(overwrite.output, input.buffer, input.offset, plan_.slots[overwrite.output].bytes);
}

void Bindings::release() {
  for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
    const SlotKind kind = plan_.slots[s].kind;
    const bool lent = kind == SlotKind::input && bound_[s].buffer != inputs_[s];
    if (kind == SlotKind::output || lent) unbind(s);
  }
}

void Bindings::unbind(std::uint32_t slot) {
  for (const auto& [device, table] : tables_) table->set(slot, nullptr, 0, 0);
  bound_[slot] = {};
}

void Bindings::pack(const PlannedLaunch& launch, const View& plain, const View& packed) const {
  Device& device = packed.buffer->device();
  View workspace;
  std::shared_ptr<const Kernel> kernel = current_kernel(plan_, launch, device);
  if (packed.operand != launch.outputs[0].operand) {  // a piece of it
    const Op& op = plan_.placed.graph.nodes[launch.node].op;
    Prepared piece = device.prepare_cached(op, {&plain.operand, 1}, {&packed.operand, 1});
    require(piece.kernel != nullptr, ErrorCode::unsupported, "{} of {}: {}",
            to_string(label(plan_, launch.node)), to_string(plain.operand), piece.reason);
    kernel = std::move(piece.kernel);
  }
  if (const std::size_t bytes = kernel->traits().workspace_bytes) {
    workspace.buffer = device.allocate(bytes);
    workspace.operand = OperandSpec::contiguous({DType::u8, {static_cast<std::int64_t>(bytes)}});
  }
  const Ref<Stream> stream = device.default_stream();
  stream->encode(kernel, {&plain, 1}, {&packed, 1}, workspace, View{});
  const Ref<Completion> end = stream->submit();
  end->wait();
  packed.buffer->note_write(end);
}

void Bindings::bind_parameters(Parameters& parameters) {
  Parameters::Impl& impl = parameters.impl();
  const std::uint64_t revision = impl.revision;
  if (revision == parameters_seen_) return;
  import_parameters(plan_, parameters);
  std::vector<bool> wanted = slots_that_runs_read(plan_);
  Loading loading(plan_, wanted, impl);
  for (const PlannedLaunch& launch : plan_.load) {
    const std::uint32_t s = launch.outputs[0].slot;
    const Slot& slot = plan_.slots[s];
    const View view =
        impl.packed(slot.name, slot.operand, *slot.device, [&](const View& from, const View& to) {
          pack(launch, from, to);
          loading.add(slot, span_bytes(to.operand));
        });
    bind(s, view.buffer, view.offset, slot.bytes);
    wanted[s] = false;
  }
  for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
    const Slot& slot = plan_.slots[s];
    if (slot.kind != SlotKind::parameter || !wanted[s]) continue;
    const bool missing = loading.is_missing(slot, impl);
    const View view = impl.plain(slot.name, slot.operand.spec, *slot.device);
    if (missing) loading.add(slot, slot.bytes);
    bind(s, view.buffer, view.offset, slot.bytes);
  }
  impl.release_left();
  parameters_seen_ = revision;
}

void Bindings::copy_input(std::uint32_t slot, std::span<const std::byte> bytes) {
  bind_copy(slot);
  write_buffer(inputs_[slot], 0, bytes);
}

void Bindings::bind_input(std::string_view name, std::span<const std::byte> bytes) {
  const auto slots = input_slots_.find(name);
  if (slots == input_slots_.end()) return;  // nothing reads it
  for (const std::uint32_t s : slots->second) copy_input(s, bytes);
}

void Bindings::bind_input(std::string_view name, const View& view,
                          std::span<const std::byte> bytes) {
  const auto slots = input_slots_.find(name);
  if (slots == input_slots_.end()) return;
  for (const std::uint32_t s : slots->second) {
    Device& device = *plan_.slots[s].device;
    const bool as_it_lies = &view.buffer->device() == &device && is_contiguous(view.operand) &&
                            view.offset % device.alignment() == 0;
    if (as_it_lies) {
      bind(s, view.buffer, view.offset, plan_.slots[s].bytes);
    } else {
      copy_input(s, bytes);
    }
  }
}

void Bindings::bind_state(std::span<const std::uint32_t> slots, const StateUse& use) {
  for (const std::uint32_t s : slots) {
    if (plan_.slots[s].device == &use.buffer()->device()) {
      bind(s, use.buffer(), 0, use.buffer()->size());
      continue;
    }
    std::vector<std::byte> bytes(
        plan_.slots[s].bytes);  // a fed input that another device reads too
    read_buffer(use.buffer(), 0, bytes);
    copy_input(s, bytes);
  }
}

}  // namespace heddle
