// Kernels along an axis: a contiguous operand as lines, of which some lie side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

/// Lines that are walked side by side where the axis is not the last: each step is a run of memory,
/// often in a page of its own. Long runs are read faster; short ones leave work for more threads.
inline constexpr std::int64_t kBundle = 128, kWidestBundle = 512;
inline constexpr std::int64_t kManyLines = 1024;

/// The lines along an axis: `outer` times `inner` of them, each of `length` elements.
struct Lines {
  std::int64_t outer = 1, length = 1, inner = 1;
  std::int64_t outer_per_row = 0;  // of axis 0; 0 if that is the lines' own axis

  Lines() = default;
  Lines(const Shape& shape, std::int64_t axis);

  std::int64_t count() const { return outer * inner; }
  /// Where element `i` of the first line of outer index `o` is.
  std::int64_t at(std::int64_t o, std::int64_t i) const { return (o * length + i) * inner; }
  std::int64_t bundle_width() const { return inner < kManyLines ? kBundle : kWidestBundle; }
  std::int64_t bundles_across() const { return (inner + bundle_width() - 1) / bundle_width(); }
  std::int64_t outer_that_count(std::int64_t extent) const {
    return extent < 0 || outer_per_row == 0 ? outer : std::min(outer, extent * outer_per_row);
  }
  std::int64_t bundles_that_count(std::int64_t extent) const {
    return outer_that_count(extent) * bundles_across();
  }
  bool honours_extent() const { return outer_per_row > 0; }
};

/// Up to kWidestBundle lines side by side.
struct Bundle {
  std::int64_t outer, column, columns;
};
inline Bundle bundle_of(const Lines& lines, std::int64_t index) {
  const std::int64_t width = lines.bundle_width();
  const std::int64_t column = index % lines.bundles_across() * width;
  return {index / lines.bundles_across(), column, std::min(width, lines.inner - column)};
}

/// Calls body(bundle) for all lines that count, on the launch's team.
template <class Body>
void for_each_bundle(const Launch& launch, const Lines& lines, const Body& body) {
  const std::int64_t work = lines.length * std::min(lines.bundle_width(), lines.inner);
  parallel(launch.team, lines.bundles_that_count(launch.extent), row_grain(work),
           [&](std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) body(bundle_of(lines, i));
           });
}

/// Why a kernel that reads all its operands contiguously cannot run; empty if it can.
std::string contiguous_refusal(const PrepareArgs& args);

}  // namespace heddle::cpu
