// The asynchronous test device: its thread, its faults, its loss.
#include "support/async_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/check.h"
#include "base/team.h"
#include "support/async_device_parts.h"

namespace heddle::test {

namespace {

constexpr std::size_t kRememberedOperations = 8;

std::string label_of(const Step& step) {
  if (const auto* launch = std::get_if<LaunchStep>(&step)) return launch->label;
  if (const auto* copy = std::get_if<CopyStep>(&step))
    return fmt::format("copy of {} bytes", copy->bytes);
  return std::holds_alternative<WaitStep>(step) ? "wait" : "barrier";
}

View on_cpu(const View& view, const AsyncDevice::Impl& impl) {
  return {memory_of(view.buffer, impl), view.offset, view.operand};
}

}  // namespace

void poison(std::byte* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    memory[i] = static_cast<std::byte>(kPoison >> (8 * (i % sizeof kPoison)));
  }
}

Ref<Buffer> memory_of(const Ref<Buffer>& buffer, const AsyncDevice::Impl& impl) {
  if (!buffer) return nullptr;
  const auto* own = dynamic_cast<const AsyncBuffer*>(buffer.get());
  if (own && &own->device() == &impl.device) return own->memory();
  require(buffer->host() != nullptr, ErrorCode::invalid_argument,
          "{}: memory of {} that it cannot reach", impl.options.name, buffer->device().name());
  if (own) return own->memory();
  return buffer;
}

// ---- The device's thread

void AsyncDevice::Impl::call(const char* what) {
  const std::lock_guard lock(mutex);
  require(!lost, ErrorCode::device_lost, "{}: {}: the device is lost since a wait on it timed out",
          options.name, what);
  call_locked(what);
}

void AsyncDevice::Impl::call_locked(const char* what) {
  ++counts.calls;
  if (fault_in == 0 || --fault_in > 0) return;
  fault_happened = true;
  fail(fault_code, "{}: {}: an injected fault", options.name, what);
}

Ref<Completion> AsyncDevice::Impl::submit(std::vector<Step> steps) {
  auto submission = std::make_shared<Submission>();
  submission->steps = std::move(steps);
  std::unique_lock lock(mutex);
  submission->number = ++submitted;
  submission->end = make_ref<AsyncCompletion>(shared_from_this(), submission->number);
  ++counts.submissions;
  if (queue.empty()) {  // nothing in flight uses the memory
    poison_targets(submission->steps, *this);
    submission->poisoned = true;
  }
  queue.push_back(submission);
  changed.notify_all();
  return submission->end;
}

void AsyncDevice::Impl::work() {
  Team alone(1);
  const TeamScope scope(alone);
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stopping || !queue.empty(); });
    if (queue.empty()) return;
    const std::shared_ptr<Submission> submission = queue.front();
    const bool skipped = lost;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!skipped) run(*submission);
    } catch (...) {
      error = std::current_exception();
    }
    submission->steps.clear();  // lets go of buffers, before anyone is told
    lock.lock();
    queue.pop_front();
    ended = submission->number;
    submission->status = "ended";
    if (!submission->end->error) submission->end->error = error;
    submission->end->ended = true;
    if (queue.empty()) quarantine.clear();
    changed.notify_all();
  }
}

void AsyncDevice::Impl::run(Submission& submission) {
  std::this_thread::sleep_for(options.delay);
  if (!submission.poisoned) poison_targets(submission.steps, *this);
  std::size_t begin = 0;
  const std::span<Step> steps(submission.steps);
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    const bool ends = i == steps.size() || std::holds_alternative<RecordedBarrier>(steps[i]) ||
                      std::holds_alternative<WaitStep>(steps[i]);
    if (!ends) continue;
    run_unordered(submission, steps.subspan(begin, i - begin));
    if (i < steps.size() && std::holds_alternative<WaitStep>(steps[i]))
      run_step(submission, steps[i]);
    begin = i + 1;
  }
}

/// In the order that is most likely to show a missing barrier.
void AsyncDevice::Impl::run_unordered(Submission& submission, std::span<Step> steps) {
  std::vector<Step*> order;
  for (Step& step : steps) order.push_back(&step);
  std::reverse(order.begin(), order.end());
  if (options.shuffle) {
    std::mt19937 random(*options.shuffle + static_cast<unsigned>(submission.number));
    std::shuffle(order.begin(), order.end(), random);
  }
  for (const Step* step : order) run_step(submission, *step);
}

void AsyncDevice::Impl::run_step(Submission& submission, const Step& step) {
  const std::string label = label_of(step);
  {
    const std::lock_guard lock(mutex);
    submission.status = "running " + label;
    operations.push_back(label);
    if (operations.size() > kRememberedOperations) operations.pop_front();
    call_locked(label.c_str());
  }
  if (const auto* wait = std::get_if<WaitStep>(&step)) {
    if (wait->other) wait->other->wait(options.patience);
  } else if (const auto* launch = std::get_if<LaunchStep>(&step)) {
    run_launch(*launch);
  } else {
    run_copy(std::get<CopyStep>(step));
  }
}

void AsyncDevice::Impl::run_launch(const LaunchStep& launch) {
  hang_if_asked();
  std::vector<View> inputs, outputs;
  for (const View& input : launch.inputs) inputs.push_back(on_cpu(input, *this));
  for (const View& output : launch.outputs) outputs.push_back(on_cpu(output, *this));
  const View workspace = on_cpu(launch.workspace, *this);
  if (workspace.buffer) poison(workspace.host(), launch.kernel->traits().workspace_bytes);
  try {
    cpu_device().default_stream()->encode(launch.kernel->inner, inputs, outputs, workspace,
                                          on_cpu(launch.extent, *this));
  } catch (const Error& e) {
    fail(e.code(), "{}: {}: {}", options.name, launch.label, e.what());
  }
  const std::lock_guard lock(mutex);
  ++counts.kernels;
}

void AsyncDevice::Impl::run_copy(const CopyStep& copy) {
  const Ref<Buffer> from = memory_of(copy.from, *this), to = memory_of(copy.to, *this);
  if (copy.bytes > 0)
    std::memmove(to->host() + copy.to_offset, from->host() + copy.from_offset, copy.bytes);
  const std::lock_guard lock(mutex);
  ++counts.copies;
}

void AsyncDevice::Impl::hang_if_asked() {
  std::unique_lock lock(mutex);
  if (hang_in == 0 || --hang_in > 0) return;
  hung = true;
  changed.wait(lock, [&] { return releasing || stopping; });
  hung = false;
  fail(ErrorCode::device_lost, "{}: the device was lost while this ran", options.name);
}

// ---- Loss

Error AsyncDevice::Impl::timed_out(const AsyncCompletion& end,
                                   std::chrono::nanoseconds timeout) const {
  std::string status = "unknown", last;
  for (const auto& submission : queue) {
    if (submission->number == end.number()) status = submission->status;
  }
  for (const std::string& operation : operations) last += (last.empty() ? "" : "; ") + operation;
  return Error(
      ErrorCode::timeout,
      fmt::format(
          "{}: waited {} ms for submission {}; the last to have ended is {}; its status: {}; the "
          "last operations: {}",
          options.name, std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count(),
          end.number(), ended, status, last));
}

void AsyncDevice::Impl::lose(const AsyncCompletion* culprit) {
  lost = true;
  for (const auto& submission : queue) {
    if (submission->end.get() == culprit || submission->end->error) continue;
    submission->end->error = std::make_exception_ptr(
        Error(ErrorCode::device_lost,
              fmt::format("{}: lost while submission {} was pending, after submission {} "
                          "timed out",
                          options.name, submission->number, culprit->number())));
  }
  changed.notify_all();
}

void AsyncDevice::Impl::retire(Ref<Buffer> memory) {
  const std::lock_guard lock(mutex);
  if (lost && !queue.empty()) quarantine.push_back(std::move(memory));
}

// ---- The device

AsyncDevice::AsyncDevice(AsyncOptions options)
    : impl_(std::make_shared<Impl>(*this, std::move(options))) {
  impl_->worker = std::thread([impl = impl_.get()] { impl->work(); });
}

AsyncDevice::~AsyncDevice() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->changed.notify_all();
  }
  impl_->worker.join();
}

std::string_view AsyncDevice::name() const noexcept {
  return impl_->options.name;
}

Prepared AsyncDevice::prepare(const Op& op, std::span<const OperandSpec> inputs,
                              std::span<const OperandSpec> outputs) {
  impl_->call("prepare");
  if (impl_->options.accepts && !impl_->options.accepts(op)) {
    return {nullptr, fmt::format("{} has no {}", impl_->options.name, heddle::name(op))};
  }
  Prepared prepared = cpu_device().prepare(op, inputs, outputs);
  if (!prepared) return prepared;
  return {std::make_shared<AsyncKernel>(std::move(prepared.kernel), impl_->options.workspace), {}};
}

std::optional<LayoutKind> AsyncDevice::preferred_layout(const Op& op, std::size_t operand,
                                                        std::span<const TensorSpec> inputs) const {
  return impl_->options.packs ? cpu_device().preferred_layout(op, operand, inputs) : std::nullopt;
}

Ref<Buffer> AsyncDevice::allocate(std::size_t bytes, MemoryKind kind) {
  impl_->call("allocate");
  Ref<Buffer> memory = allocate_host(bytes);
  poison(memory->host(), bytes);
  const bool visible = kind == MemoryKind::host_visible || !impl_->options.hides_local;
  return make_ref<AsyncBuffer>(*this, impl_, std::move(memory), bytes, visible);
}

Ref<Stream> AsyncDevice::default_stream() {
  return make_async_stream(impl_);  // all of them add to the same queue
}

std::unique_ptr<Recording> AsyncDevice::record(std::span<const RecordedStep> steps) {
  impl_->call("record");
  return make_async_recording(steps, *impl_);
}

std::unique_ptr<BindingTable> AsyncDevice::make_binding_table(std::size_t slots) {
  return make_async_table(impl_, slots);
}

void AsyncDevice::fail_call(std::uint64_t n, ErrorCode code) {
  const std::lock_guard lock(impl_->mutex);
  impl_->fault_in = n;
  impl_->fault_code = code;
  impl_->fault_happened = false;
}

bool AsyncDevice::end_fault() {
  const std::lock_guard lock(impl_->mutex);
  impl_->fault_in = 0;
  return impl_->fault_happened;
}

void AsyncDevice::hang_at(std::uint64_t n) {
  const std::lock_guard lock(impl_->mutex);
  impl_->hang_in = n;
}

void AsyncDevice::reopen() {
  std::unique_lock lock(impl_->mutex);
  impl_->releasing = true;
  impl_->changed.notify_all();
  impl_->changed.wait(lock, [&] { return impl_->queue.empty(); });
  impl_->releasing = false;
  impl_->lost = false;
  impl_->hang_in = 0;
}

bool AsyncDevice::is_lost() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->lost;
}

std::size_t AsyncDevice::quarantined_bytes() const {
  const std::lock_guard lock(impl_->mutex);
  std::size_t bytes = 0;
  for (const Ref<Buffer>& memory : impl_->quarantine) bytes += memory->size();
  return bytes;
}

AsyncDevice::Counts AsyncDevice::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}

}  // namespace heddle::test
