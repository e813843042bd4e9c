// Evaluation, for the parts of heddle that read arrays without going through their values.
#pragma once

#include <optional>
#include <span>

#include "array/node.h"

namespace heddle {

/// Runs what `arrays` need, without waiting for devices. The error of each that has no value now,
/// in order; results may still be in flight.
std::vector<std::optional<Failure>> evaluate(std::span<const Array> arrays);

}  // namespace heddle
