#include "heddle/executable.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "array/node.h"
#include "array/own.h"
#include "array/ownership.h"
#include "base/check.h"
#include "base/failure.h"
#include "base/team.h"
#include "exec/bindings.h"
#include "exec/held_states.h"
#include "exec/inputs.h"
#include "exec/observed_plan.h"
#include "exec/observed_run.h"
#include "exec/planner.h"
#include "exec/retired.h"
#include "exec/transfer.h"
#include "heddle/ops.h"

namespace heddle {

namespace {

/// The end of a run: of each of its submissions, or the error that stopped it.
class RunCompletion final : public Completion {
 public:
  RunCompletion(std::vector<Ref<Completion>> parts, std::shared_ptr<const Failure> failure)
      : parts_(std::move(parts)), failure_(std::move(failure)) {}

  bool done() const noexcept override {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->done(); });
  }

  void wait(std::chrono::nanoseconds timeout) override {
    std::exception_ptr first;
    for (const Ref<Completion>& part : parts_) {
      try {
        part->wait(timeout);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    if (failure_) failure_->raise();
    if (first) std::rethrow_exception(first);
  }

 private:
  const std::vector<Ref<Completion>> parts_;
  const std::shared_ptr<const Failure> failure_;
};

/// What clones share.
struct Compiled {
  Plan plan;
  DescribedOnce described;
  std::vector<StateUser> states;
  InputChecker inputs;

  explicit Compiled(Plan p)
      : plan(std::move(p)), states(state_users(plan)), inputs(plan.placed.graph, states) {}
};

/// What one Executable has on its devices, until one of them is lost.
struct OnDevices {
  Bindings bindings;
  std::vector<std::unique_ptr<Recording>> recordings, feed_recordings;
  NodeRecordings node_recordings;  // of runs that somebody watched

  explicit OnDevices(const Plan& plan) : bindings(plan) {
    for (const Split& split : plan.splits) recordings.push_back(record(plan, split));
    for (const Split& split : plan.feeds) feed_recordings.push_back(record(plan, split));
  }
};

/// Copies the value out of its slot into memory of its own.
Array copy_out(const Ref<Buffer>& buffer, std::size_t offset, const OperandSpec& operand) {
  std::vector<std::byte> bytes(span_bytes(operand));
  read_buffer(buffer, offset, bytes);
  if (is_contiguous(operand)) return Array::from_bytes(operand.spec, bytes);
  View held{allocate_host(bytes.size()), 0, operand};
  if (!bytes.empty()) std::memcpy(held.host(), bytes.data(), bytes.size());
  Array strided = Array::from_view(std::move(held));
  return Array::from_bytes(operand.spec, strided.to_bytes());
}

/// Evaluated, with their bytes where the host sees them.
class HostArrays {
 public:
  explicit HostArrays(std::span<const NamedArray> arrays) {
    std::vector<Array> all;
    for (const NamedArray& named : arrays) all.push_back(named.array);
    eval(std::span<const Array>(all));
    copies_.reserve(arrays.size());
    for (const NamedArray& named : arrays) {
      views_.push_back(named.array.view());
      tensors_.push_back({named.name, {named.array.spec(), bytes_of(named.array, views_.back())}});
    }
  }
  std::span<const NamedTensor> tensors() const { return tensors_; }
  const View& view(std::size_t i) const { return views_[i]; }

  /// Whether nobody but `named`, the array that was the `i`th, holds it or its memory.
  bool is_unshared(std::size_t i, const NamedArray& named) const {
    if (NoDonation::active()) return false;
    constexpr int kHandles = 2;  // the node's, and that of `views_`
    return proven(OwnershipCheck::node_handles, named.array.node()->use_count() == 1) &&
           proven(OwnershipCheck::buffer_handles, views_[i].buffer->use_count() == kHandles);
  }

 private:
  std::span<const std::byte> bytes_of(const Array& array, const View& view) {
    if (view.buffer->host() && is_contiguous(view.operand)) {
      view.buffer->wait_for_writes();
      return {view.host(), array.nbytes()};
    }
    return copies_.emplace_back(array.to_bytes());
  }

  std::vector<View> views_;
  std::vector<std::vector<std::byte>> copies_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace

struct Executable::Impl {
  std::shared_ptr<const Compiled> compiled;
  Ref<Parameters> parameters;
  std::vector<Ref<State>> states;  // of compiled->states, each null until it is asked for
  std::shared_ptr<OnDevices> there;

  mutable std::mutex mutex;  // one run at a time
  Ref<Completion> last;      // the last run, if there was one

  Impl(std::shared_ptr<const Compiled> c, Ref<Parameters> p)
      : compiled(std::move(c)),
        parameters(std::move(p)),
        states(compiled->states.size()),
        there(std::make_shared<OnDevices>(compiled->plan)) {}
  /// Devices may still be working on this run's buffers, which recordings reach through tables.
  ~Impl() {
    try {
      end_last_run();
    } catch (...) {  // a destructor reports nothing; the run's completion holds the error
    }
    put_aside();
  }

  const Plan& plan() const { return compiled->plan; }

  std::size_t state_index(std::string_view name) const {
    const std::vector<StateUser>& users = compiled->states;
    const auto it = std::ranges::find(users, name, &StateUser::name);
    require(it != users.end(), ErrorCode::invalid_argument, "there is no state '{}' in this graph",
            name);
    return static_cast<std::size_t>(it - users.begin());
  }

  void make_missing_states() {
    for (std::size_t i = 0; i < states.size(); ++i) {
      const StateUser& user = compiled->states[i];
      if (!states[i]) states[i] = make_ref<State>(*user.device, user.spec);
    }
  }

  /// Returns when the last run has ended, or will do no harm: a device that it hangs on is lost.
  void end_last_run() const {
    if (!last || last->done()) return;
    try {
      last->wait();
    } catch (const Error& e) {
      const bool lost = !there || there->bindings.is_outdated();
      if (!last->done() && !lost) throw;  // still out there: its memory may not be touched
    }
  }

  /// Drops what is on the devices, at once or when they are done with it.
  void put_aside() {
    if (there && last && !last->done()) {
      keep_until_done(last, std::move(there));
    } else {
      drop_what_ended();
    }
    there = nullptr;
  }

  /// Before a run: makes anew what went with a device.
  void return_to_devices() {
    end_last_run();
    if (there && !there->bindings.is_outdated()) return;
    put_aside();
    forget_results();
    there = std::make_shared<OnDevices>(plan());
  }

  /// Of a run that ended well.
  void forget_results() {
    if (!last || !last->done()) return;
    try {
      last->wait();
    } catch (const Error&) {
      return;
    }
    const Failure lost{ErrorCode::device_lost,
                       "the outputs of the last run went with a device that was lost: run again"};
    last = make_ref<RunCompletion>(std::vector<Ref<Completion>>(),
                                   std::make_shared<const Failure>(lost));
  }

  /// Null if nobody watches what this thread runs.
  std::unique_ptr<WatchedRun> watch(std::span<const NamedTensor> inputs) const {
    Watchers watchers = watchers_now();
    if (watchers.empty()) return nullptr;
    return std::make_unique<WatchedRun>(std::move(watchers), plan(), compiled->described.of(plan()),
                                        inputs);
  }

  void bind(std::span<const NamedTensor> inputs, const HeldStates& held) {
    Bindings& bindings = there->bindings;
    bindings.allocate();
    bindings.make_inputs();
    bindings.make_outputs();
    bind_lasting(bindings, held);
    for (const NamedTensor& input : inputs) bindings.bind_input(input.name, input.tensor.bytes);
  }

  /// Parameters and states.
  void bind_lasting(Bindings& bindings, const HeldStates& held) {
    bindings.bind_parameters(*parameters);
    for (const HeldStates::Held& state : held.all()) {
      bindings.bind_state(state.user->slots, state.use);
      bindings.bind_state(state.user->fed_slots, state.use);
    }
  }

  Ref<Completion> submit_split(const Split& split, const Recording& recording,
                               const std::vector<Ref<Completion>>& ends, const HeldStates& held,
                               WatchedRun* watched) {
    const Ref<Stream> stream = split.device->default_stream();
    held.order_before(*stream);
    for (const std::uint32_t wait : split.waits) stream->wait_for(ends[wait]);
    // The stream keeps their order anyway; this carries the failure of one to the next.
    if (const Ref<Completion> before = last_on(split.device, ends)) stream->wait_for(before);
    if (watched) {
      return watched->run_split(ends.size(), split, *stream, there->bindings,
                                there->node_recordings);
    }
    stream->replay(recording, there->bindings.table(split.device));
    return stream->submit();
  }

  /// The end of the device's last submission in this run, if it had one.
  Ref<Completion> last_on(const Device* device, const std::vector<Ref<Completion>>& ends) const {
    for (std::size_t i = ends.size(); i-- > 0;) {
      const std::size_t splits = plan().splits.size();
      if ((i < splits ? plan().splits[i] : plan().feeds[i - splits]).device == device)
        return ends[i];
    }
    return nullptr;
  }

  /// Binds outputs over those of `unshared` inputs that may be written over.
  void bind_overwrites(std::span<const NamedArray> inputs, const std::vector<bool>& unshared) {
    for (const Overwrite& overwrite : plan().overwrites) {
      const std::string& name = plan().slots[overwrite.input].name;
      const auto given = std::ranges::find(inputs, name, &NamedArray::name);
      if (given == inputs.end()) continue;
      const auto i = static_cast<std::size_t>(given - inputs.begin());
      const Ref<Buffer>& bound = there->bindings.buffer(overwrite.input);
      if (!unshared[i] || bound != given->array.node()->result(given->array.output()).buffer) {
        continue;
      }
      bound->wait_for_uses();
      there->bindings.bind_over(overwrite);
    }
  }

  /// The outputs of a run whose memory is theirs from now on.
  std::vector<Array> take_outputs(std::span<const NamedArray> inputs) {
    std::vector<Array> arrays;
    for (const PlanOutput& output : plan().outputs) arrays.push_back(take(output.location, inputs));
    return arrays;
  }

  Array take(const Location& location, std::span<const NamedArray> inputs) {
    const Slot& slot = plan().slots[location.slot];
    const Bindings& bindings = there->bindings;
    const Ref<Buffer>& buffer = bindings.buffer(location.slot);
    if (slot.kind == SlotKind::output) {
      return own_array(
          {buffer, bindings.offset(location.slot) + location.offset, location.operand});
    }
    const auto given = std::ranges::find(inputs, slot.name, &NamedArray::name);
    const bool as_it_came = slot.kind == SlotKind::input && given != inputs.end() &&
                            location.offset == 0 && location.operand == slot.operand;
    if (as_it_came) return given->array;
    return copy_out(buffer, bindings.offset(location.slot) + location.offset, location.operand);
  }

  /// Submits every split in order, then the feeds. What goes wrong ends the run and is its error.
  Ref<Completion> submit_all(HeldStates& held, WatchedRun* watched) {
    std::vector<Ref<Completion>> ends;
    std::shared_ptr<const Failure> failure;
    try {
      if (watched) watched->begin(there->node_recordings);
      const auto& [bindings, recordings, feeds, node_recordings] = *there;
      for (std::size_t s = 0; s < recordings.size(); ++s) {
        ends.push_back(submit_split(plan().splits[s], *recordings[s], ends, held, watched));
      }
      for (std::size_t f = 0; f < feeds.size(); ++f) {
        ends.push_back(submit_split(plan().feeds[f], *feeds[f], ends, held, watched));
      }
    } catch (...) {
      failure = failure_of(std::current_exception());
      if (watched && watched->in_flight()) ends.push_back(watched->in_flight());
    }
    if (watched) watched->finish(failure);
    const Ref<Completion> end = make_ref<RunCompletion>(ends, failure);
    for (HeldStates::Held& state : held.all()) {
      state.use.note(end, last_on(state.user->device, ends), state.user->is_written);
      if (failure && state.user->is_written) state.use.fail(failure);
    }
    return end;
  }
};

std::shared_ptr<Executable> Executable::compile(Graph graph, const CompileOptions& options,
                                                Ref<Parameters> parameters) {
  Plan plan = plan_graph(std::move(graph), options);
  if (verifies(options)) verify(plan);
  if (!parameters) parameters = make_ref<Parameters>();
  auto compiled = std::make_shared<const Compiled>(std::move(plan));
  return std::shared_ptr<Executable>(
      new Executable(std::make_unique<Impl>(std::move(compiled), std::move(parameters))));
}

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Executable::~Executable() = default;

std::shared_ptr<Executable> Executable::clone(bool share_states) const {
  auto impl = std::make_unique<Impl>(impl_->compiled, impl_->parameters);
  if (share_states) {
    const std::lock_guard lock(impl_->mutex);
    impl_->make_missing_states();
    impl->states = impl_->states;
  }
  return std::shared_ptr<Executable>(new Executable(std::move(impl)));
}

const Ref<Parameters>& Executable::parameters() const noexcept {
  return impl_->parameters;
}
const Plan& Executable::plan() const noexcept {
  return impl_->plan();
}
std::size_t Executable::memory_bytes() const noexcept {
  return planned_bytes(impl_->plan());
}

void Executable::bind_state(std::string_view name, Ref<State> state) {
  const std::size_t index = impl_->state_index(name);
  const StateUser& user = impl_->compiled->states[index];
  TensorSpec spec = state->spec();
  if (user.by_data && !spec.shape.empty() && !user.spec.shape.empty()) {
    spec.shape[0] = std::min(spec.shape[0], user.spec.shape[0]);  // more rows are welcome
  }
  require(spec == user.spec, ErrorCode::invalid_argument,
          "state '{}': the graph needs {}, the object is {}", name, to_string(user.spec),
          to_string(state->spec()));
  require(&state->device() == user.device, ErrorCode::invalid_argument,
          "state '{}': the plan keeps it on {}, the object is on {}", name, user.device->name(),
          state->device().name());
  const std::lock_guard lock(impl_->mutex);
  impl_->end_last_run();
  impl_->states[index] = std::move(state);
}

Ref<State> Executable::state(std::string_view name) const {
  const std::size_t index = impl_->state_index(name);
  const std::lock_guard lock(impl_->mutex);
  impl_->make_missing_states();
  return impl_->states[index];
}

Ref<Completion> Executable::submit(std::span<const NamedTensor> inputs) {
  const std::lock_guard lock(impl_->mutex);
  impl_->return_to_devices();
  impl_->make_missing_states();
  HeldStates held(impl_->compiled->states, impl_->states);
  impl_->compiled->inputs.check(inputs, held.rows());
  const std::unique_ptr<WatchedRun> watched = impl_->watch(inputs);
  impl_->bind(inputs, held);
  const Team::Session session(current_team());
  impl_->last = impl_->submit_all(held, watched.get());
  return impl_->last;
}

std::vector<Array> Executable::call(std::span<const NamedArray> inputs) {
  const HostArrays arrays(inputs);
  const std::lock_guard lock(impl_->mutex);
  impl_->return_to_devices();
  impl_->make_missing_states();
  HeldStates held(impl_->compiled->states, impl_->states);
  impl_->compiled->inputs.check(arrays.tensors(), held.rows());
  const std::unique_ptr<WatchedRun> watched = impl_->watch(arrays.tensors());
  Bindings& bindings = impl_->there->bindings;
  bindings.release();  // outputs that `run` left, and what a call held that failed
  std::vector<bool> unshared;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    // Watching allocates memory, and so may fail anywhere.
    unshared.push_back(inputs[i].overwrite && !watched && arrays.is_unshared(i, inputs[i]));
  }
  bindings.allocate();
  impl_->bind_lasting(bindings, held);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    bindings.bind_input(inputs[i].name, arrays.view(i), arrays.tensors()[i].tensor.bytes);
  }
  impl_->bind_overwrites(inputs, unshared);
  bindings.make_outputs();
  {
    const Team::Session session(current_team());
    impl_->last = impl_->submit_all(held, watched.get());
  }
  // What did not end keeps its memory, and the next run looks after it.
  impl_->last->wait();
  impl_->last = nullptr;
  std::vector<Array> outputs = impl_->take_outputs(inputs);
  bindings.release();
  return outputs;
}

void Executable::run(std::span<const NamedTensor> inputs) {
  submit(inputs)->wait();
}
void Executable::run(std::initializer_list<NamedTensor> inputs) {
  run(std::span(inputs.begin(), inputs.size()));
}

namespace {

const PlanOutput& find_output(const Plan& plan, std::string_view name) {
  for (const PlanOutput& output : plan.outputs) {
    if (output.name == name) return output;
  }
  fail(ErrorCode::invalid_argument, "there is no output '{}' in this graph", name);
}

OperandSpec row_of(const OperandSpec& operand, std::int64_t row, std::size_t& offset,
                   std::string_view name) {
  const auto& [spec, layout] = operand;
  if (spec.shape.empty() || row < 0 || row >= spec.shape[0]) {
    fail(ErrorCode::invalid_argument, "output '{}' is {}: it has no row {}", name, to_string(spec),
         row);
  }
  OperandSpec out = operand;
  out.spec.shape.erase(0);
  out.layout.strides.erase(0);
  const DTypeInfo& type = info(spec.dtype);
  const std::int64_t begin = first_element(operand) + row * layout.strides[0] - first_element(out);
  offset += static_cast<std::size_t>(begin / type.block_elements * type.block_bytes);
  return out;
}

}  // namespace

std::vector<Array> Executable::outputs(std::span<const OutputRequest> requests) const {
  const std::lock_guard lock(impl_->mutex);
  require(bool(impl_->last), ErrorCode::invalid_argument, "outputs: there has been no run yet");
  impl_->last->wait();
  std::vector<Array> arrays;
  for (const OutputRequest& request : requests) {
    const Location& location = find_output(impl_->plan(), request.name).location;
    OperandSpec operand = location.operand;
    std::size_t offset = location.offset;
    if (request.row) operand = row_of(operand, *request.row, offset, request.name);
    arrays.push_back(copy_out(impl_->there->bindings.buffer(location.slot), offset, operand));
  }
  return arrays;
}

Array Executable::output(std::string_view name) const {
  const OutputRequest request{name, std::nullopt};
  return outputs({&request, 1})[0];
}

void Executable::copy_output_row(std::string_view name, std::int64_t row,
                                 std::span<std::byte> out) const {
  const std::lock_guard lock(impl_->mutex);
  require(bool(impl_->last), ErrorCode::invalid_argument, "output '{}': there has been no run yet",
          name);
  impl_->last->wait();
  const Location& location = find_output(impl_->plan(), name).location;
  std::size_t offset = location.offset;
  const OperandSpec operand = row_of(location.operand, row, offset, name);
  require(out.size() == byte_size(operand.spec), ErrorCode::invalid_argument,
          "output '{}': a row is {} bytes, not {}", name, byte_size(operand.spec), out.size());
  const Ref<Buffer>& buffer = impl_->there->bindings.buffer(location.slot);
  if (is_contiguous(operand)) {
    read_buffer(buffer, offset, out);
  } else {
    copy_out(buffer, offset, operand).copy_to(out);
  }
}

std::size_t planned_bytes(const Plan& plan) {
  std::size_t bytes = 0;
  for (const Slot& slot : plan.slots) {
    if (slot.kind != SlotKind::parameter && slot.kind != SlotKind::state) bytes += slot.bytes;
  }
  return bytes;
}

}  // namespace heddle
