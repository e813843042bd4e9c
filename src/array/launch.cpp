#include "array/launch.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "array/kernel_memo.h"
#include "array/ownership.h"
#include "base/check.h"
#include "tensor/format.h"

namespace heddle {

std::atomic<MakeWatch> make_evaluation_watch{nullptr};

namespace {

constexpr std::size_t kCopiesKept = 16;

struct AtomicCounts {
  std::atomic<std::uint64_t> nodes{0}, launches{0}, transfers{0}, donations{0}, fallbacks{0};
} all_counts;

struct OpCounts {
  std::mutex mutex;
  std::map<std::string, std::uint64_t> counts;
};
// Never destroyed: arrays in static variables may be evaluated after every other static is gone.
OpCounts& counted_fallbacks() {
  static OpCounts& counted = *new OpCounts;
  return counted;
}

void count_fallback(const Op& op) {
  OpCounts& counted = counted_fallbacks();
  const std::lock_guard lock(counted.mutex);
  ++counted.counts[std::string(name(op))];
}

using OperandSpecs = InlineVector<OperandSpec, 3>;

OperandSpecs specs_of(const OperandList& operands) {
  OperandSpecs specs;
  specs.reserve(operands.size());
  for (const Operand& operand : operands) specs.push_back(operand.view.operand);
  return specs;
}

std::span<const OperandSpec> span_of(const OperandSpecs& specs) {
  return {specs.begin(), specs.size()};
}

OperandList only(Operand operand) {
  OperandList operands;
  operands.push_back(std::move(operand));
  return operands;
}

Operand moved_view(Operand operand, ViewOf where, TensorSpec result) {
  operand.view.offset += static_cast<std::size_t>(where.offset_bytes);
  operand.view.operand = {std::move(result), std::move(where.layout)};
  return operand;
}

[[noreturn]] void refuse(const Op& op, std::span<const OperandSpec> inputs, std::string_view device,
                         const std::string& reason) {
  std::string specs;
  for (const OperandSpec& input : inputs) {
    if (!specs.empty()) specs += ", ";
    specs += to_string(input);
  }
  fail(ErrorCode::unsupported, "{}({}): no kernel on {}: {}", name(op), specs, device, reason);
}

}  // namespace

EvalCounts eval_counts() noexcept {
  return {all_counts.nodes, all_counts.launches, all_counts.transfers, all_counts.donations,
          all_counts.fallbacks};
}

std::map<std::string, std::uint64_t> fallbacks_by_op() {
  OpCounts& counted = counted_fallbacks();
  const std::lock_guard lock(counted.mutex);
  return counted.counts;
}

Launcher::~Launcher() {
  batches_.submit_all();
  all_counts.nodes += counts_.nodes;
  all_counts.launches += counts_.launches;
  all_counts.transfers += counts_.transfers;
  all_counts.donations += counts_.donations;
  all_counts.fallbacks += counts_.fallbacks;
}

// ---- Nodes

/// Rule 11: in place only by proof. The handle given here, the open batch's on a node that waits in
/// it, the node's own on the buffer and those of batches that use it must be the only ones; nobody
/// else can make another.
Operand Launcher::operand_of(const Array& input) {
  const Node& node = *input.node();
  const View& view = node.result(input.output());
  view.buffer->check_alive();
  const bool waits = node.state() == Node::State::running;
  const std::int64_t node_handles = waits ? 2 : 1;
  bool unshared = proven(OwnershipCheck::node_handles, node.use_count() == node_handles) &&
                  proven(OwnershipCheck::buffer_handles,
                         view.buffer->use_count() == 1 + batches_.handles_on(*view.buffer));
  if (unshared && NoDonation::active()) unshared = false;
  return {view, waits ? batches_.writing(*view.buffer) : nullptr, unshared, false};
}

void Launcher::run(const Ref<Node>& node, OperandList&& operands) {
  ++counts_.nodes;
  OperandList results =
      watch_ ? results_watched(*node, std::move(operands)) : results_of(*node, std::move(operands));
  for (std::uint32_t i = 0; i < node->output_count(); ++i) {
    node->set_result(i, results[i].view);
  }
  join(node, results);
}

/// Submitted alone and waited for. An error of the wait is for those who read the results.
OperandList Launcher::results_watched(const Node& node, OperandList&& operands) {
  using Clock = std::chrono::steady_clock;
  std::vector<TensorSpec> inputs;
  for (const Operand& operand : operands) inputs.push_back(operand.view.spec());
  batches_.submit_all();
  const std::uint64_t launches = counts_.launches;
  const Clock::time_point begin = Clock::now();
  OperandList results = results_of(node, std::move(operands));
  for (const Operand& result : results) {
    if (result.batch && result.batch->open) batches_.submit_or_throw(*result.batch);
  }
  batches_.submit_all();
  const Clock::time_point encoded = Clock::now();
  if (counts_.launches == launches) return results;
  std::vector<View> views;
  try {
    for (const Operand& result : results) {
      result.view.buffer->wait_for_writes();
      views.push_back(result.view);
    }
  } catch (...) {
    watch_->failed(*failure_of(std::current_exception()));
    return results;
  }
  watch_->ran(node.op(), inputs, views, begin, encoded, Clock::now());
  return results;
}

/// Results that open batches make are known with those batches.
void Launcher::join(const Ref<Node>& node, const OperandList& results) {
  Batch* batch = nullptr;
  for (const Operand& result : results) {
    if (!result.batch || !result.batch->open || result.batch == batch) continue;
    if (batch) batches_.submit_or_throw(*result.batch);
    if (!batch) batch = result.batch;
  }
  if (!batch) return node->publish();
  batches_.join(*batch, node);
}

OperandList Launcher::results_of(const Node& node, OperandList&& operands) {
  if (const auto* depends = std::get_if<Depends>(&node.op())) {
    while (operands.size() > static_cast<std::size_t>(depends->values)) {
      batches_.throw_known_error(*operands.back().view.buffer);
      operands.pop_back();
    }
    return operands;
  }
  if (is_view(node.op())) {
    return only(run_view(node.op(), std::move(operands.front()), node.spec(0)));
  }
  return compute(node, std::move(operands));
}

OperandList Launcher::compute(const Node& node, OperandList&& operands) {
  const Op& op = node.op();
  if (std::holds_alternative<Contiguous>(op) && is_contiguous(operands.front().view.operand)) {
    return operands;
  }
  if (const auto* as = std::get_if<Reinterpret>(&op)) {
    const View& view = operands.front().view;
    if (auto where = reinterpreted_view(as->dtype, view.operand, view.offset)) {
      return only(moved_view(std::move(operands.front()), std::move(*where), node.spec(0)));
    }
  }
  if (writes_state(op) && !is_contiguous(operands.front().view.operand)) {
    operands.front() = contiguous_copy(std::move(operands.front()));
  }
  InlineVector<TensorSpec, 1> outputs;
  for (std::uint32_t i = 0; i < node.output_count(); ++i) outputs.push_back(node.spec(i));
  const std::span<const TensorSpec> specs(outputs.begin(), outputs.size());
  Device& cpu = cpu_device();
  if (node.pin() && node.pin() != &cpu) {
    Legal legal = legalize(*node.pin(), op, span_of(specs_of(operands)));
    if (legal.how != Legal::How::no) {
      Batch& batch = batches_.of(*node.pin(), node.stream());
      return run_legal(batch, op, std::move(legal), std::move(operands), specs);
    }
    ++counts_.fallbacks;
    count_fallback(op);
    batches_.submit_all();  // devices work while the CPU does
  }
  return run_op(batches_.of(cpu), op, std::move(operands), specs);
}

OperandList Launcher::run_op(Batch& batch, const Op& op, OperandList&& operands,
                             std::span<const TensorSpec> outputs) {
  KernelMemo& memo = KernelMemo::of_thread();
  const bool here = batch.on_cpu && std::ranges::all_of(operands, [&](const Operand& o) {
                      return &o.view.buffer->device() == batch.device;
                    });
  if (here) {
    const KernelMemo::Use use(memo);
    if (const KernelMemo::Entry* known = memo.find(op, operands)) {
      return launch(batch, known->kernel, std::move(operands), known->outputs);
    }
  }
  Legal legal = legalize(*batch.device, op, span_of(specs_of(operands)));
  if (here && legal.how == Legal::How::direct && legal.kernel) {
    memo.add(op, operands, legal.kernel, output_operands(op, outputs));
  }
  return run_legal(batch, op, std::move(legal), std::move(operands), outputs);
}

OperandList Launcher::run_legal(Batch& batch, const Op& op, Legal legal, OperandList&& operands,
                                std::span<const TensorSpec> outputs) {
  if (legal.how == Legal::How::no) {
    refuse(op, span_of(specs_of(operands)), batch.device->name(), legal.reason);
  }
  for (Operand& operand : operands) {
    if (&operand.view.buffer->device() != batch.device) operand = move_to(batch, operand.view);
  }
  if (legal.how == Legal::How::lowered) {
    return run_lowered(batch, legal.lowered, std::move(operands));
  }
  if (legal.how == Legal::How::contiguous) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (legal.copy[i]) operands[i] = contiguous_copy(std::move(operands[i]));
    }
  }
  return launch(batch, legal.kernel, std::move(operands), output_operands(op, outputs));
}

Operand Launcher::run_view(const Op& op, Operand operand, TensorSpec result) {
  std::optional<ViewOf> where = view_of(op, operand.view.operand);
  if (!where) {
    operand = contiguous_copy(std::move(operand));
    where = view_of(op, operand.view.operand);
    require(where.has_value(), ErrorCode::unsupported, "{}: cannot be a view of {}", name(op),
            operand.view.operand);
  }
  return moved_view(std::move(operand), std::move(*where), std::move(result));
}

// ---- Lowered ops

namespace {

/// The values of a lowered op's inputs and steps, each dropped at its last use.
class StepValues {
 public:
  StepValues(const Lowered& lowered, OperandList inputs) {
    inputs_ = std::move(inputs);
    input_uses_.resize(inputs_.size());
    steps_.resize(lowered.steps.size());
    step_uses_.resize(lowered.steps.size());
    for (const LoweredStep& step : lowered.steps) {
      for (const LoweredStep::Source& source : step.sources) ++uses(source);
    }
    for (const LoweredStep::Source& source : lowered.outputs) ++uses(source);
  }

  /// The value, which may be written over if this is its only use.
  Operand take(const LoweredStep::Source& source) {
    Operand& value =
        source.from_input ? inputs_[source.index] : steps_[source.index][source.output];
    int& left = uses(source);
    if (--left == 0) return std::move(value);
    value.unshared = proven(OwnershipCheck::last_use, false) && value.unshared;
    return value;
  }
  void set(std::size_t step, OperandList outputs) {
    steps_[step] = std::move(outputs);
    step_uses_[step].resize(steps_[step].size());
  }

 private:
  int& uses(const LoweredStep::Source& source) {
    if (source.from_input) return input_uses_[source.index];
    std::vector<int>& outputs = step_uses_[source.index];
    if (outputs.size() <= source.output) outputs.resize(source.output + 1);
    return outputs[source.output];
  }

  OperandList inputs_;
  std::vector<int> input_uses_;
  std::vector<OperandList> steps_;
  std::vector<std::vector<int>> step_uses_;
};

}  // namespace

OperandList Launcher::run_lowered(Batch& batch, const Lowered& lowered, OperandList&& operands) {
  StepValues values(lowered, std::move(operands));
  for (std::size_t i = 0; i < lowered.steps.size(); ++i) {
    const LoweredStep& step = lowered.steps[i];
    OperandList sources;
    std::vector<TensorSpec> specs;
    for (const LoweredStep::Source& source : step.sources) {
      sources.push_back(values.take(source));
      specs.push_back(sources.back().view.spec());
    }
    std::vector<TensorSpec> outputs = infer(step.op, specs);
    if (is_view(step.op)) {
      values.set(i,
                 only(run_view(step.op, std::move(sources.front()), std::move(outputs.front()))));
    } else {
      values.set(i, run_op(batch, step.op, std::move(sources), outputs));
    }
  }
  OperandList results;
  for (const LoweredStep::Source& source : lowered.outputs) results.push_back(values.take(source));
  return results;
}

// ---- Kernels

OperandList Launcher::launch(Batch& batch, const std::shared_ptr<const Kernel>& kernel,
                             OperandList&& operands, std::span<const OperandSpec> outputs) {
  OperandList results;
  results.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(place_output(batch, *kernel, i, outputs[i], operands));
  }
  InlineVector<View, 3> inputs;
  InlineVector<View, 1> targets;
  inputs.reserve(operands.size());
  for (Operand& operand : operands) {
    batches_.order_after_writes(batch, *operand.view.buffer);
    batches_.note_read(batch, operand.view.buffer, operand.unshared || operand.written);
    inputs.push_back(std::move(operand.view));
  }
  for (Operand& result : results) {
    batches_.note_write(batch, result.view.buffer);
    result.batch = batch.on_cpu ? nullptr : &batch;
    targets.push_back(result.view);
  }
  const View scratch = workspace(batch, kernel->traits().workspace_bytes);
  ++counts_.launches;
  ++batch.launches;
  batches_.add_to(batch, [&](Stream& stream) {
    stream.encode(kernel, {inputs.begin(), inputs.size()}, {targets.begin(), targets.size()},
                  scratch, View{});
  });
  for (View& input : inputs) Batches::recycle(batch, std::move(input.buffer));
  return results;
}

Operand Launcher::place_output(Batch& batch, const Kernel& kernel, std::size_t output,
                               const OperandSpec& spec, OperandList& operands) {
  const std::size_t bytes = span_bytes(spec);
  for (const KernelTraits::Alias& alias : kernel.traits().aliases) {
    if (alias.output != output) continue;
    Operand& input = operands[alias.input];
    if (alias.required && !input.unshared) {
      input = contiguous_copy(std::move(input));
      input.unshared = true;
    }
    const bool fits = proven(OwnershipCheck::same_bytes, is_contiguous(input.view.operand)) &&
                      byte_size(input.view.spec()) == bytes;
    if (!input.unshared || !(fits || alias.required) || bytes == 0) continue;
    if (!proven(OwnershipCheck::pending_uses, false)) {
      batches_.order_after_uses(batch, *input.view.buffer);
    }
    ++counts_.donations;
    input.unshared = proven(OwnershipCheck::one_output, false);
    input.written = true;
    return {{input.view.buffer, input.view.offset, spec}, nullptr, true, true};
  }
  return {{batches_.allocate(batch, bytes), 0, spec}, nullptr, true, true};
}

View Launcher::workspace(Batch& batch, std::size_t bytes) {
  if (bytes == 0) return {};
  if (!batch.scratch || batch.scratch->size() < bytes) {
    batch.scratch = nullptr;  // before the next, so that both need not fit
    batch.scratch = batches_.allocate(batch, bytes);
  }
  const TensorSpec spec{DType::u8, {static_cast<std::int64_t>(bytes)}};
  return {batch.scratch, 0, OperandSpec::contiguous(spec)};
}

Operand Launcher::contiguous_copy(Operand operand) {
  Device& device = operand.view.buffer->device();
  Batch& batch = operand.batch ? *operand.batch : batches_.of(device);
  const OperandSpec input = operand.view.operand;
  const OperandSpec output = OperandSpec::contiguous(input.spec);
  const Prepared prepared = device.prepare_cached(Contiguous{}, {&input, 1}, {&output, 1});
  if (!prepared) refuse(Contiguous{}, {&input, 1}, device.name(), prepared.reason);
  return std::move(launch(batch, prepared.kernel, only(std::move(operand)), {&output, 1}).front());
}

// ---- From device to device

Operand Launcher::move_to(Batch& batch, const View& view) {
  Device& device = *batch.device;
  Device& source = view.buffer->device();
  if (&source == &device) return {view};
  const std::size_t bytes = span_bytes(view.operand);
  for (const Copied& known : copied_) {
    if (known.source == view.buffer && known.offset == view.offset && known.bytes == bytes &&
        &known.copy.buffer->device() == &device) {
      return {{known.copy.buffer, 0, view.operand}, batches_.writing(*known.copy.buffer)};
    }
  }
  // Host memory is copied by the device that reads it. What a device made, it copies itself, into
  // memory that the host sees, as part of the submission that makes it.
  const bool from_host = &source == &cpu_device();
  Batch* maker = from_host ? &batch : batches_.writing(*view.buffer);
  if (!maker) maker = &batches_.of(source);
  Ref<Buffer> target =
      batches_.allocate(device, bytes, from_host ? MemoryKind::local : MemoryKind::host_visible);
  batches_.order_after_writes(*maker, *view.buffer);
  batches_.note_read(*maker, view.buffer, false);
  batches_.note_write(*maker, target);
  batches_.add_to(*maker,
                  [&](Stream& stream) { stream.copy(view.buffer, view.offset, target, 0, bytes); });
  ++counts_.transfers;
  if (!from_host) batches_.submit_or_throw(*maker);
  View copy{std::move(target), 0, view.operand};
  if (copied_.size() == kCopiesKept) copied_.pop_front();
  copied_.push_back({view.buffer, view.offset, bytes, copy});
  return {std::move(copy), from_host ? maker : nullptr};
}

View Launcher::read_on_host(const View& view) {
  Batch& cpu = batches_.of(cpu_device());
  View result = view;
  if (!view.buffer->host()) result = move_to(cpu, view).view;
  result.buffer->wait_for_writes();
  if (is_contiguous(result.operand)) return result;
  result = move_to(cpu, result).view;
  result.buffer->wait_for_writes();
  return contiguous_copy({result}).view;
}

}  // namespace heddle
