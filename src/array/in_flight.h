// Batches that were submitted and have not ended, of all evaluations in the process.
#pragma once

#include "heddle/device.h"

namespace heddle::in_flight {

// Thread-safe. Errors of the work awaited are left to those who read its results.

/// Blocks while `stream` has as many batches in flight as settings().batches_in_flight allows.
void make_room(const Stream& stream);
void add(const Stream& stream, Ref<Completion> end);
/// Waits for the oldest batch on any stream of `device`; false if there is none.
bool wait_for_oldest(const Device& device);

}  // namespace heddle::in_flight
