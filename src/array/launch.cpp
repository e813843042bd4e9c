#include "array/launch.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "tensor/format.h"

namespace heddle {

namespace {

// A batch goes out at whichever comes first. Larger ones save submissions, smaller ones start the
// device sooner and hold less memory.
constexpr std::size_t kBatchLaunches = 64;
constexpr std::size_t kBatchBytes = std::size_t{256} << 20;
constexpr std::size_t kCopiesKept = 16;

struct AtomicCounts {
  std::atomic<std::uint64_t> nodes{0}, launches{0}, transfers{0}, donations{0}, fallbacks{0};
} counts;

void count(std::atomic<std::uint64_t>& counter) noexcept {
  counter.fetch_add(1, std::memory_order_relaxed);
}

std::vector<OperandSpec> specs_of(const std::vector<Operand>& operands) {
  std::vector<OperandSpec> specs;
  specs.reserve(operands.size());
  for (const Operand& operand : operands) specs.push_back(operand.view.operand);
  return specs;
}

/// Makes what `stream` does next come after `work`, whose error it takes over. On the CPU the
/// caller waits, so that an error is this node's alone.
void order_after(Stream& stream, const Ref<Completion>& work) {
  if (!work) return;
  if (!work->done() && &stream.device() != &cpu_device()) return stream.wait_for(work);
  try {
    work->wait();
  } catch (const Error& error) {
    throw InheritedError(error.code(), error.what());
  }
}

[[noreturn]] void refuse(const Op& op, const std::vector<OperandSpec>& inputs,
                         std::string_view device, const std::string& reason) {
  std::string specs;
  for (const OperandSpec& input : inputs) {
    if (!specs.empty()) specs += ", ";
    specs += to_string(input);
  }
  fail(ErrorCode::unsupported, "{}({}): no kernel on {}: {}", name(op), specs, device, reason);
}

Failure failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return {e.code(), e.what()};
  } catch (const std::exception& e) {
    return {ErrorCode::backend, e.what()};
  } catch (...) {
    return {ErrorCode::backend, "an exception of unknown type"};
  }
}

}  // namespace

EvalCounts eval_counts() noexcept {
  return {counts.nodes, counts.launches, counts.transfers, counts.donations, counts.fallbacks};
}

// ---- Batches

Launcher::Batch& Launcher::batch_of(Device& device) {
  for (Batch& batch : batches_) {
    if (batch.device == &device) return batch;
  }
  Batch& batch = batches_.emplace_back();
  batch.device = &device;
  batch.stream = device.default_stream();
  return batch;
}

bool Launcher::holds(const Node& node) const noexcept {
  return std::ranges::any_of(batches_, [&](const Batch& batch) {
    return std::ranges::any_of(batch.nodes, [&](const Ref<Node>& n) { return n.get() == &node; });
  });
}

void Launcher::submit_all() noexcept {
  for (Batch& batch : batches_) submit(batch);
}

void Launcher::note_end(const Batch& batch, const Ref<Completion>& end) {
  for (const Ref<Node>& node : batch.nodes) {
    for (std::uint32_t i = 0; i < node->outputs().size(); ++i) {
      const Ref<Buffer>& buffer = node->result(i).buffer;
      if (batch.writes.contains(buffer.get())) buffer->note_write(end);
    }
  }
  for (const Ref<Buffer>& buffer : batch.copies) buffer->note_write(end);
  for (const Ref<Buffer>& buffer : batch.reads) buffer->note_read(end);
}

void Launcher::release(Array input) noexcept {
  const Node& node = *input.node();
  constexpr std::int64_t kHereAndInBatch = 2;
  if (node.state() != Node::State::running || node.use_count() != kHereAndInBatch) return;
  for (Batch& batch : batches_) {
    const auto found = std::ranges::find(batch.nodes, input.node());
    if (found == batch.nodes.end()) continue;
    std::swap(*found, batch.nodes.back());
    batch.nodes.pop_back();
    return;
  }
}

std::optional<Failure> Launcher::submit(Batch& batch) noexcept {
  if (!batch.open) return std::nullopt;
  std::optional<Failure> failure;
  try {
    const Ref<Completion> end = batch.stream->submit();
    if (end->done()) {
      end->wait();
    } else {
      note_end(batch, end);
    }
  } catch (...) {
    failure = failure_of(std::current_exception());
  }
  for (const Ref<Node>& node : batch.nodes) {
    if (failure) {
      node->fail(*failure);
    } else {
      node->publish();
    }
  }
  batch.open = false;
  batch.launches = batch.bytes = 0;
  batch.nodes.clear();
  batch.reads.clear();
  batch.copies.clear();
  batch.writes.clear();
  return failure;
}

void Launcher::join(const Ref<Node>& node, const std::vector<Operand>& results) {
  Batch& batch = batch_of(results.front().view.buffer->device());
  const bool worked = std::ranges::any_of(results, &Operand::written);
  if (!worked && !batch.open) return node->publish();  // another look at memory that others know
  batch.nodes.push_back(node);
  batch.open = true;
  if (!worked) return;
  for (const Operand& result : results) batch.bytes += span_bytes(result.view.operand);
  // On the CPU there is nothing to gain from batches, and intermediates would outlive their use.
  if (batch.device == &cpu_device() || batch.launches >= kBatchLaunches ||
      batch.bytes >= kBatchBytes) {
    submit(batch);
  }
}

// ---- Nodes

void Launcher::run(const Ref<Node>& node, std::vector<Operand> operands) {
  count(counts.nodes);
  std::vector<Operand> results;
  if (is_view(node->op())) {
    results.push_back(run_view(node->op(), std::move(operands.front()), node->outputs().front()));
  } else {
    results = compute(*node, std::move(operands));
  }
  std::vector<View> views;
  views.reserve(results.size());
  for (const Operand& result : results) views.push_back(result.view);
  node->set_results(std::move(views));
  join(node, results);
}

std::vector<Operand> Launcher::compute(const Node& node, std::vector<Operand> operands) {
  const Op& op = node.op();
  if (std::holds_alternative<Contiguous>(op) && is_contiguous(operands.front().view.operand)) {
    return operands;
  }
  if (writes_state(op) && !is_contiguous(operands.front().view.operand)) {
    operands.front() = contiguous_copy(std::move(operands.front()));
  }
  Device& cpu = cpu_device();
  if (node.pin() && node.pin() != &cpu) {
    Legal legal = legalize(*node.pin(), op, specs_of(operands));
    if (legal.how != Legal::How::no) {
      return run_legal(*node.pin(), op, std::move(legal), std::move(operands), node.outputs());
    }
    count(counts.fallbacks);
    submit_all();  // devices work while the CPU does
  }
  return run_op(cpu, op, std::move(operands), node.outputs());
}

std::vector<Operand> Launcher::run_op(Device& device, const Op& op, std::vector<Operand> operands,
                                      std::span<const TensorSpec> outputs) {
  Legal legal = legalize(device, op, specs_of(operands));
  return run_legal(device, op, std::move(legal), std::move(operands), outputs);
}

std::vector<Operand> Launcher::run_legal(Device& device, const Op& op, Legal legal,
                                         std::vector<Operand> operands,
                                         std::span<const TensorSpec> outputs) {
  if (legal.how == Legal::How::no) refuse(op, specs_of(operands), device.name(), legal.reason);
  for (Operand& operand : operands) {
    if (&operand.view.buffer->device() == &device) continue;
    operand = {move_to(device, operand.view), false, false};
  }
  if (legal.how == Legal::How::lowered) {
    return run_lowered(device, legal.lowered, std::move(operands));
  }
  if (legal.how == Legal::How::contiguous) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (legal.copy[i]) operands[i] = contiguous_copy(std::move(operands[i]));
    }
  }
  return launch(device, op, legal.kernel, std::move(operands), outputs);
}

Operand Launcher::run_view(const Op& op, Operand operand, TensorSpec result) {
  std::optional<ViewOf> where = view_of(op, operand.view.operand);
  if (!where) {
    operand = contiguous_copy(std::move(operand));
    where = view_of(op, operand.view.operand);
    require(where.has_value(), ErrorCode::unsupported, "{}: cannot be a view of {}", name(op),
            operand.view.operand);
  }
  operand.view.offset += static_cast<std::size_t>(where->offset_bytes);
  operand.view.operand = {std::move(result), std::move(where->layout)};
  return operand;
}

// ---- Lowered ops

namespace {

/// The values of a lowered op's inputs and steps, each dropped at its last use.
class StepValues {
 public:
  StepValues(const Lowered& lowered, std::vector<Operand> inputs) {
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
    value.unshared = false;
    return value;
  }
  void set(std::size_t step, std::vector<Operand> outputs) {
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

  std::vector<Operand> inputs_;
  std::vector<int> input_uses_;
  std::vector<std::vector<Operand>> steps_;
  std::vector<std::vector<int>> step_uses_;
};

}  // namespace

std::vector<Operand> Launcher::run_lowered(Device& device, const Lowered& lowered,
                                           std::vector<Operand> operands) {
  StepValues values(lowered, std::move(operands));
  for (std::size_t i = 0; i < lowered.steps.size(); ++i) {
    const LoweredStep& step = lowered.steps[i];
    std::vector<Operand> sources;
    std::vector<TensorSpec> specs;
    for (const LoweredStep::Source& source : step.sources) {
      sources.push_back(values.take(source));
      specs.push_back(sources.back().view.spec());
    }
    std::vector<TensorSpec> outputs = infer(step.op, specs);
    if (is_view(step.op)) {
      values.set(i, {run_view(step.op, std::move(sources.front()), std::move(outputs.front()))});
    } else {
      values.set(i, run_op(device, step.op, std::move(sources), outputs));
    }
  }
  std::vector<Operand> results;
  for (const LoweredStep::Source& source : lowered.outputs) results.push_back(values.take(source));
  return results;
}

// ---- Kernels

std::vector<Operand> Launcher::launch(Device& device, const Op& op,
                                      const std::shared_ptr<const Kernel>& kernel,
                                      std::vector<Operand> operands,
                                      std::span<const TensorSpec> outputs) {
  std::vector<OperandSpec> output_specs = output_operands(op, outputs);
  std::vector<Operand> results;
  results.reserve(output_specs.size());
  for (std::size_t i = 0; i < output_specs.size(); ++i) {
    results.push_back(place_output(device, *kernel, i, std::move(output_specs[i]), operands));
  }
  Batch& batch = batch_of(device);
  std::vector<View> inputs, targets;
  inputs.reserve(operands.size());
  for (Operand& operand : operands) {
    order_after(*batch.stream, operand.view.buffer->last_write());
    // What is read within the batch that wrote it, or by its only owner, needs no note.
    const bool noted =
        operand.unshared || operand.written || batch.writes.contains(operand.view.buffer.get());
    if (!noted) batch.reads.push_back(operand.view.buffer);
    inputs.push_back(std::move(operand.view));
  }
  for (const Operand& result : results) {
    batch.writes.insert(result.view.buffer.get());
    targets.push_back(result.view);
  }
  const View scratch = workspace(batch, kernel->traits().workspace_bytes);
  batch.open = true;
  count(counts.launches);
  batch.stream->encode(kernel, inputs, targets, scratch, View{});
  ++batch.launches;
  return results;
}

Operand Launcher::place_output(Device& device, const Kernel& kernel, std::size_t output,
                               OperandSpec spec, std::vector<Operand>& operands) {
  const std::size_t bytes = span_bytes(spec);
  for (const KernelTraits::Alias& alias : kernel.traits().aliases) {
    if (alias.output != output) continue;
    Operand& input = operands[alias.input];
    if (alias.required && !input.unshared) input = contiguous_copy(std::move(input));
    const bool fits = is_contiguous(input.view.operand) && byte_size(input.view.spec()) == bytes;
    if (!input.unshared || !(fits || alias.required)) continue;
    for (const Ref<Completion>& use : input.view.buffer->last_uses()) {
      order_after(*batch_of(device).stream, use);
    }
    count(counts.donations);
    input.unshared = false;  // one output may have it
    input.written = true;
    return {{input.view.buffer, input.view.offset, std::move(spec)}, true, true};
  }
  return {{device.allocate(bytes), 0, std::move(spec)}, true, true};
}

View Launcher::workspace(Batch& batch, std::size_t bytes) {
  if (bytes == 0) return {};
  if (!batch.scratch || batch.scratch->size() < bytes) {
    batch.scratch = nullptr;  // before the next, so that both need not fit
    batch.scratch = batch.device->allocate(bytes);
  }
  const TensorSpec spec{DType::u8, {static_cast<std::int64_t>(bytes)}};
  return {batch.scratch, 0, OperandSpec::contiguous(spec)};
}

Operand Launcher::contiguous_copy(Operand operand) {
  Device& device = operand.view.buffer->device();
  const std::vector<OperandSpec> inputs = {operand.view.operand};
  const TensorSpec spec = operand.view.spec();
  const std::vector<OperandSpec> outputs = {OperandSpec::contiguous(spec)};
  const Prepared prepared = device.prepare_cached(Contiguous{}, inputs, outputs);
  if (!prepared) refuse(Contiguous{}, inputs, device.name(), prepared.reason);
  std::vector<Operand> operands;
  operands.push_back(std::move(operand));
  return std::move(
      launch(device, Contiguous{}, prepared.kernel, std::move(operands), {&spec, 1}).front());
}

// ---- From device to device

View Launcher::move_to(Device& device, const View& view) {
  Device& source = view.buffer->device();
  if (&source == &device) return view;
  const std::size_t bytes = span_bytes(view.operand);
  for (const Copied& known : copied_) {
    if (known.source == view.buffer && known.offset == view.offset && known.bytes == bytes &&
        &known.copy.buffer->device() == &device) {
      return {known.copy.buffer, 0, view.operand};
    }
  }
  // Host memory is copied by the device that reads it. What a device made, it copies itself, into
  // memory that the host sees, as part of the submission that makes it.
  const bool from_host = &source == &cpu_device();
  Batch& batch = batch_of(from_host ? device : source);
  Ref<Buffer> target =
      device.allocate(bytes, from_host ? MemoryKind::local : MemoryKind::host_visible);
  order_after(*batch.stream, view.buffer->last_write());
  batch.open = true;
  batch.reads.push_back(view.buffer);
  batch.copies.push_back(target);
  batch.stream->copy(view.buffer, view.offset, target, 0, bytes);
  count(counts.transfers);
  if (!from_host) {
    if (const std::optional<Failure> failure = submit(batch)) {
      throw InheritedError(failure->code, failure->message);
    }
  }
  View copy{std::move(target), 0, view.operand};
  if (copied_.size() == kCopiesKept) copied_.pop_front();
  copied_.push_back({view.buffer, view.offset, bytes, copy});
  return copy;
}

View Launcher::read_on_host(const View& view) {
  View result = view;
  if (!view.buffer->host()) result = move_to(cpu_device(), view);
  result.buffer->wait_for_writes();
  if (is_contiguous(result.operand)) return result;
  result = move_to(cpu_device(), result);
  result.buffer->wait_for_writes();
  const Operand copy = contiguous_copy({result, false, false});
  Batch& batch = batch_of(cpu_device());
  batch.copies.push_back(copy.view.buffer);
  if (const std::optional<Failure> failure = submit(batch)) failure->raise();
  copy.view.buffer->wait_for_writes();
  return copy.view;
}

}  // namespace heddle
