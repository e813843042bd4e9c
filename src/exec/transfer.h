// Bytes between host memory and any device's buffers. Each waits, in bounded time, for whatever
// uses the buffer, and throws device_lost for memory that went with its device.
#pragma once

#include <span>

#include "heddle/buffer.h"

namespace heddle {

void read_buffer(const Ref<Buffer>& buffer, std::size_t offset, std::span<std::byte> out);
void write_buffer(const Ref<Buffer>& buffer, std::size_t offset, std::span<const std::byte> bytes);
void clear_buffer(const Ref<Buffer>& buffer, std::size_t offset, std::size_t bytes);
/// Between buffers of one device.
void copy_buffer(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
                 std::size_t to_offset, std::size_t bytes);

}  // namespace heddle
