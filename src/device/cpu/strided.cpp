#include "device/cpu/strided.h"

#include <algorithm>
#include <cstring>

namespace heddle::cpu {

Walk make_walk(const Shape& shape, const Dims& strides) {
  Walk walk;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    walk.count *= shape[i];
    if (shape[i] == 1) continue;
    if (strides[i] < 0) walk.first -= (shape[i] - 1) * strides[i];
    const auto last = static_cast<std::size_t>(walk.rank) - 1;
    if (walk.rank > 0 && walk.strides[last] == strides[i] * shape[i]) {
      walk.extents[last] *= shape[i];
      walk.strides[last] = strides[i];
    } else {
      walk.extents[last + 1] = shape[i];
      walk.strides[last + 1] = strides[i];
      ++walk.rank;
    }
  }
  return walk;
}

std::int64_t offset_of(const Walk& walk, std::int64_t flat) {
  std::int64_t offset = walk.first;
  for (int axis = walk.rank - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    offset += flat % walk.extents[a] * walk.strides[a];
    flat /= walk.extents[a];
  }
  return offset;
}

namespace {

/// Where a walk stands: one index an axis, and the offset in elements from the lowest on.
struct Position {
  std::array<std::int64_t, kMaxRank> index{};
  std::int64_t offset = 0;

  Position(const Walk& walk, std::int64_t flat) : offset(walk.first) {
    for (int axis = walk.rank - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      index[a] = flat % walk.extents[a];
      flat /= walk.extents[a];
      offset += index[a] * walk.strides[a];
    }
  }

  /// Goes `n` elements on, which must not lead beyond the end of the last axis.
  void advance(const Walk& walk, std::int64_t n) {
    auto a = static_cast<std::size_t>(walk.rank) - 1;
    index[a] += n;
    offset += n * walk.strides[a];
    while (index[a] == walk.extents[a] && a > 0) {
      offset += walk.strides[a - 1] - index[a] * walk.strides[a];
      index[a] = 0;
      --a;
      ++index[a];
    }
  }
};

/// Calls copy_run(offset, stride, length) for pieces of elements [begin, begin + n), in order.
template <class CopyRun>
void for_runs(const Walk& walk, std::int64_t begin, std::int64_t n, const CopyRun& copy_run) {
  if (n <= 0) return;
  if (walk.rank == 0) return copy_run(walk.first, 0, n);
  const auto last = static_cast<std::size_t>(walk.rank) - 1;
  Position at(walk, begin);
  while (n > 0) {
    const std::int64_t run = std::min(n, walk.extents[last] - at.index[last]);
    copy_run(at.offset, walk.strides[last], run);
    n -= run;
    at.advance(walk, run);
  }
}

template <class T>
void gather_as(const Walk& walk, const std::byte* base, std::int64_t begin, std::int64_t n,
               std::byte* dst) {
  auto* out = reinterpret_cast<T*>(dst);
  const auto* in = reinterpret_cast<const T*>(base);
  for_runs(walk, begin, n, [&](std::int64_t offset, std::int64_t stride, std::int64_t run) {
    const T* from = in + offset;
    if (stride == 1) {
      std::memcpy(out, from, static_cast<std::size_t>(run) * sizeof(T));
    } else if (stride == 0) {
      std::fill_n(out, run, *from);
    } else {
      for (std::int64_t i = 0; i < run; ++i) out[i] = from[i * stride];
    }
    out += run;
  });
}

void gather_bytes(const Walk& walk, std::size_t item, const std::byte* base, std::int64_t begin,
                  std::int64_t n, std::byte* dst) {
  for_runs(walk, begin, n, [&](std::int64_t offset, std::int64_t stride, std::int64_t run) {
    const auto bytes = static_cast<std::int64_t>(item);
    const std::byte* from = base + offset * bytes;
    if (stride == 1) {
      std::memcpy(dst, from, static_cast<std::size_t>(run) * item);
      dst += run * bytes;
      return;
    }
    for (std::int64_t i = 0; i < run; ++i, dst += bytes) {
      std::memcpy(dst, from + i * stride * bytes, item);
    }
  });
}

template <class T>
void scatter_as(const Walk& walk, const std::byte* src, std::int64_t begin, std::int64_t n,
                std::byte* base) {
  auto* out = reinterpret_cast<T*>(base);
  const auto* in = reinterpret_cast<const T*>(src);
  for_runs(walk, begin, n, [&](std::int64_t offset, std::int64_t stride, std::int64_t run) {
    T* to = out + offset;
    if (stride == 1) {
      std::memcpy(to, in, static_cast<std::size_t>(run) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < run; ++i) to[i * stride] = in[i];
    }
    in += run;
  });
}

}  // namespace

void gather(const Walk& walk, std::size_t item, const std::byte* base, std::int64_t begin,
            std::int64_t n, std::byte* dst) {
  switch (item) {
    case 1:
      return gather_as<std::uint8_t>(walk, base, begin, n, dst);
    case 2:
      return gather_as<std::uint16_t>(walk, base, begin, n, dst);
    case 4:
      return gather_as<std::uint32_t>(walk, base, begin, n, dst);
    case 8:
      return gather_as<std::uint64_t>(walk, base, begin, n, dst);
    default:
      return gather_bytes(walk, item, base, begin, n, dst);
  }
}

void scatter(const Walk& walk, std::size_t item, const std::byte* src, std::int64_t begin,
             std::int64_t n, std::byte* base) {
  switch (item) {
    case 1:
      return scatter_as<std::uint8_t>(walk, src, begin, n, base);
    case 2:
      return scatter_as<std::uint16_t>(walk, src, begin, n, base);
    case 4:
      return scatter_as<std::uint32_t>(walk, src, begin, n, base);
    default:
      return scatter_as<std::uint64_t>(walk, src, begin, n, base);
  }
}

}  // namespace heddle::cpu
