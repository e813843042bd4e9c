// Two dumps of values, side by side.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/value_dump.h"

namespace heddle::cli {

/// NumPy's allclose: a and b agree if |a - b| <= absolute + relative * |b|; NaNs agree with NaNs.
struct Tolerance {
  double absolute = 1e-3, relative = 1e-3;
};

/// A value that both dumps have.
struct ComparedValue {
  DumpedValue a, b;
  bool agree = true;
  bool same_shape = true;
  std::int64_t nan_a = 0, nan_b = 0;
  double largest_absolute = 0, largest_relative = 0;
  /// Where the difference exceeds the tolerance most, row-major, and what is there.
  std::int64_t worst = 0;
  double worst_a = 0, worst_b = 0;
};

struct Comparison {
  std::vector<ComparedValue> values;  // in A's order
  std::vector<DumpedValue> only_a, only_b;
  bool agree() const;
};

/// Throws Error(io) for what is no dump, and invalid_argument if they have no value in common.
Comparison compare_dumps(const std::filesystem::path& a, const std::filesystem::path& b,
                         const Tolerance& tolerance);
std::string to_text(const Comparison& comparison, const Tolerance& tolerance);

}  // namespace heddle::cli
