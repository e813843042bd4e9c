#include "exec/retired.h"

#include <mutex>
#include <utility>
#include <vector>

namespace heddle {

namespace {

struct Kept {
  Ref<Completion> until;
  std::shared_ptr<const void> what;
};

struct Retired {
  std::mutex mutex;
  std::vector<Kept> kept;
};

// Never destroyed: work may be out there until the process ends.
Retired& retired() {
  static Retired& instance = *new Retired;
  return instance;
}

}  // namespace

void keep_until_done(Ref<Completion> end, std::shared_ptr<const void> what) {
  {
    Retired& all = retired();
    const std::lock_guard lock(all.mutex);
    all.kept.push_back({std::move(end), std::move(what)});
  }
  drop_what_ended();
}

void drop_what_ended() {
  std::vector<Kept> ended;  // dropped outside the lock
  Retired& all = retired();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.kept, [&](Kept& one) {
    if (!one.until->done()) return false;
    ended.push_back(std::move(one));
    return true;
  });
}

}  // namespace heddle
