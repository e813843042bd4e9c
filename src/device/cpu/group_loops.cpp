#include "device/cpu/group_loops.h"

#include <algorithm>

namespace heddle::cpu {

const GroupLoops& group_loops(Isa level) {
#if defined(__x86_64__)
  if (level >= Isa::avx512) return avx512::kGroupLoops;
  if (level >= Isa::avx2) return avx2::kGroupLoops;
#else
  static_cast<void>(level);
#endif
  return portable::kGroupLoops;
}

namespace {

/// The depth in whole steps.
std::int64_t padded_depth(GroupCode code, std::int64_t depth) noexcept {
  const std::int64_t step = 16 * group_step(code).vectors;
  return (depth + step - 1) / step * step;
}

}  // namespace

std::int64_t arranged_floats(GroupCode code, std::int64_t depth, std::int64_t group_size) noexcept {
  return padded_depth(code, depth) + depth / group_size;
}

void arrange(GroupCode code, std::int64_t group_size, std::int64_t depth, const float* x,
             std::int64_t first, std::int64_t n, float* row) noexcept {
  const GroupStep step = group_step(code);
  const std::int64_t padded = padded_depth(code, n);
  float* to = row + first;
  if (step.word_in_lane) {
    for (std::int64_t at = 0; at < padded; at += 16 * step.vectors) {
      for (std::int64_t v = 0; v < step.vectors; ++v) {
        for (std::int64_t lane = 0; lane < 16; ++lane) {
          const std::int64_t k = at + lane * step.vectors + v;
          to[at + v * 16 + lane] = k < n ? x[k] : 0.0f;
        }
      }
    }
  } else {
    std::copy_n(x, n, to);
    std::fill(to + n, to + padded, 0.0f);
  }
  float* sums = row + padded_depth(code, depth) + first / group_size;
  for (std::int64_t at = 0; at < n; at += group_size) {
    double sum = 0;
    for (std::int64_t i = 0; i < group_size; ++i) sum += static_cast<double>(x[at + i]);
    *sums++ = static_cast<float>(sum);
  }
}

}  // namespace heddle::cpu
