// What element-wise kernels decide that go block by block and stream what they give.
#pragma once

#include <algorithm>

#include "device/cpu/block_io.h"
#include "device/cpu/kernel.h"
#include "device/cpu/prefetch.h"
#include "device/cpu/streaming.h"

namespace heddle::cpu {

/// Whether the output lies over an input: what was just read is in a cache already, so that
/// streaming it would only be slower.
inline bool overwrites_input(const Launch& launch) {
  return std::ranges::any_of(
      launch.inputs, [&](const Operand& input) { return input.data == launch.outputs[0].data; });
}

/// After n elements of `source` are read: asks for those that follow some blocks later.
inline void fetch_ahead(const BlockSource& source, const std::byte* base, std::int64_t begin,
                        std::int64_t n) {
  if (!source.dense()) return;
  const std::byte* next = source.at(base, begin + kStreamedAhead);
  prefetch_later(next, source.at(next, n) - next);
}

}  // namespace heddle::cpu
