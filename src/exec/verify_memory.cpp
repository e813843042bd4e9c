// Carries out a plan on paper, twice in a row: every byte that is read must have been written last
// by the value that the graph names, and long enough ago; what is written must be nobody's any
// more.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "exec/verify_bytes.h"

namespace heddle::verifier {

namespace {

constexpr ErrorCode kBroken = ErrorCode::backend;
constexpr std::uint32_t kNoSplit = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kAfterRun = std::numeric_limits<std::uint32_t>::max();

/// Which of a step's operands, for messages.
struct Part {
  const char* kind;
  std::optional<std::size_t> index = std::nullopt;
};
auto text_of(const Part& part) {
  return late(
      [part] { return part.index ? fmt::format("{} {}", part.kind, *part.index) : part.kind; });
}

/// Bytes [begin, end) of a memory that a step touches.
struct Range {
  std::uint32_t memory = 0;
  std::size_t begin = 0, end = 0;
};
bool overlap(const Range& a, const Range& b) {
  return a.memory == b.memory && a.begin < a.end && b.begin < b.end && a.begin < b.end &&
         b.begin < a.end;
}

class Simulation {
 public:
  Simulation(const Plan& plan, const ValueTrace& trace) : plan_(plan), trace_(trace) {
    for (const Slot& slot : plan.slots) add_memory(slot);
    share_fed_inputs();
    for (const Split& split : plan.splits) add_device(split.device);
    for (const Split& split : plan.feeds) add_device(split.device);
    submissions_.assign(devices_.size(), 0);
    epochs_.assign(devices_.size(), 0);
    find_splits();
    find_last_reads();
  }

  void check() {
    begin_loading();
    for (std::uint32_t i = 0; i < plan_.load.size(); ++i) load(i);
    check_loads_are_read();
    for (run_ = 0; run_ < 2; ++run_) run();
  }

 private:
  const Graph& graph() const { return plan_.placed.graph; }

  auto here() const {
    return late([this] { return "plan: " + to_string(plan_, now_.place); });
  }
  auto slot_name(std::uint32_t slot) const {
    return late([this, slot] { return describe_slot(plan_, slot); });
  }
  static auto name(ValueId value) {
    return late([value] { return describe(value); });
  }

  // ---- Memories and devices

  void add_memory(const Slot& slot) {
    memory_of_.push_back(static_cast<std::uint32_t>(memories_.size()));
    memories_.emplace_back(slot.bytes);
  }

  /// A fed input lies in its state's memory where it is on the state's device.
  void share_fed_inputs() {
    for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
      const Slot& input = plan_.slots[s];
      if (input.kind != SlotKind::input || !trace_.is_fed(input.name)) continue;
      for (std::uint32_t t = 0; t < plan_.slots.size(); ++t) {
        const Slot& state = plan_.slots[t];
        if (state.kind == SlotKind::state && state.name == input.name &&
            state.device == input.device) {
          memory_of_[s] = memory_of_[t];
        }
      }
    }
  }

  void add_device(Device* device) {
    if (std::find(devices_.begin(), devices_.end(), device) == devices_.end())
      devices_.push_back(device);
  }
  std::uint32_t index_of(Device* device) const {
    return static_cast<std::uint32_t>(std::find(devices_.begin(), devices_.end(), device) -
                                      devices_.begin());
  }

  void find_splits() {
    split_of_.assign(graph().nodes.size(), kNoSplit);
    for (std::uint32_t s = 0; s < plan_.splits.size(); ++s) {
      for (const PlannedStep& step : plan_.splits[s].steps) {
        if (const auto* launch = std::get_if<PlannedLaunch>(&step)) split_of_[launch->node] = s;
      }
    }
  }

  bool is_permanent(ValueId version) const {
    const Op& op = graph().node(version).op;
    return std::holds_alternative<Parameter>(op) || std::holds_alternative<Constant>(op) ||
           std::holds_alternative<Repack>(op);
  }
  Content content(ValueId version, std::size_t base) const {
    return {version, base, is_permanent(version) ? kEveryRun : run_};
  }

  Range range(const Location& location, ByteRange bytes) const {
    return {memory_of_[location.slot], location.offset + bytes.begin, location.offset + bytes.end};
  }
  Range workspace(const PlannedLaunch& launch) const {
    return {memory_of_[launch.workspace_slot], launch.workspace_offset,
            launch.workspace_offset + launch.workspace_bytes};
  }

  // ---- Last reads: the step, counted through a run, after which a memory's version may go

  using Reader = std::pair<std::uint32_t, ValueId>;  // memory, version

  void find_last_reads() {
    std::uint32_t step = 0;
    for (const auto* splits : {&plan_.splits, &plan_.feeds}) {
      for (const Split& split : *splits) {
        for (const PlannedStep& planned : split.steps) note_reads(planned, step++);
      }
    }
    for (const PlanOutput& output : plan_.outputs)
      note_read(output.location, output.value, kAfterRun);
    for (const Graph::Named& update : graph().state_updates) {
      for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
        const Slot& slot = plan_.slots[s];
        if (slot.kind != SlotKind::state || slot.name != update.name) continue;
        last_read_[{memory_of_[s], trace_[update.value].version}] = kAfterRun;
      }
    }
  }

  void note_reads(const PlannedStep& planned, std::uint32_t step) {
    if (const auto* launch = std::get_if<PlannedLaunch>(&planned)) {
      const GraphNode& node = graph().nodes[launch->node];
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        note_read(launch->inputs[i], node.inputs[i], step);
      if (!launch->extent) return;
      const auto extent = trace_.input(plan_.placed.extents[launch->node]);
      if (extent) note_read(*launch->extent, *extent, step);
    } else if (const auto* copy = std::get_if<PlannedCopy>(&planned)) {
      note_read(copy->from, copy->value, step);
    }
  }

  void note_read(const Location& location, ValueId value, std::uint32_t step) {
    if (location.slot >= memory_of_.size() || value.node >= graph().nodes.size())
      return;  // reported where it is used
    last_read_[{memory_of_[location.slot], trace_[value].version}] = step;
  }

  // ---- Loading

  void begin_loading() {
    for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
      const Slot& slot = plan_.slots[s];
      const bool holds_leaf = slot.kind == SlotKind::constant || slot.kind == SlotKind::parameter;
      if (!holds_leaf || std::holds_alternative<Repack>(graph().node(*slot.value).op)) continue;
      memories_[memory_of_[s]].write(0, slot.bytes, content(*slot.value, 0), std::nullopt);
    }
  }

  void load(std::uint32_t index) {
    const PlannedLaunch& launch = plan_.load[index];
    now_.place = {.step = index};
    Device* device = plan_.placed.placement[launch.node];
    check_location(launch.inputs[0], graph().nodes[launch.node].inputs[0], device, {"input", 0});
    check_location(launch.outputs[0], {launch.node, 0}, device, {"output", 0});
    const Slot& from = plan_.slots[launch.inputs[0].slot];
    const Slot& to = plan_.slots[launch.outputs[0].slot];
    require(from.kind == SlotKind::parameter && launch.inputs[0].offset == 0, kBroken,
            "{} reads {}, and not a whole parameter", here(), slot_name(launch.inputs[0].slot));
    require(to.kind == SlotKind::parameter && to.value == ValueId{launch.node, 0} &&
                launch.outputs[0].offset == 0,
            kBroken, "{} writes {}, and not its own packed form", here(),
            slot_name(launch.outputs[0].slot));
    check_content(range(launch.inputs[0], {0, launch.inputs[0].bytes}), launch.inputs[0],
                  graph().nodes[launch.node].inputs[0], {"input", 0});
    memories_[memory_of_[launch.outputs[0].slot]].write(0, to.bytes, content({launch.node, 0}, 0),
                                                        std::nullopt);
  }

  void check_loads_are_read() const {
    for (const PlannedLaunch& launch : plan_.load) {
      const Reader packed{memory_of_[launch.outputs[0].slot], {launch.node, 0}};
      require(last_read_.contains(packed), kBroken,
              "plan: {} is packed when loaded, but nothing reads it",
              describe(graph(), launch.node));
    }
  }

  // ---- A run

  void run() {
    begin_run();
    step_ = 0;
    const std::vector<std::uint32_t> before =
        submissions_;  // a run begins when the one before has ended
    std::vector<std::vector<std::uint32_t>> known(devices_.size(), before);
    std::vector<std::vector<std::uint32_t>> ends;
    for (std::uint32_t s = 0; s < plan_.splits.size(); ++s) {
      ends.push_back(run_split(plan_.splits[s], Place::Phase::split, s, known, ends));
    }
    for (std::uint32_t f = 0; f < plan_.feeds.size(); ++f) {
      run_split(plan_.feeds[f], Place::Phase::feed, f, known, ends);
    }
    for (const PlanOutput& output : plan_.outputs) check_output(output);
  }

  void begin_run() {
    for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
      const Slot& slot = plan_.slots[s];
      if (slot.kind == SlotKind::state) {
        begin_state(s);
      } else if (slot.kind == SlotKind::input && !shares_memory(s)) {
        const ValueId version = trace_[*trace_.input(slot.name)].version;
        memories_[memory_of_[s]].write(0, slot.bytes, content(version, 0), std::nullopt);
      }
    }
  }
  bool shares_memory(std::uint32_t slot) const { return memory_of_[slot] != slot; }

  /// What the run before left as the last version is what this one finds.
  void begin_state(std::uint32_t s) {
    const Slot& slot = plan_.slots[s];
    const Content found = content(*trace_.state(slot.name), 0);
    Bytes& memory = memories_[memory_of_[s]];
    if (run_ == 0) return memory.write(0, slot.bytes, found, std::nullopt);
    const std::optional<ValueId> update = last_version(slot.name);
    const Content left{update.value_or(found.version), 0, run_ - 1};
    memory.visit(0, slot.bytes, [&](std::size_t, Bytes::Segment& segment) {
      if (segment.content == left) segment.content = found;
    });
  }

  std::optional<ValueId> last_version(const std::string& state) const {
    for (const Graph::Named& update : graph().state_updates) {
      if (update.name == state) return trace_[update.value].version;
    }
    return std::nullopt;
  }

  /// Submissions of each device that are known to have ended when this one has.
  std::vector<std::uint32_t> run_split(const Split& split, Place::Phase phase, std::uint32_t index,
                                       std::vector<std::vector<std::uint32_t>>& known,
                                       const std::vector<std::vector<std::uint32_t>>& ends) {
    const std::uint32_t device = index_of(split.device);
    now_ = {device, submissions_[device]++, 0, {phase, index, 0, run_}};
    std::vector<std::uint32_t>& ended = known[device];
    for (const std::uint32_t wait : split.waits) {
      if (wait >= ends.size()) continue;  // reported by the check of the lists
      for (std::size_t d = 0; d < ended.size(); ++d) ended[d] = std::max(ended[d], ends[wait][d]);
    }
    ended_ = &ended;
    for (std::uint32_t i = 0; i < split.steps.size(); ++i) {
      now_.place.step = i;
      now_.epoch = epochs_[device];
      run_step(split, split.steps[i]);
      ++step_;
    }
    std::vector<std::uint32_t> after = ended;
    after[device] = submissions_[device];
    return after;
  }

  void run_step(const Split& split, const PlannedStep& planned) {
    if (std::holds_alternative<PlannedBarrier>(planned)) {
      ++epochs_[now_.device];
    } else if (const auto* launch = std::get_if<PlannedLaunch>(&planned)) {
      run_launch(split, *launch);
    } else {
      run_copy(split, std::get<PlannedCopy>(planned));
    }
  }

  // ---- Steps

  void run_launch(const Split& split, const PlannedLaunch& launch) {
    const GraphNode& node = graph().nodes[launch.node];
    const KernelTraits& traits = launch.kernel->traits();
    std::vector<Range> reads, writes;
    for (std::size_t i = 0; i < launch.inputs.size(); ++i) {
      const Part what{"input", i};
      check_location(launch.inputs[i], node.inputs[i], split.device, what);
      reads.push_back(checked_range(launch.inputs[i], traits.reads[i], what));
      check_content(reads.back(), launch.inputs[i], node.inputs[i], what);
    }
    check_extent(split, launch, reads);
    for (std::uint32_t o = 0; o < launch.outputs.size(); ++o) {
      const Part what{"output", o};
      check_location(launch.outputs[o], {launch.node, o}, split.device, what);
      check_target(launch, o);
      writes.push_back(checked_range(launch.outputs[o], traits.writes[o], what));
    }
    check_workspace(split, launch, writes);
    check_aliases(launch, reads, writes);
    touch(reads, writes, [&](std::size_t w) -> std::optional<Content> {
      if (w >= launch.outputs.size()) return std::nullopt;  // the workspace
      return content({launch.node, static_cast<std::uint32_t>(w)}, launch.outputs[w].offset);
    });
  }

  void run_copy(const Split& split, const PlannedCopy& copy) {
    require(copy.value.node < graph().nodes.size() && trace_[copy.value].version == copy.value,
            kBroken, "{} copies {}, which no kernel makes", here(), name(copy.value));
    check_location(copy.from, copy.value, split.device, {"the source"});
    require(copy.to.slot < plan_.slots.size(), kBroken, "{} goes to slot {} of {}", here(),
            copy.to.slot, plan_.slots.size());
    const Slot& to = plan_.slots[copy.to.slot];
    require(to.kind == SlotKind::staging && to.device != split.device && to.value == copy.value,
            kBroken, "{} goes to {}, which is not another device's staging slot for it", here(),
            slot_name(copy.to.slot));
    require(copy.to.offset == 0 && copy.to.bytes == copy.from.bytes && copy.to.bytes <= to.bytes &&
                copy.from.bytes == span_bytes(trace_[copy.value].operand),
            kBroken, "{} moves {} bytes to {} from offset {} on, of {} in {}", here(),
            copy.from.bytes, copy.to.bytes, copy.to.offset, to.bytes, slot_name(copy.to.slot));
    require(is_made_here(copy.value), kBroken, "{}: {} is not made in this split", here(),
            name(copy.value));
    const std::vector<Range> reads{range(copy.from, {0, copy.from.bytes})};
    check_content(reads[0], copy.from, copy.value, {"the source"});
    touch(reads, {range(copy.to, {0, copy.to.bytes})},
          [&](std::size_t) { return content(copy.value, 0); });
  }

  bool is_made_here(ValueId value) const {
    return now_.place.phase == Place::Phase::split && split_of_[value.node] == now_.place.split;
  }

  /// Reads and writes of one step, hazards first, then what they leave.
  template <class ContentOf>
  void touch(const std::vector<Range>& reads, const std::vector<Range>& writes,
             const ContentOf& content_of) {
    for (const Range& r : reads) check_read_order(r);
    for (const Range& w : writes) check_overwrite(w);
    for (const Range& r : reads) memories_[r.memory].read(r.begin, r.end, now_);
    for (std::size_t w = 0; w < writes.size(); ++w) {
      memories_[writes[w].memory].write(writes[w].begin, writes[w].end, content_of(w), now_);
    }
  }

  // ---- Where operands lie

  /// What kernels of a device made where the host sees it, or make for it there, is the CPU's too.
  static bool is_shared(const Slot& slot, const Device* device) {
    const bool made_in_runs = slot.kind == SlotKind::arena || slot.kind == SlotKind::output;
    return made_in_runs && device == &cpu_device() && slot.device->shares_host_memory();
  }

  void check_location(const Location& location, ValueId value, Device* device,
                      const Part& what) const {
    require(location.slot < plan_.slots.size(), kBroken, "{}: {} is in slot {} of {}", here(),
            text_of(what), location.slot, plan_.slots.size());
    const Slot& slot = plan_.slots[location.slot];
    require(slot.device == device || is_shared(slot, device), kBroken,
            "{}: {} ({}) is in {}, on the wrong device", here(), text_of(what), name(value),
            slot_name(location.slot));
    require(location.offset <= slot.bytes && location.bytes <= slot.bytes - location.offset,
            kBroken, "{}: {} ({}) is bytes {}..+{}, past the {} of {}", here(), text_of(what),
            name(value), location.offset, location.bytes, slot.bytes, slot_name(location.slot));
    require(location.offset >= trace_[value].offset, kBroken,
            "{}: {} ({}) is at offset {}, but {} bytes into its memory", here(), text_of(what),
            name(value), location.offset, trace_[value].offset);
  }

  Range checked_range(const Location& location, ByteRange bytes, const Part& what) const {
    require(bytes.begin <= bytes.end && bytes.end <= location.bytes, kBroken,
            "{}: its kernel touches bytes {}..{} of {}, which has {}", here(), bytes.begin,
            bytes.end, text_of(what), location.bytes);
    return range(location, bytes);
  }

  void check_extent(const Split& split, const PlannedLaunch& launch, std::vector<Range>& reads) {
    const std::string& name = plan_.placed.extents[launch.node];
    require(launch.extent.has_value() != name.empty(), kBroken,
            "{}: its rows are{} bounded by an input", here(), name.empty() ? " not" : "");
    if (!launch.extent) return;
    const auto input = trace_.input(name);
    require(input.has_value() && graph().spec(*input) == TensorSpec{DType::i32, {}}, kBroken,
            "{}: extent '{}' is no i32 scalar input", here(), name);
    check_location(*launch.extent, *input, split.device, {"the extent"});
    reads.push_back(checked_range(*launch.extent, {0, sizeof(std::int32_t)}, {"the extent"}));
    check_content(reads.back(), *launch.extent, *input, {"the extent"});
  }

  /// Outputs go to the arena or a slot of their own; a state's next version to where it was.
  void check_target(const PlannedLaunch& launch, std::uint32_t o) const {
    const GraphNode& node = graph().nodes[launch.node];
    const Location& to = launch.outputs[o];
    const Slot& slot = plan_.slots[to.slot];
    if (o == 0 && writes_state(node.op)) {
      const Location& from = launch.inputs[0];
      const ValueId chain = trace_.chain({launch.node, 0});
      require(to.slot == from.slot && to.offset == from.offset, kBroken,
              "{}: the next version of {} must be written in place, not to {}", here(), name(chain),
              slot_name(to.slot));
      const auto* state = std::get_if<StateRef>(&graph().node(chain).op);
      require(
          !state || (slot.kind == SlotKind::state && slot.name == state->name && to.offset == 0),
          kBroken, "{}: state '{}' is written in {}", here(), state ? state->name : "",
          slot_name(to.slot));
      return;
    }
    const bool own =
        slot.kind == SlotKind::output && slot.value == ValueId{launch.node, o} && to.offset == 0;
    require(own || slot.kind == SlotKind::arena, kBroken, "{}: output {} is written to {}", here(),
            o, slot_name(to.slot));
    require(to.offset % slot.device->alignment() == 0, kBroken,
            "{}: output {} is at offset {}, not a multiple of {}", here(), o, to.offset,
            slot.device->alignment());
  }

  void check_workspace(const Split& split, const PlannedLaunch& launch,
                       std::vector<Range>& writes) const {
    require(launch.workspace_bytes == launch.kernel->traits().workspace_bytes, kBroken,
            "{}: {} bytes of workspace, its kernel needs {}", here(), launch.workspace_bytes,
            launch.kernel->traits().workspace_bytes);
    if (launch.workspace_bytes == 0) return;
    require(launch.workspace_slot < plan_.slots.size(), kBroken,
            "{}: its workspace is in slot {} of {}", here(), launch.workspace_slot,
            plan_.slots.size());
    const Slot& slot = plan_.slots[launch.workspace_slot];
    require(slot.kind == SlotKind::arena && slot.device == split.device, kBroken,
            "{}: its workspace is in {}, on the wrong device or no arena", here(),
            slot_name(launch.workspace_slot));
    require(launch.workspace_offset <= slot.bytes &&
                launch.workspace_bytes <= slot.bytes - launch.workspace_offset &&
                launch.workspace_offset % slot.device->alignment() == 0,
            kBroken, "{}: its workspace is bytes {}..+{} of {} bytes in {}, at multiples of {}",
            here(), launch.workspace_offset, launch.workspace_bytes, slot.bytes,
            slot_name(launch.workspace_slot), slot.device->alignment());
    writes.push_back(workspace(launch));
  }

  // ---- In place

  void check_aliases(const PlannedLaunch& launch, const std::vector<Range>& reads,
                     const std::vector<Range>& writes) const {
    for (std::size_t w = 0; w < writes.size(); ++w) {
      for (std::size_t v = 0; v < w; ++v) {
        require(!overlap(writes[w], writes[v]), kBroken, "{}: {} overlaps output {}", here(),
                named(launch, w), v);
      }
      for (std::size_t r = 0; r < reads.size(); ++r) {
        if (overlap(writes[w], reads[r])) check_alias(launch, w, r);
      }
    }
    for (const KernelTraits::Alias& alias : launch.kernel->traits().aliases) {
      if (!alias.required) continue;
      const Location &to = launch.outputs[alias.output], &from = launch.inputs[alias.input];
      require(to.slot == from.slot && to.offset == from.offset, kBroken,
              "{}: output {} must be the memory of input {}", here(), alias.output, alias.input);
    }
  }

  static std::string named(const PlannedLaunch& launch, std::size_t write) {
    return write < launch.outputs.size() ? fmt::format("output {}", write) : "its workspace";
  }

  void check_alias(const PlannedLaunch& launch, std::size_t write, std::size_t read) const {
    require(write < launch.outputs.size() && read < launch.inputs.size(), kBroken,
            "{}: {} overlaps what it reads", here(), named(launch, write));
    const Location &to = launch.outputs[write], &from = launch.inputs[read];
    const auto& aliases = launch.kernel->traits().aliases;
    const bool declared =
        std::any_of(aliases.begin(), aliases.end(), [&](const KernelTraits::Alias& alias) {
          return alias.output == write && alias.input == read;
        });
    const bool same =
        from.offset == to.offset && from.bytes == to.bytes && is_contiguous(from.operand);
    require(declared && same, kBroken,
            "{}: output {} overlaps input {}, which its kernel does not allow", here(), write,
            read);
  }

  // ---- What is read and overwritten

  void check_content(const Range& r, const Location& location, ValueId value, const Part& what) {
    const TracedValue& traced = trace_[value];
    const Content expected = content(traced.version, location.offset - traced.offset);
    memories_[r.memory].visit(r.begin, r.end, [&](std::size_t begin, Bytes::Segment& segment) {
      if (segment.content == expected) return;
      fail(kBroken, "{}: {} ({}): bytes {}..{} of {} hold {}{}", here(), text_of(what), name(value),
           begin, segment.end, slot_name(location.slot), in_words(segment, expected),
           segment.written ? ", written in " + to_string(plan_, segment.written->place) : "");
    });
  }

  static std::string in_words(const Bytes::Segment& segment, const Content& expected) {
    if (!segment.content) return "nothing that was written for it";
    const Content& found = *segment.content;
    if (found.version != expected.version) {
      return fmt::format("{}, not {}", describe(found.version), describe(expected.version));
    }
    if (found.run != expected.run) return "what an earlier run left there";
    return fmt::format("it from offset {} on, not from {}", found.base, expected.base);
  }

  bool is_before(const Moment& then) const {
    if (then.device == now_.device) return then.epoch < now_.epoch;
    return then.submission < (*ended_)[then.device];
  }

  void require_before(const Moment& then, const char* did, const Range& r) const {
    if (is_before(then)) return;
    const bool same = then.device == now_.device;
    fail(kBroken, "{}: nothing orders it after {}, which {} bytes {}..{} of {}; it needs a {}",
         here(), to_string(plan_, then.place), did, r.begin, r.end, slot_name(slot_of(r.memory)),
         same ? "barrier" : "wait");
  }

  std::uint32_t slot_of(std::uint32_t memory) const { return memory; }

  /// Rows of a state are chosen by data, and its buffer may outgrow its spec: all of it counts.
  Range for_order(const Range& r) const {
    const bool state = plan_.slots[slot_of(r.memory)].kind == SlotKind::state;
    return state && r.begin < r.end ? Range{r.memory, 0, memories_[r.memory].size()} : r;
  }

  void check_read_order(const Range& r) {
    const Range all = for_order(r);
    memories_[r.memory].visit(all.begin, all.end, [&](std::size_t, Bytes::Segment& segment) {
      if (segment.written) require_before(*segment.written, "writes", r);
    });
  }

  void check_overwrite(const Range& w) {
    const Range all = for_order(w);
    memories_[w.memory].visit(all.begin, all.end, [&](std::size_t, Bytes::Segment& segment) {
      if (segment.written) require_before(*segment.written, "writes", w);
      for (const Moment& reader : segment.readers) require_before(reader, "reads", w);
    });
    memories_[w.memory].visit(w.begin, w.end, [&](std::size_t, Bytes::Segment& segment) {
      if (segment.content) check_dead(*segment.content, w);
    });
  }

  void check_dead(const Content& old, const Range& w) const {
    const auto last = last_read_.find({w.memory, old.version});
    const bool read_later = last != last_read_.end() && last->second > step_ && old.run == run_;
    if (!read_later) return;
    fail(kBroken, "{} overwrites {} in bytes {}..{} of {}, which is still to be read{}", here(),
         name(old.version), w.begin, w.end, slot_name(slot_of(w.memory)),
         last->second == kAfterRun ? " after the run" : "");
  }

  void check_output(const PlanOutput& output) {
    const TracedValue& traced = trace_[output.value];
    const Location& location = output.location;
    const Slot& slot = plan_.slots[location.slot];
    const std::string what = fmt::format("plan: output '{}'", output.name);
    require(location.operand == traced.operand && location.bytes == span_bytes(traced.operand),
            kBroken, "{} is {} of {} bytes, the graph says {}", what,
            heddle::to_string(location.operand), location.bytes, heddle::to_string(traced.operand));
    require(location.offset >= traced.offset && location.offset <= slot.bytes &&
                location.bytes <= slot.bytes - location.offset,
            kBroken, "{} is bytes {}..+{}, past the {} of {}", what, location.offset,
            location.bytes, slot.bytes, slot_name(location.slot));
    const Range r = range(location, {0, location.bytes});
    const Content expected = content(traced.version, location.offset - traced.offset);
    memories_[r.memory].visit(r.begin, r.end, [&](std::size_t begin, Bytes::Segment& segment) {
      if (segment.content == expected) return;
      fail(kBroken, "{} ({}): after run {}, bytes {}..{} of {} hold {}", what, name(output.value),
           run_, begin, segment.end, slot_name(location.slot), in_words(segment, expected));
    });
  }

  const Plan& plan_;
  const ValueTrace& trace_;
  std::vector<Bytes> memories_;           // the first of each is its slot's
  std::vector<std::uint32_t> memory_of_;  // slot -> memory
  std::vector<std::uint32_t> split_of_;   // node -> split
  std::vector<Device*> devices_;
  std::vector<std::uint32_t> submissions_, epochs_;  // by device
  std::map<Reader, std::uint32_t> last_read_;
  const std::vector<std::uint32_t>* ended_ = nullptr;  // by device: submissions known to have ended
  Moment now_;
  std::uint32_t run_ = 0, step_ = 0;
};

}  // namespace

void check_memory(const Plan& plan, const ValueTrace& trace) {
  Simulation(plan, trace).check();
}

}  // namespace heddle::verifier
