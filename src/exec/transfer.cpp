#include "exec/transfer.h"

#include <algorithm>
#include <cstring>

#include "heddle/device.h"

namespace heddle {

namespace {

// Staging takes no more than this, and no submission moves more.
constexpr std::size_t kPieceBytes = std::size_t{16} << 20;

/// Calls move(staging, at, size) for piece after piece of `bytes` bytes.
template <class Move>
void in_pieces(Device& device, std::size_t bytes, const Move& move) {
  const std::size_t most = std::min(bytes, kPieceBytes);
  const Ref<Buffer> staging = device.allocate(most, MemoryKind::host_visible);
  for (std::size_t at = 0; at < bytes; at += most) move(staging, at, std::min(most, bytes - at));
}

}  // namespace

void copy_buffer(const Ref<Buffer>& from, std::size_t from_offset, const Ref<Buffer>& to,
                 std::size_t to_offset, std::size_t bytes) {
  if (bytes == 0) return;
  from->check_alive();
  to->check_alive();
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
    return in_pieces(buffer->device(), out.size(), [&](const auto& staging, auto at, auto size) {
      copy_buffer(buffer, offset + at, staging, 0, size);
      std::memcpy(out.data() + at, staging->host(), size);
    });
  }
  buffer->wait_for_writes();
  std::memcpy(out.data(), buffer->host() + offset, out.size());
}

void write_buffer(const Ref<Buffer>& buffer, std::size_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (!buffer->host()) {
    return in_pieces(buffer->device(), bytes.size(), [&](const auto& staging, auto at, auto size) {
      std::memcpy(staging->host(), bytes.data() + at, size);
      copy_buffer(staging, 0, buffer, offset + at, size);
    });
  }
  buffer->wait_for_uses();
  std::memcpy(buffer->host() + offset, bytes.data(), bytes.size());
}

void clear_buffer(const Ref<Buffer>& buffer, std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  if (!buffer->host()) {
    return in_pieces(buffer->device(), bytes, [&](const auto& staging, auto at, auto size) {
      if (at == 0) std::memset(staging->host(), 0, size);
      copy_buffer(staging, 0, buffer, offset + at, size);
    });
  }
  buffer->wait_for_uses();
  std::memset(buffer->host() + offset, 0, bytes);
}

}  // namespace heddle
