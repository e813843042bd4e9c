#include "device/cpu/slices.h"

#include <algorithm>
#include <cstring>

namespace heddle::cpu {

namespace {

// Slices lie anywhere, so that nothing but the offsets says what comes next. About this many bytes
// are fetched ahead; of each slice its first lines, after which the processor sees where it goes.
constexpr std::int64_t kAheadBytes = 4096;
constexpr std::int64_t kMostAhead = 32, kLine = 64, kFetchedLines = 4;

/// `kBytes` at compile time, or 0.
template <std::size_t kBytes>
void copy_dense(const std::byte* from, const std::int64_t* offsets, std::int64_t n,
                std::int64_t bytes, std::byte* out) {
  const auto size = kBytes > 0 ? static_cast<std::int64_t>(kBytes) : bytes;
  const std::int64_t ahead = std::clamp<std::int64_t>(kAheadBytes / size, 1, kMostAhead);
  const std::int64_t fetched = std::min(size, kFetchedLines * kLine);
  for (std::int64_t i = 0; i < n; ++i) {
    if (i + ahead < n) {
      const std::byte* next = from + offsets[i + ahead];
      for (std::int64_t at = 0; at < fetched; at += kLine) __builtin_prefetch(next + at);
    }
    std::memcpy(out + i * size, from + offsets[i], static_cast<std::size_t>(size));
  }
}

/// Items that are moved with one instruction: so many are in flight at once that nothing needs to
/// be fetched ahead.
template <class U>
void copy_items(const std::byte* from, const std::int64_t* offsets, std::int64_t n,
                std::byte* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::memcpy(out + i * static_cast<std::int64_t>(sizeof(U)), from + offsets[i], sizeof(U));
  }
}

}  // namespace

Slices::Slices(const Shape& shape, const Dims& strides, std::size_t item)
    : walk_(make_walk(shape, strides)), item_(item), outer_(walk_.rank) {
  const auto last = static_cast<std::size_t>(walk_.rank) - 1;
  if (walk_.rank > 0 && walk_.strides[last] == 1) {
    run_ = walk_.extents[last];
    --outer_;
  }
  if (walk_.count == 0) return;
  span_ = 1;
  for (std::size_t i = 0; i <= last && walk_.rank > 0; ++i) {
    span_ += (walk_.extents[i] - 1) * walk_.strides[i];
  }
}

void Slices::copy(const std::byte* from, const std::int64_t* offsets, std::int64_t n,
                  std::byte* out) const {
  const std::int64_t bytes = walk_.count * static_cast<std::int64_t>(item_);
  if (bytes == 0) return;
  if (!walk_.dense()) {
    for (std::int64_t i = 0; i < n; ++i)
      copy_part(from + offsets[i], 0, walk_.count, out + i * bytes);
    return;
  }
  switch (bytes) {
    case 1:
      return copy_items<std::uint8_t>(from, offsets, n, out);
    case 2:
      return copy_items<std::uint16_t>(from, offsets, n, out);
    case 4:
      return copy_items<std::uint32_t>(from, offsets, n, out);
    case 8:
      return copy_items<std::uint64_t>(from, offsets, n, out);
    case 16:
      return copy_dense<16>(from, offsets, n, bytes, out);
    case 32:
      return copy_dense<32>(from, offsets, n, bytes, out);
    case 64:
      return copy_dense<64>(from, offsets, n, bytes, out);
    case 128:
      return copy_dense<128>(from, offsets, n, bytes, out);
    case 256:
      return copy_dense<256>(from, offsets, n, bytes, out);
    default:
      return copy_dense<0>(from, offsets, n, bytes, out);
  }
}

}  // namespace heddle::cpu
