#include "exec/transfer.h"

#include <cstring>

#include "heddle/device.h"

namespace heddle {

void copy_buffer(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
                 std::size_t to_offset, std::size_t bytes) {
  if (bytes == 0) return;
  const Ref<Stream> stream =
      from->host() ? to->device().default_stream() : from->device().default_stream();
  if (const auto write = from->last_write()) stream->wait_for(write);
  for (const auto& use : to->last_uses()) stream->wait_for(use);
  stream->copy(from, from_offset, to, to_offset, bytes);
  const Ref<Completion> end = stream->submit();
  end->wait();
  from->note_read(end);
  to->note_write(end);
}

void read_buffer(const Ref<Buffer>& buffer, std::size_t offset, std::span<std::byte> out) {
  if (out.empty()) return;
  if (!buffer->host()) {
    const Ref<Buffer> staging = buffer->device().allocate(out.size(), MemoryKind::host_visible);
    copy_buffer(buffer, offset, staging, 0, out.size());
    std::memcpy(out.data(), staging->host(), out.size());
    return;
  }
  buffer->wait_for_writes();
  std::memcpy(out.data(), buffer->host() + offset, out.size());
}

void write_buffer(const Ref<Buffer>& buffer, std::size_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (!buffer->host()) {
    const Ref<Buffer> staging = buffer->device().allocate(bytes.size(), MemoryKind::host_visible);
    std::memcpy(staging->host(), bytes.data(), bytes.size());
    copy_buffer(staging, 0, buffer, offset, bytes.size());
    return;
  }
  buffer->wait_for_uses();
  std::memcpy(buffer->host() + offset, bytes.data(), bytes.size());
}

void clear_buffer(const Ref<Buffer>& buffer, std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  if (!buffer->host()) {
    const Ref<Buffer> staging = buffer->device().allocate(bytes, MemoryKind::host_visible);
    std::memset(staging->host(), 0, bytes);
    copy_buffer(staging, 0, buffer, offset, bytes);
    return;
  }
  buffer->wait_for_uses();
  std::memset(buffer->host() + offset, 0, bytes);
}

}  // namespace heddle
