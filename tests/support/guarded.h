// Memory between inaccessible pages, for operands of devices that import host memory: who leaves
// the operand faults.
#pragma once

#include <cstddef>
#include <span>

#include "heddle/device.h"

namespace heddle::test {

/// Which end of the memory lies flush against an inaccessible page. Buffers begin at multiples of
/// the device's alignment, so at the back fewer bytes than that may lie between.
enum class Flush { front, back };

/// A buffer that holds the bytes, read-only if `read_only`; null where the device imports nothing.
Ref<Buffer> guarded_buffer(Device& device, std::span<const std::byte> bytes, Flush flush,
                           bool read_only);

}  // namespace heddle::test
