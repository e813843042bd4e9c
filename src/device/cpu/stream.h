// Running kernels: at once, or from a recording.
#pragma once

#include <memory>
#include <span>

#include "heddle/device.h"

namespace heddle::cpu {

/// A stream that computes on the calling thread and its team before `encode` returns. So every
/// error is known there: it throws, and submissions have always ended well.
Ref<Stream> make_stream(Device& device);

/// Throws invalid_argument naming the step when a step's kernel is not this device's, has another
/// number of operands, or reaches beyond what a slot view gives it.
std::unique_ptr<Recording> make_recording(std::span<const RecordedStep> steps);

std::unique_ptr<BindingTable> make_binding_table(std::size_t slots);

}  // namespace heddle::cpu
