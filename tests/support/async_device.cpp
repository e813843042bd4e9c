// The asynchronous test device: its thread, its faults, its loss.
#include "support/async_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "base/check.h"
#include "base/system.h"
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

/// The first step that waits for work which has not ended, or the number of steps.
std::size_t first_open_wait(std::span<const Step> steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto* wait = std::get_if<WaitStep>(&steps[i]);
    if (wait && wait->other && !wait->other->done()) return i;
  }
  return steps.size();
}

/// What goes element by element could write over an input whose elements lie as the output's do. It
/// offers those that fill their memory in another order too: whoever donates must look.
void offer_any_order(const Op& op, std::span<const OperandSpec> inputs,
                     std::span<const OperandSpec> outputs, KernelTraits& traits) {
  const bool by_element = std::holds_alternative<Unary>(op) || std::holds_alternative<Binary>(op) ||
                          std::holds_alternative<Contiguous>(op);
  if (!by_element) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = inputs[i].spec;
    const bool fills = inputs[i].layout.kind == LayoutKind::strided && !is_contiguous(inputs[i]) &&
                       span_bytes(inputs[i]) == byte_size(spec);
    if (fills && spec == outputs[0].spec) traits.aliases.push_back({0, i, false});
  }
}

}  // namespace

void poison(std::byte* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    memory[i] = static_cast<std::byte>(kPoison >> (8 * (i % sizeof kPoison)));
  }
}

Ref<Buffer> memory_of(const Ref<Buffer>& buffer, const AsyncDevice::Impl& impl) {
  if (!buffer) return nullptr;
  buffer->check_alive();
  const auto* own = dynamic_cast<const AsyncBuffer*>(buffer.get());
  if (own && &own->device() == &impl.device) return own->memory();
  require(buffer->host() != nullptr, ErrorCode::invalid_argument,
          "{}: memory of {} that it cannot reach", impl.options.name, buffer->device().name());
  if (own) return own->memory();
  return buffer;
}

bool MemoryCount::add(std::size_t bytes, std::size_t limit) {
  std::size_t live = live_;
  do {
    if (live > limit || bytes > limit - live) return false;
  } while (!live_.compare_exchange_weak(live, live + bytes));
  return true;
}

// ---- The streams' threads

/// Under the mutex.
std::shared_ptr<Queue> AsyncDevice::Impl::open_queue(std::chrono::microseconds delay) {
  auto queue = std::make_shared<Queue>();
  queue->delay = delay;
  queue->generation = generation;
  queues.push_back(queue);
  queue->worker = std::thread([this, queue = queue.get()] { work(*queue); });
  return queue;
}

std::shared_ptr<Lane> AsyncDevice::Impl::open_lane() {
  std::vector<std::shared_ptr<Queue>> closed;
  auto lane = std::make_shared<Lane>();
  {
    const std::lock_guard lock(mutex);
    std::erase_if(queues, [&](const std::shared_ptr<Queue>& known) {
      if (known->ended) closed.push_back(known);
      return known->ended;
    });
    lane->queue = open_queue(options.delay + options.lag * static_cast<int>(queues.size()));
  }
  for (const auto& known : closed) known->worker.join();
  return lane;
}

void AsyncDevice::Impl::close(Lane& lane) {
  const std::lock_guard lock(mutex);
  lane.queue->closing = true;
  changed.notify_all();
}

void AsyncDevice::Impl::join_all() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
    for (const auto& queue : queues) queue->closing = true;
    changed.notify_all();
  }
  for (const auto& queue : queues) queue->worker.join();
}

bool AsyncDevice::Impl::idle() const {
  return std::all_of(queues.begin(), queues.end(),
                     [](const auto& queue) { return queue->pending.empty(); });
}

bool AsyncDevice::Impl::has_lost_work() const {
  return std::any_of(queues.begin(), queues.end(), [&](const auto& queue) {
    return queue->generation != generation && !queue->pending.empty();
  });
}

void AsyncDevice::Impl::require_current(std::uint64_t of, const char* what) const {
  require(of == generation, ErrorCode::device_lost,
          "{}: the device was lost, and with it {} made before", options.name, what);
}

void AsyncDevice::Impl::call(const char* what) {
  const std::lock_guard lock(mutex);
  call_locked(what);
}

void AsyncDevice::Impl::call_locked(const char* what) {
  ++calls;
  if (fault_in == 0 || --fault_in > 0) return;
  fault_happened = true;
  if (fault_loses) lose_locked(fmt::format("{} met an injected fault", what));
  fail(fault_code, "{}: {}: an injected fault", options.name, what);
}

Ref<Completion> AsyncDevice::Impl::submit(Lane& lane, Lane::Added& added) {
  auto submission = std::make_shared<Submission>();
  submission->steps = std::move(added.steps);
  const std::size_t ready = first_open_wait(submission->steps);
  const std::lock_guard lock(mutex);
  require_current(added.generation, "what was to be submitted");
  submission->number = ++submitted;
  submission->end = make_ref<AsyncCompletion>(shared_from_this(), submission->number);
  ++counts.submissions;
  if (lane.queue->generation != generation) lane.queue = open_queue(lane.queue->delay);
  if (idle()) {  // nothing in flight uses the memory
    submission->poisoner.cover(std::span(submission->steps).first(ready));
    submission->poisoned = ready;
  }
  lane.queue->pending.push_back(submission);
  changed.notify_all();
  return submission->end;
}

void AsyncDevice::Impl::work(Queue& queue) {
  Team alone(1);
  const TeamScope scope(alone);
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return queue.closing || !queue.pending.empty(); });
    if (queue.pending.empty()) break;
    const std::shared_ptr<Submission> submission = queue.pending.front();
    const bool skipped = queue.generation != generation;
    lock.unlock();
    std::shared_ptr<const Failure> error;
    try {
      if (!skipped) {
        std::this_thread::sleep_for(queue.delay);
        run(*submission);
      }
    } catch (...) {
      error = failure_of(std::current_exception());
    }
    submission->steps.clear();  // lets go of memory, before anyone is told
    lock.lock();
    end(queue, error);
  }
  queue.ended = true;
}

void AsyncDevice::Impl::end(Queue& queue, std::shared_ptr<const Failure> error) {
  Submission& submission = *queue.pending.front();
  ended = submission.number;
  submission.status = "ended";
  if (!submission.end->error) submission.end->error = std::move(error);
  submission.end->ended = true;
  queue.pending.pop_front();
  if (!has_lost_work()) quarantine.clear();
  changed.notify_all();
}

void AsyncDevice::Impl::run(Submission& submission) {
  const std::span<Step> steps(submission.steps);
  // What lies behind a wait may be in use until the wait is over.
  const auto poison_from = [&](std::size_t begin) {
    std::size_t end = begin;
    while (end < steps.size() && !std::holds_alternative<WaitStep>(steps[end])) ++end;
    begin = std::max(begin, submission.poisoned);
    if (begin < end) submission.poisoner.cover(steps.subspan(begin, end - begin));
  };
  poison_from(0);
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    const bool waits = i < steps.size() && std::holds_alternative<WaitStep>(steps[i]);
    const bool ends =
        waits || i == steps.size() || std::holds_alternative<RecordedBarrier>(steps[i]);
    if (!ends) continue;
    run_unordered(submission, steps.subspan(begin, i - begin));
    begin = i + 1;
    if (i < steps.size() && !waits) count_barrier();
    if (!waits) continue;
    run_step(submission, steps[i]);
    poison_from(begin);
  }
}

void AsyncDevice::Impl::count_barrier() {
  const std::lock_guard lock(mutex);
  ++counts.barriers;
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
  const View& workspace = launch.workspace;
  if (workspace.buffer) poison(workspace.host(), launch.kernel->traits().workspace_bytes);
  try {
    cpu_device().default_stream()->encode(launch.kernel->inner, launch.inputs, launch.outputs,
                                          workspace, launch.extent);
  } catch (const Error& e) {
    fail(e.code(), "{}: {}: {}", options.name, launch.label, e.what());
  }
  const std::lock_guard lock(mutex);
  ++counts.dispatches[launch.kernel->name];
}

void AsyncDevice::Impl::run_copy(const CopyStep& copy) {
  if (copy.bytes > 0)
    std::memmove(copy.to->host() + copy.to_offset, copy.from->host() + copy.from_offset,
                 copy.bytes);
  const std::lock_guard lock(mutex);
  ++counts.copies;
  counts.copied_bytes += copy.bytes;
}

void AsyncDevice::Impl::hang_if_asked() {
  std::unique_lock lock(mutex);
  if (hang_in == 0 || --hang_in > 0) return;
  const std::uint64_t began_in = generation;
  hung = true;
  changed.notify_all();
  changed.wait(lock, [&] { return releasing || stopping; });
  hung = false;
  if (generation == began_in) lose_locked("a kernel that hung was ended");
  fail(ErrorCode::device_lost, "{}: the device was lost while this ran", options.name);
}

// ---- Loss

Error AsyncDevice::Impl::timed_out(const AsyncCompletion& end,
                                   std::chrono::nanoseconds timeout) const {
  std::string status = "unknown", last;
  for (const auto& queue : queues) {
    for (const auto& submission : queue->pending) {
      if (submission->number == end.number()) status = submission->status;
    }
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

void AsyncDevice::Impl::lose_locked(const std::string& why) {
  ++generation;
  for (const auto& queue : queues) {
    queue->closing = true;
    for (const auto& submission : queue->pending) {
      if (submission->end->error) continue;
      submission->end->error = std::make_shared<const Failure>(
          Failure{ErrorCode::device_lost,
                  fmt::format("{}: the device was lost while submission {} was pending: {}",
                              options.name, submission->number, why)});
    }
  }
  changed.notify_all();
}

void AsyncDevice::Impl::retire(Ref<Buffer> memory, std::uint64_t of) {
  const std::lock_guard lock(mutex);
  if (of != generation && has_lost_work()) quarantine.push_back(std::move(memory));
}

// ---- The device

AsyncDevice::AsyncDevice(AsyncOptions options)
    : impl_(std::make_shared<Impl>(*this, std::move(options))) {
  const std::lock_guard lock(impl_->mutex);
  impl_->main->queue = impl_->open_queue(impl_->options.delay);
}

AsyncDevice::~AsyncDevice() {
  impl_->join_all();
}

std::string_view AsyncDevice::name() const noexcept {
  return impl_->options.name;
}

DeviceInfo AsyncDevice::describe() const {
  return {.hardware = "a CPU in disguise",
          .driver = "heddle's tests",
          .memory = impl_->options.memory_limit.value_or(0),
          .largest_allocation = impl_->options.largest_allocation.value_or(0),
          .details = {{"shuffled", impl_->options.shuffle ? "yes" : "no"}}};
}

Prepared AsyncDevice::prepare(const Op& op, std::span<const OperandSpec> inputs,
                              std::span<const OperandSpec> outputs) {
  impl_->call("prepare");
  const std::uint64_t generation = impl_->generation;
  if (impl_->options.accepts && !impl_->options.accepts(op)) {
    return {nullptr, fmt::format("{} has no {}", impl_->options.name, heddle::name(op))};
  }
  Prepared prepared = cpu_device().prepare(op, inputs, outputs);
  if (!prepared) return prepared;
  KernelTraits traits = prepared.kernel->traits();
  traits.workspace_bytes += impl_->options.workspace;
  if (impl_->options.offers_any_order) offer_any_order(op, inputs, outputs, traits);
  return {std::make_shared<AsyncKernel>(heddle::name(op), std::move(prepared.kernel),
                                        std::move(traits), generation),
          {}};
}

std::optional<LayoutKind> AsyncDevice::preferred_layout(const Op& op, std::size_t operand,
                                                        std::span<const TensorSpec> inputs) const {
  return impl_->options.packs ? cpu_device().preferred_layout(op, operand, inputs) : std::nullopt;
}

Ref<Buffer> AsyncDevice::allocate(std::size_t bytes, MemoryKind kind) {
  impl_->call("allocate");
  const auto [limit, largest] =
      std::pair(impl_->options.memory_limit, impl_->options.largest_allocation);
  require(!largest || bytes <= *largest, ErrorCode::out_of_memory,
          "{}: {} bytes at once are more than {}", impl_->options.name, bytes, largest.value_or(0));
  require(impl_->memory_count->add(bytes, limit.value_or(~std::size_t{0})),
          ErrorCode::out_of_memory, "{}: no memory for {} bytes: {} of {} are taken",
          impl_->options.name, bytes, impl_->memory_count->live(), limit.value_or(0));
  Ref<Buffer> memory;
  try {
    memory = make_ref<AsyncMemory>(allocate_host(bytes), impl_->memory_count);
  } catch (...) {
    impl_->memory_count->subtract(bytes);
    throw;
  }
  poison(memory->host(), bytes);
  const bool visible = kind == MemoryKind::host_visible || !impl_->options.hides_local;
  return make_ref<AsyncBuffer>(*this, impl_, std::move(memory), bytes, visible);
}

Ref<Buffer> AsyncDevice::import_host(std::span<std::byte> memory,
                                     std::shared_ptr<const void> owner) {
  impl_->call("import");
  const bool whole_pages =
      (std::bit_cast<std::uintptr_t>(memory.data()) | memory.size()) % page_size() == 0;
  if (!whole_pages || memory.size() > impl_->options.most_imported) return nullptr;
  const std::size_t bytes = memory.size();
  Ref<Buffer> imported = cpu_device().import_host(memory, std::move(owner));
  return make_ref<AsyncBuffer>(*this, impl_, std::move(imported), bytes, true);
}

std::uint64_t AsyncDevice::generation() const noexcept {
  return impl_->generation;
}

bool AsyncDevice::shares_host_memory() const noexcept {
  return !impl_->options.hides_local;
}

Ref<Stream> AsyncDevice::default_stream() {
  return make_async_stream(impl_, impl_->main, false);  // all of them share the lane
}

Ref<Stream> AsyncDevice::new_stream() {
  return make_async_stream(impl_, impl_->open_lane(), true);
}

std::unique_ptr<Recording> AsyncDevice::record(std::span<const RecordedStep> steps) {
  impl_->call("record");
  if (impl_->options.on_record) impl_->options.on_record(steps);
  {
    const std::lock_guard lock(impl_->mutex);
    ++impl_->counts.recorded;
  }
  return make_async_recording(steps, *impl_);
}

std::unique_ptr<BindingTable> AsyncDevice::make_binding_table(std::size_t slots) {
  return make_async_table(impl_, slots);
}

void AsyncDevice::fail_call(std::uint64_t n, ErrorCode code) {
  const std::lock_guard lock(impl_->mutex);
  impl_->fault_in = n;
  impl_->fault_code = code;
  impl_->fault_happened = impl_->fault_loses = false;
}

void AsyncDevice::lose_at_call(std::uint64_t n) {
  const std::lock_guard lock(impl_->mutex);
  impl_->fault_in = n;
  impl_->fault_code = ErrorCode::device_lost;
  impl_->fault_happened = false;
  impl_->fault_loses = true;
}

void AsyncDevice::lose() {
  const std::lock_guard lock(impl_->mutex);
  impl_->lose_locked("the test pulled the plug");
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

void AsyncDevice::wait_for_hang() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->hung; });
}

void AsyncDevice::end_hang() {
  std::unique_lock lock(impl_->mutex);
  impl_->releasing = true;
  impl_->changed.notify_all();
  impl_->changed.wait(lock, [&] { return impl_->idle(); });
  impl_->releasing = false;
  impl_->hang_in = 0;
}

std::size_t AsyncDevice::quarantined_bytes() const {
  const std::lock_guard lock(impl_->mutex);
  std::size_t bytes = 0;
  for (const Ref<Buffer>& memory : impl_->quarantine) bytes += memory->size();
  return bytes;
}

std::size_t AsyncDevice::live_bytes() const {
  return impl_->memory_count->live();
}

DeviceCounts AsyncDevice::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}

std::uint64_t AsyncDevice::driver_calls() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->calls;
}

std::uint64_t AsyncDevice::kernels() const {
  std::uint64_t sum = 0;
  for (const auto& [name, launches] : counts().dispatches) sum += launches;
  return sum;
}

}  // namespace heddle::test
