// What a device that was lost may still be working with: kept until its work has ended.
#pragma once

#include <memory>

#include "heddle/completion.h"

namespace heddle {

// Thread-safe. Neither waits for work.

/// Keeps `what` until `end` is done.
void keep_until_done(Ref<Completion> end, std::shared_ptr<const void> what);
/// Lets go of what is kept for work that has ended by now. `keep_until_done` does so too.
void drop_what_ended();

}  // namespace heddle
