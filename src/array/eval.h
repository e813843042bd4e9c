// Evaluation, for the parts of heddle that read arrays without going through their values.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "array/node.h"
#include "array/order.h"

namespace heddle {

using Failures = std::vector<std::shared_ptr<const Failure>>;

/// Runs what `arrays` need, without waiting for devices. What keeps each from having a value, in
/// order, null for nothing; results may still be in flight.
Failures evaluate(std::span<const Array> arrays);
/// The same along a tape that was made before.
Failures evaluate(std::span<const Array> arrays, Tape tape);

}  // namespace heddle
