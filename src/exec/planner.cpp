// From a placed graph to a plan: where every value lies, what each split does, and what it waits
// for.
#include "exec/planner.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/settings.h"
#include "exec/plan.h"
#include "op/format.h"

namespace heddle {

namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

/// Memory that one kernel makes, and that later kernels may take over in place.
struct Storage {
  Device* device = nullptr;
  std::size_t bytes = 0;
  std::uint32_t first = 0, last = 0;  // launches between which it is alive
  std::optional<std::uint32_t> slot;  // an output slot; in the arena otherwise
  std::size_t offset = 0;
};

class Planner {
 public:
  explicit Planner(Isolated isolated)
      : memory_(std::move(isolated.memory)),
        plan_{.placed = std::move(isolated.placed)},
        last_use_(graph(), 0),
        storage_of_(graph(), kNever),
        output_slots_(graph(), kNever),
        leaf_slots_(graph(), kNever) {
    for (NodeId n = 0; n < graph().nodes.size(); ++n) {
      if (const auto* input = std::get_if<Input>(&graph().nodes[n].op))
        input_nodes_[input->name] = n;
    }
  }

  Plan make() {
    plan_.generations = plan_.placed.generations;
    for (Device* device : plan_.placed.placement) {
      if (device) plan_.generations.try_emplace(device, device->generation());
    }
    order_launches();
    assign_outputs();
    find_lifetimes();
    make_storages();
    lay_out_arenas();
    emit_load();
    emit_splits();
    emit_outputs();
    return std::move(plan_);
  }

 private:
  const Graph& graph() const { return plan_.placed.graph; }
  Device* device_of(NodeId node) const { return plan_.placed.placement[node]; }
  const Memory& memory(ValueId value) const { return memory_[value]; }
  const Memory& root_memory(ValueId value) const { return memory(memory(value).root); }

  // ---- Order

  struct Run {  // a split in the making: launches [begin, end)
    Device* device;
    std::uint32_t begin, end;
  };

  bool is_load(NodeId node) const { return std::holds_alternative<Repack>(graph().nodes[node].op); }

  /// Numbers the launches in graph order, feeds last, and cuts them into runs on one device.
  void order_launches() {
    launch_of_.assign(graph().nodes.size(), kNever);
    std::vector<NodeId> feeds;
    for (NodeId n = 0; n < graph().nodes.size(); ++n) {
      const GraphNode& node = graph().nodes[n];
      if (node.dead || !device_of(n)) continue;
      if (is_load(n)) {
        loads_.push_back(n);
      } else if (std::holds_alternative<Feed>(node.op)) {
        feeds.push_back(n);
      } else {
        launches_.push_back(n);
      }
    }
    cut_into_runs(0, runs_);
    const auto first_feed = static_cast<std::uint32_t>(launches_.size());
    launches_.insert(launches_.end(), feeds.begin(), feeds.end());
    cut_into_runs(first_feed, feed_runs_);
    for (std::uint32_t i = 0; i < launches_.size(); ++i) launch_of_[launches_[i]] = i;
  }

  void cut_into_runs(std::uint32_t from, std::vector<Run>& runs) const {
    for (std::uint32_t i = from; i < launches_.size(); ++i) {
      Device* device = device_of(launches_[i]);
      if (runs.empty() || runs.back().device != device) runs.push_back({device, i, i});
      runs.back().end = i + 1;
    }
  }

  std::uint32_t run_end(std::uint32_t launch) const {
    for (const auto* runs : {&runs_, &feed_runs_}) {
      const auto it = std::upper_bound(runs->begin(), runs->end(), launch,
                                       [](std::uint32_t l, const Run& r) { return l < r.end; });
      if (it != runs->end() && it->begin <= launch) return it->end;
    }
    fail(ErrorCode::backend, "planner: launch {} is in no split", launch);
  }

  // ---- Slots

  std::uint32_t add_slot(Slot slot) {
    plan_.slots.push_back(std::move(slot));
    return static_cast<std::uint32_t>(plan_.slots.size() - 1);
  }

  /// The slot of a leaf (or of a repacked parameter) on `device`; each device that reads one has
  /// its own.
  std::uint32_t leaf_slot(ValueId leaf, Device* device) {
    std::uint32_t& first = leaf_slots_[leaf];
    if (first != kNever && plan_.slots[first].device == device) return first;
    if (first == kNever) return first = make_leaf_slot(leaf, device);
    const auto [other, is_new] = more_leaf_slots_.try_emplace({leaf, device}, kNever);
    if (is_new) other->second = make_leaf_slot(leaf, device);
    return other->second;
  }

  std::uint32_t make_leaf_slot(ValueId leaf, Device* device) {
    const Op& op = graph().node(leaf).op;
    Slot slot{.kind = SlotKind::parameter, .device = device, .operand = memory(leaf).operand};
    slot.bytes = span_bytes(slot.operand);
    slot.value = leaf;
    if (const auto* input = std::get_if<Input>(&op)) {
      slot.kind = SlotKind::input;
      slot.name = input->name;
    } else if (const auto* state = std::get_if<StateRef>(&op)) {
      slot.kind = SlotKind::state;
      slot.name = state->name;
    } else if (std::holds_alternative<Constant>(op)) {
      slot.kind = SlotKind::constant;
    } else {
      slot.name = parameter_name(leaf);
    }
    return add_slot(std::move(slot));
  }

  std::string parameter_name(ValueId value) const {
    const GraphNode* node = &graph().node(value);
    while (!node->inputs.empty()) node = &graph().node(node->inputs[0]);
    return std::get<Parameter>(node->op).name;
  }

  /// Results are written straight into slots of their own, since they outlive the run.
  void assign_outputs() {
    for (const Graph::Named& output : graph().outputs) {
      const ValueId root = memory(output.value).root;
      if (launch_of_[root.node] == kNever || output_slots_[root] != kNever) continue;
      Slot slot{.kind = SlotKind::output,
                .device = device_of(root.node),
                .name = output.name,
                .operand = memory(root).operand};
      slot.bytes = span_bytes(slot.operand);
      slot.value = root;
      output_slots_[root] = add_slot(std::move(slot));
    }
  }

  // ---- Lifetimes

  void extend(ValueId root, std::uint32_t launch) {
    auto& last = last_use_[root];
    last = std::max(last, launch);
  }

  /// Whether kernels of `device` work in memory of `other`: the CPU in what it shares.
  static bool reaches(const Device* device, const Device* other) {
    return device == other || (device == &cpu_device() && other->shares_host_memory());
  }

  /// The last launch that touches each root. What leaves for another device lives to its split's
  /// end, where the copies are; what two devices touch, to the end of the run: neither's later work
  /// is ordered after the other's.
  void find_lifetimes() {
    find_homes();
    for (std::uint32_t i = 0; i < launches_.size(); ++i) {
      const GraphNode& node = graph().nodes[launches_[i]];
      for (std::uint32_t o = 0; o < node.outputs.size(); ++o)
        extend(memory({launches_[i], o}).root, i);
      for (const ValueId input : node.inputs) {
        const ValueId root = memory(input).root;
        if (launch_of_[root.node] == kNever) continue;
        const Device *home = home_of(root), *reader = device_of(launches_[i]);
        if (!reaches(reader, home)) {
          extend(root, run_end(launch_of_[root.node]));
        } else {
          extend(root, reader == device_of(root.node) ? i : after_all());
        }
      }
    }
  }

  std::uint32_t after_all() const { return static_cast<std::uint32_t>(launches_.size()); }

  /// What the CPU makes for one device that shares its memory, it writes there.
  void find_homes() {
    std::map<ValueId, std::vector<Device*>> readers;
    for (const NodeId n : launches_) {
      const bool writes = writes_state(graph().nodes[n].op);
      for (const ValueId input : graph().nodes[n].inputs) {
        const ValueId root = memory(input).root;
        if (launch_of_[root.node] == kNever || device_of(root.node) != &cpu_device()) continue;
        if (device_of(n) != &cpu_device()) add_once(readers[root], device_of(n));
        if (writes && input == graph().nodes[n].inputs[0]) readers[root].push_back(nullptr);
      }
    }
    for (const auto& [root, devices] : readers) {
      const bool only_one = devices.size() == 1 && devices[0];
      if (only_one && devices[0]->shares_host_memory() && output_slots_[root] == kNever)
        homes_[root] = devices[0];
    }
  }

  /// Whose memory a value that a kernel makes lies in.
  Device* home_of(ValueId root) const {
    const auto other = homes_.find(root);
    return other == homes_.end() ? device_of(root.node) : other->second;
  }

  // ---- Memory

  void make_storages() {
    for (std::uint32_t i = 0; i < launches_.size(); ++i) {
      const NodeId n = launches_[i];
      const GraphNode& node = graph().nodes[n];
      kernels_.push_back(kernel_of(n));
      std::vector<std::uint32_t> taken;
      for (std::uint32_t o = 0; o < node.outputs.size(); ++o) {
        const ValueId value{n, o};
        if (memory(value).root != value) continue;  // a state's next version
        const std::uint32_t storage = storage_for(value, i, taken);
        storage_of_[value] = storage;
        storages_[storage].last = std::max(storages_[storage].last, last_use_[value]);
        taken.push_back(storage);
      }
    }
  }

  std::uint32_t storage_for(ValueId value, std::uint32_t launch,
                            const std::vector<std::uint32_t>& taken) {
    const std::uint32_t slot = output_slots_[value];
    const bool here = home_of(value) == device_of(value.node);
    if (slot == kNever && here) {
      if (const auto donor = in_place(value, launch, taken)) return *donor;
    }
    Storage storage{.device = home_of(value),
                    .bytes = span_bytes(memory(value).operand),
                    .first = here ? launch : 0,
                    .last = here ? launch : after_all()};
    if (slot != kNever) storage.slot = slot;
    storages_.push_back(storage);
    return static_cast<std::uint32_t>(storages_.size() - 1);
  }

  /// The storage of an input that dies at this launch and that the kernel lets the output take
  /// over.
  std::optional<std::uint32_t> in_place(ValueId value, std::uint32_t launch,
                                        const std::vector<std::uint32_t>& taken) const {
    const GraphNode& node = graph().nodes[value.node];
    for (const KernelTraits::Alias& alias : kernels_[launch]->traits().aliases) {
      if (alias.output != value.output || alias.required) continue;
      const Memory& input = memory(node.inputs[alias.input]);
      const std::uint32_t candidate = storage_of_[input.root];
      if (candidate == kNever) continue;
      const Storage& storage = storages_[candidate];
      const auto readers = std::count_if(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
        return storage_of_[memory(v).root] == candidate;
      });
      const bool whole = input.offset == 0 && is_contiguous(input.operand) &&
                         span_bytes(input.operand) == storage.bytes &&
                         span_bytes(memory(value).operand) == storage.bytes;
      if (!storage.slot && storage.device == device_of(value.node) && storage.last == launch &&
          whole && readers == 1 &&
          std::find(taken.begin(), taken.end(), candidate) == taken.end()) {
        return candidate;
      }
    }
    return std::nullopt;
  }

  std::shared_ptr<const Kernel> kernel_of(NodeId n) const {
    const auto& known = plan_.placed.kernels;
    if (n < known.size() && known[n]) return known[n];
    const GraphNode& node = graph().nodes[n];
    std::vector<OperandSpec> inputs, outputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId v : node.inputs) inputs.push_back(memory(v).operand);
    for (std::uint32_t o = 0; o < node.outputs.size(); ++o)
      outputs.push_back(memory({n, o}).operand);
    Prepared prepared = device_of(n)->prepare_cached(node.op, inputs, outputs);
    require(bool(prepared), ErrorCode::backend,
            "planner: {} was placed on {}, which refuses it: {}", node.op, device_of(n)->name(),
            prepared.reason);
    return std::move(prepared.kernel);
  }

  /// One arena a device that needs one, for storages and workspaces alike.
  void lay_out_arenas() {
    workspace_offsets_.assign(launches_.size(), 0);
    std::vector<Device*> devices;
    for (const NodeId n : launches_) {
      if (std::find(devices.begin(), devices.end(), device_of(n)) == devices.end()) {
        devices.push_back(device_of(n));
      }
    }
    for (Device* device : devices) lay_out_arena(device);
  }

  void lay_out_arena(Device* device) {
    std::vector<ArenaItem> items;
    std::vector<std::size_t*> offsets;
    for (Storage& s : storages_) {
      if (s.device != device || s.slot || s.bytes == 0) continue;
      items.push_back({s.bytes, s.first, s.last});
      offsets.push_back(&s.offset);
    }
    for (std::uint32_t i = 0; i < launches_.size(); ++i) {
      const std::size_t bytes = kernels_[i]->traits().workspace_bytes;
      if (device_of(launches_[i]) != device || bytes == 0) continue;
      items.push_back({bytes, i, i});
      offsets.push_back(&workspace_offsets_[i]);
    }
    const std::size_t alignment = std::max(device->alignment(), cpu_device().alignment());
    const ArenaLayout layout = lay_out(items, alignment);
    for (std::size_t i = 0; i < items.size(); ++i) *offsets[i] = layout.offsets[i];
    Slot slot{.kind = SlotKind::arena, .device = device};
    slot.bytes = layout.bytes;
    arena_slots_[device] = add_slot(std::move(slot));
    plan_.arenas.push_back({device, arena_slots_[device], layout.bytes, layout.lower_bound});
  }

  // ---- Locations

  /// Where `device` sees the value: where it was made, if it reaches that, in a leaf's slot, or in
  /// a staging slot.
  Location locate(ValueId value, Device* device) {
    const Memory& m = memory(value);
    Location location{.offset = m.offset, .bytes = span_bytes(m.operand), .operand = m.operand};
    const std::uint32_t made = storage_of_[m.root];
    if (made == kNever) {
      location.slot = leaf_slot(m.root, device);
    } else if (const Storage& s = storages_[made]; !reaches(device, s.device)) {
      location.slot = staging_slot(m.root, device);
    } else if (s.slot) {
      location.slot = *s.slot;
    } else {
      location.slot = arena_slots_.at(s.device);
      location.offset += s.offset;
    }
    return location;
  }

  std::uint32_t staging_slot(ValueId root, Device* device) {
    const auto [it, is_new] = staging_slots_.try_emplace({root, device}, 0);
    if (!is_new) return it->second;
    Slot slot{.kind = SlotKind::staging, .device = device, .operand = memory(root).operand};
    slot.bytes = span_bytes(slot.operand);
    slot.value = root;
    return it->second = add_slot(std::move(slot));
  }

  PlannedLaunch launch(NodeId n, std::shared_ptr<const Kernel> kernel, Device* device) {
    const GraphNode& node = graph().nodes[n];
    PlannedLaunch planned{.node = n, .kernel = std::move(kernel)};
    planned.inputs.reserve(node.inputs.size());
    planned.outputs.reserve(node.outputs.size());
    for (const ValueId v : node.inputs) planned.inputs.push_back(locate(v, device));
    for (std::uint32_t o = 0; o < node.outputs.size(); ++o)
      planned.outputs.push_back(locate({n, o}, device));
    return planned;
  }

  std::optional<Location> extent_of(NodeId n, Device* device) {
    const std::string& name = plan_.placed.extents[n];
    if (name.empty()) return std::nullopt;
    const auto input = input_nodes_.find(name);
    require(input != input_nodes_.end(), ErrorCode::backend, "planner: extent '{}' names no input",
            name);
    return locate({input->second, 0}, device);
  }

  // ---- Steps

  void emit_load() {
    for (const NodeId n : loads_) plan_.load.push_back(launch(n, kernel_of(n), device_of(n)));
  }

  void emit_splits() {
    for (const Run& run : runs_) emit_split(run, plan_.splits);
    for (const Run& run : feed_runs_) {
      emit_split(run, plan_.feeds);
      plan_.feeds.back().waits.clear();  // feeds happen only if the whole run succeeded
      for (std::uint32_t s = 0; s < runs_.size(); ++s) plan_.feeds.back().waits.push_back(s);
    }
    emit_copies();
    insert_barriers(plan_);
  }

  /// The launch that makes the value, views looked through; kNever for leaves.
  std::uint32_t maker(ValueId value) const { return launch_of_[memory(value).source.node]; }

  void emit_split(const Run& run, std::vector<Split>& splits) {
    Split split{.device = run.device};
    split.steps.reserve(run.end - run.begin);
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      PlannedLaunch planned = launch(launches_[i], kernels_[i], run.device);
      planned.workspace_bytes = kernels_[i]->traits().workspace_bytes;
      planned.workspace_slot = arena_slots_.at(run.device);
      planned.workspace_offset = workspace_offsets_[i];
      planned.extent = extent_of(launches_[i], run.device);
      split.steps.emplace_back(std::move(planned));
      for (const ValueId v : graph().nodes[launches_[i]].inputs) {
        const ValueId source = memory(v).source;
        const std::uint32_t made = maker(v);
        if (made == kNever || made >= run.begin) continue;
        add_once(split.inputs, source);
        export_from(made, source);
        const std::uint32_t from = split_of(made);
        if (from < runs_.size() && runs_[from].device != run.device) add_once(split.waits, from);
      }
    }
    splits.push_back(std::move(split));
  }

  std::uint32_t split_of(std::uint32_t launch) const {
    const auto it = std::upper_bound(runs_.begin(), runs_.end(), launch,
                                     [](std::uint32_t l, const Run& r) { return l < r.end; });
    return static_cast<std::uint32_t>(it - runs_.begin());
  }

  void export_from(std::uint32_t made, ValueId source) {
    const std::uint32_t from = split_of(made);
    if (from < plan_.splits.size()) add_once(plan_.splits[from].outputs, source);
  }

  template <class T>
  static void add_once(std::vector<T>& list, const T& item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }

  /// Each staged value leaves at the end of the split that made it.
  void emit_copies() {
    for (const auto& [key, slot] : staging_slots_) {
      const ValueId root = key.first;
      Split& from = plan_.splits[split_of(launch_of_[root.node])];
      PlannedCopy copy{.value = root, .from = locate(root, device_of(root.node))};
      copy.to = {.slot = slot, .bytes = copy.from.bytes, .operand = copy.from.operand};
      from.steps.emplace_back(std::move(copy));
    }
  }

  // ---- Results

  void emit_outputs() {
    for (const Graph::Named& output : graph().outputs) {
      const std::uint32_t made = maker(output.value);
      if (made != kNever) export_from(made, memory(output.value).source);
      const ValueId root = memory(output.value).root;
      Device* device = launch_of_[root.node] != kNever ? device_of(root.node) : leaf_device(root);
      plan_.outputs.push_back({output.name, output.value, locate(output.value, device)});
    }
    for (const Graph::Named& update : graph().state_updates) {
      const std::uint32_t made = maker(update.value);
      if (made != kNever) export_from(made, memory(update.value).source);
    }
  }

  /// A device that already has the leaf, or the CPU.
  Device* leaf_device(ValueId leaf) const {
    const std::uint32_t slot = leaf_slots_[leaf];
    return slot == kNever ? &cpu_device() : plan_.slots[slot].device;
  }

  PerValue<Memory> memory_;
  Plan plan_;
  std::map<std::string, NodeId> input_nodes_;
  std::vector<NodeId> launches_, loads_;
  std::vector<std::uint32_t> launch_of_;  // node -> launch
  std::vector<Run> runs_, feed_runs_;
  std::vector<std::shared_ptr<const Kernel>> kernels_;  // by launch
  std::vector<std::size_t> workspace_offsets_;          // by launch
  std::vector<Storage> storages_;
  std::map<ValueId, Device*> homes_;  // of roots that lie elsewhere
  // By root, kNever where there is none:
  PerValue<std::uint32_t> last_use_;  // launch
  PerValue<std::uint32_t> storage_of_, output_slots_;
  PerValue<std::uint32_t> leaf_slots_;  // on the first device that reads the leaf
  std::map<std::pair<ValueId, Device*>, std::uint32_t> more_leaf_slots_;  // on others
  std::map<std::pair<ValueId, Device*>, std::uint32_t> staging_slots_;
  std::map<Device*, std::uint32_t> arena_slots_;
};

}  // namespace

Plan make_plan(PlacedGraph placed) {
  Plan plan = Planner(isolate_states(std::move(placed))).make();
  plan.overwrites = find_overwrites(plan);
  return plan;
}

bool verifies(const CompileOptions& options) {
#ifdef HEDDLE_DEBUG
  return options.verify.value_or(true);
#else
  return options.verify.value_or(settings().verify);
#endif
}

Plan plan_graph(Graph graph, const CompileOptions& options) {
  PassOptions passes;
  passes.devices = options.devices.empty() ? default_devices() : options.devices;
  passes.pin = options.pin;
  passes.fuse = options.fuse && settings().fuse;
  passes.fuse_elements = options.fuse_elements;
  passes.repack = options.repack && settings().repack;
  passes.strict_pins = options.strict_pins;
  passes.check_result = verifies(options);
  return make_plan(prepare_graph(std::move(graph), passes));
}

}  // namespace heddle
