#include "array/in_flight.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "base/settings.h"
#include "heddle/error.h"

namespace heddle::in_flight {

namespace {

struct Submitted {
  const Stream* stream;  // compared only: it may be gone
  const Device* device;
  Ref<Completion> end;
};

struct Registry {
  std::mutex mutex;
  std::deque<Submitted> submitted;  // oldest first
};

// Never destroyed: devices in static variables may submit late.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

/// Waits, and forgets the batch: after a timeout it may never be done.
void see_out(const Ref<Completion>& end) {
  try {
    end->wait();
  } catch (const Error&) {
  }
  Ref<Completion> forgotten;  // dropped outside the lock
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto found = std::ranges::find(known.submitted, end, &Submitted::end);
  if (found == known.submitted.end()) return;
  forgotten = std::move(found->end);
  known.submitted.erase(found);
}

/// The oldest that `matches`, out of more than `allowed`; what has ended is forgotten.
template <class Matches>
Ref<Completion> oldest_beyond(std::size_t allowed, const Matches& matches) {
  std::vector<Ref<Completion>> ended;  // dropped outside the lock: buffers may go with them
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.submitted, [&](Submitted& s) {
    if (!s.end->done()) return false;
    ended.push_back(std::move(s.end));
    return true;
  });
  Ref<Completion> oldest;
  std::size_t count = 0;
  for (const Submitted& s : known.submitted) {
    if (!matches(s)) continue;
    if (++count == 1) oldest = s.end;
  }
  return count > allowed ? oldest : nullptr;
}

}  // namespace

void make_room(const Stream& stream) {
  const auto most = static_cast<std::size_t>(settings().batches_in_flight);
  const auto of_stream = [&](const Submitted& s) { return s.stream == &stream; };
  while (const Ref<Completion> oldest = oldest_beyond(most - 1, of_stream)) see_out(oldest);
}

void add(const Stream& stream, Ref<Completion> end) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  known.submitted.push_back({&stream, &stream.device(), std::move(end)});
}

bool wait_for_oldest(const Device& device) {
  const auto of_device = [&](const Submitted& s) { return s.device == &device; };
  const Ref<Completion> oldest = oldest_beyond(0, of_device);
  if (oldest) see_out(oldest);
  return oldest != nullptr;
}

}  // namespace heddle::in_flight
