// Panels of blocks as codes, scales and minima that many rows share from the cache.
#pragma once

#include "device/cpu/quant_panel_few.h"

namespace heddle::cpu::HEDDLE_SIMD {

template <class T, class Unpacked>
inline void unpack_part(const std::byte* panel, const PanelHeader& header, int part, int at,
                        Unpacked& to) {
#pragma GCC unroll kUnrolledPairs
  for (int i = 0; i < kPairs; ++i) {
    const int k = T::kGroups == 1 ? i / 2 + i % 2 * 8 : i;
    to.put(at, k, add(T::codes(panel, part, k), -T::kOffset));
  }
#pragma GCC unroll 2
  for (int group = 0; group < T::kGroups; ++group) {
    const int index = part * T::kGroups + group, there = at * T::kGroups + group;
    store16(to.scales[there], T::scale(header, panel, index));
    if (T::kHasMins) store16(to.mins[there], T::min(header, panel, index));
  }
}

/// Codes, scales and minima of 256 elements of a panel, or of as many parts as there are.
template <class T, class Unpacked>
void unpack(const std::byte* panel, std::int64_t parts, Unpacked& to) {
  constexpr std::int64_t kBytes = kBytesOfBlocks<T>;
  if constexpr (kIsSuperPanel<T>) {
    const PanelHeader header = T::header(panel);
#pragma GCC unroll kUnrolledParts
    for (int part = 0; part < kParts; ++part) unpack_part<T>(panel, header, part, part, to);
  } else {
    for (int part = 0; part < parts; ++part, panel += kBytes) {
      unpack_part<T>(panel, T::header(panel), 0, part, to);
    }
  }
}

}  // namespace heddle::cpu::HEDDLE_SIMD
