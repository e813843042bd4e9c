#include "device/vulkan/completion.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/settings.h"

namespace heddle::vulkan {

// ---- The order of a stream

Timeline::Timeline(std::shared_ptr<Context> context)
    : context_(std::move(context)), queue_(context_->next_queue()) {
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  context_->check(call(Site::queue_semaphore,
                       [&] {
                         return context_->vk.vkCreateSemaphore(context_->device, &info, nullptr,
                                                               &semaphore_);
                       }),
                  "vkCreateSemaphore");
}

Timeline::~Timeline() {
  if (idle()) context_->vk.vkDestroySemaphore(context_->device, semaphore_, nullptr);
}

std::uint64_t Timeline::reached() {
  std::uint64_t value = 0;
  const VkResult result = call(Site::counter, [&] {
    return context_->vk.vkGetSemaphoreCounterValue(context_->device, semaphore_, &value);
  });
  if (result == VK_SUCCESS) return value;
  if (result == VK_ERROR_DEVICE_LOST) {
    context_->lose({ErrorCode::device_lost, fmt::format("{}: vkGetSemaphoreCounterValue failed: {}",
                                                        context_->name(), to_string(result))});
  }
  return 0;
}

bool Timeline::idle() {
  const std::lock_guard lock(mutex_);
  std::uint64_t value = 0;
  const VkResult result =
      context_->vk.vkGetSemaphoreCounterValue(context_->device, semaphore_, &value);
  if (result == VK_SUCCESS && value < submitted_) return false;
  quarantine_.clear();
  return true;
}

void Timeline::retire() {
  if (context_->lost()) return;
  const std::uint64_t value = reached();
  std::vector<Ref<Submission>> ended;
  {
    const std::lock_guard lock(mutex_);
    while (!in_flight_.empty() && in_flight_.front()->last() <= value) {
      ended.push_back(std::move(in_flight_.front()));
      in_flight_.pop_front();
    }
  }
  for (const auto& submission : ended) submission->settle();
}

void Timeline::fail_pending() {
  std::deque<Ref<Submission>> pending;
  {
    const std::lock_guard lock(mutex_);
    pending.swap(in_flight_);
  }
  const auto loss = context_->loss();
  for (const auto& submission : pending) {
    {
      const std::lock_guard lock(submission->mutex_);
      const std::lock_guard own(mutex_);
      quarantine_.push_back(std::move(submission->work_.kept));
    }
    submission->settle_failed(loss);
  }
}

Ref<Submission> Timeline::submit(std::span<const VkCommandBuffer> pieces, Work work) {
  retire();
  context_->throw_if_lost();

  // What it waits for on other streams of this device; the last of each is enough.
  std::vector<VkSemaphore> semaphores;
  std::vector<std::uint64_t> values;
  for (const Ref<Submission>& other : work.after) {
    if (&other->timeline() == this) continue;  // in order as it is
    semaphores.push_back(other->timeline().semaphore());
    values.push_back(other->last());
  }
  const std::vector<VkPipelineStageFlags> stages(semaphores.size(),
                                                 VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);

  const std::lock_guard queue_lock(queue_.mutex);
  // Without commands it is a submission all the same: it ends when what it waits for has.
  const std::size_t count = std::max<std::size_t>(pieces.size(), 1);
  const std::uint64_t first = submitted_ + 1, last = submitted_ + count;
  std::vector<VkTimelineSemaphoreSubmitInfo> timelines(
      count, {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO});
  std::vector<VkSubmitInfo> infos(count, {VK_STRUCTURE_TYPE_SUBMIT_INFO});
  std::vector<std::uint64_t> signals(count);
  for (std::size_t i = 0; i < count; ++i) {
    signals[i] = first + i;
    timelines[i].signalSemaphoreValueCount = 1;
    timelines[i].pSignalSemaphoreValues = &signals[i];
    infos[i].pNext = &timelines[i];
    infos[i].commandBufferCount = pieces.empty() ? 0 : 1;
    infos[i].pCommandBuffers = pieces.empty() ? nullptr : &pieces[i];
    infos[i].signalSemaphoreCount = 1;
    infos[i].pSignalSemaphores = &semaphore_;
  }
  timelines[0].waitSemaphoreValueCount = infos[0].waitSemaphoreCount =
      static_cast<std::uint32_t>(semaphores.size());
  timelines[0].pWaitSemaphoreValues = values.data();
  infos[0].pWaitSemaphores = semaphores.data();
  infos[0].pWaitDstStageMask = stages.data();

  auto submission = make_ref<Submission>(shared_from_this(), first, last, std::move(work));
  const auto driver = [&] {
    return context_->vk.vkQueueSubmit(queue_.handle, static_cast<std::uint32_t>(count),
                                      infos.data(), VK_NULL_HANDLE);
  };
  VkResult result = call(Site::submit_lost, [] { return VK_SUCCESS; });
  if (result == VK_SUCCESS) result = call(Site::submit, driver);
  if (result != VK_SUCCESS) context_->check(result, "vkQueueSubmit", submission->last_operations());
  context_->counters().submissions += count;
  const std::lock_guard lock(mutex_);
  submitted_ = last;
  in_flight_.push_back(submission);
  return submission;
}

// ---- One submission

Submission::Submission(std::shared_ptr<Timeline> timeline, std::uint64_t first, std::uint64_t last,
                       Work work)
    : timeline_(std::move(timeline)),
      first_(first),
      last_(last),
      extra_time_(work.extra_time),
      work_(std::move(work)) {}

bool Submission::done() const noexcept {
  if (settled_.load(std::memory_order_acquire)) return true;
  try {
    timeline_->retire();
  } catch (...) {  // no memory: it is asked again
  }
  return settled_.load(std::memory_order_acquire);
}

void Submission::wait(std::chrono::nanoseconds timeout) {
  for (std::uint64_t value = first_; value <= last_ && !settled_.load(std::memory_order_acquire);
       ++value) {
    // Each piece has the whole bound; only who waits that long also waits for the compiler.
    wait_for(value, timeout < settings().timeout ? timeout : timeout + extra_time_);
  }
  if (!settled_.load(std::memory_order_acquire)) {
    timeline_->retire();
    settle();
  }
  const std::lock_guard lock(mutex_);
  if (failure_) failure_->raise();
}

void Submission::wait_for(std::uint64_t value, std::chrono::nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  // Another thread may find the device lost meanwhile: waits look up now and then.
  constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(100);
  Context& context = timeline_->context();
  const VkSemaphore semaphore = timeline_->semaphore();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  const auto begin = Clock::now();
  VkResult result = call(Site::wait_timeout, [] { return VK_SUCCESS; });
  if (result == VK_TIMEOUT) timed_out(value, timeout);
  result = call(Site::wait_lost, [] { return VK_SUCCESS; });
  while (result == VK_SUCCESS || result == VK_TIMEOUT) {
    const auto left = timeout - (Clock::now() - begin);
    const auto slice = std::clamp(left, std::chrono::nanoseconds(0), kSlice);
    result = call(Site::wait, [&] {
      return context.vk.vkWaitSemaphores(context.device, &info,
                                         static_cast<std::uint64_t>(slice.count()));
    });
    if (result == VK_SUCCESS || settled_.load(std::memory_order_acquire)) return;
    if (result == VK_TIMEOUT && left <= std::chrono::nanoseconds(0)) timed_out(value, timeout);
  }
  if (context.lost()) {
    settle_failed(context.loss());
    return;
  }
  // Whatever the driver said, how far the work is can no longer be known.
  context.lose({result == VK_ERROR_DEVICE_LOST ? ErrorCode::device_lost : ErrorCode::backend,
                fmt::format("{}: vkWaitSemaphores failed: {}: {}", context.name(),
                            to_string(result), last_operations())});
}

void Submission::timed_out(std::uint64_t value, std::chrono::nanoseconds timeout) {
  Context& context = timeline_->context();
  const auto seconds = std::chrono::duration<double>(timeout).count();
  const Failure failure{
      ErrorCode::timeout,
      fmt::format("{}: after {:g} s a submission has not ended: waited for {}, reached {} of {} "
                  "submitted: {}",
                  context.name(), seconds, value, timeline_->reached(), last_, last_operations())};
  // Someone who waits for less than everyone may is only asking.
  if (timeout >= settings().timeout) {
    context.lose(failure);
    const std::lock_guard lock(mutex_);
    failure_ = std::make_shared<Failure>(failure);
  }
  failure.raise();
}

void Submission::settle() const noexcept {
  const std::lock_guard lock(mutex_);
  if (settled_.load(std::memory_order_relaxed)) return;
  try {
    failure_ = failure_of_work();
    for (const Work::HostCopy& copy : work_.host_copies) {
      std::memcpy(copy.to->host() + copy.offset, copy.from, copy.bytes);
    }
  } catch (...) {
    failure_ = heddle::failure_of(std::current_exception());
  }
  work_ = {};
  settled_.store(true, std::memory_order_release);
}

void Submission::settle_failed(std::shared_ptr<const Failure> failure) const noexcept {
  const std::lock_guard lock(mutex_);
  if (settled_.load(std::memory_order_relaxed)) return;
  failure_ = std::move(failure);
  settled_.store(true, std::memory_order_release);
}

std::shared_ptr<const Failure> Submission::failure_of_work() const {
  if (work_.failed) return work_.failed;
  for (const Ref<Submission>& other : work_.after) {
    other->settle();  // it has ended: this came after it
    const std::lock_guard lock(other->mutex_);
    if (other->failure_) return other->failure_;
  }
  for (const Work::Report& report : work_.reports) {
    const std::uint32_t launch = report.launch ? *report.launch : 0;
    if (launch == 0) continue;
    const auto& labels = *report.labels;
    return std::make_shared<Failure>(
        Failure{ErrorCode::invalid_argument,
                fmt::format("{}: {}: an index is out of bounds", timeline_->context().name(),
                            launch <= labels.size() ? labels[launch - 1] : "unknown")});
  }
  return nullptr;
}

std::string Submission::last_operations() const {
  constexpr std::size_t kMost = 16;
  const std::lock_guard lock(mutex_);
  std::string text;
  std::size_t count = 0;
  for (auto report = work_.reports.rbegin(); report != work_.reports.rend(); ++report) {
    const auto& labels = *report->labels;
    for (std::size_t i = labels.size(); i-- > 0 && count < kMost; ++count) {
      text = labels[i] + (text.empty() ? "" : ", ") + text;
    }
  }
  return text.empty() ? "it has no operations" : "its last operations: " + text;
}

}  // namespace heddle::vulkan
