// Scans of floats, vectorised: along lines whose elements lie side by side, and across lines that
// lie side by side themselves.
//
// Sums and products are kept in double and rounded once. Along a line they are made by groups of
// eight, each scanned by halves (the last of a lower half joins all of the upper one) before what
// comes before it joins all: in the same order whatever the width of vectors.
#pragma once

#include <cstdint>

#include "heddle/op.h"

namespace heddle::cpu {

/// Elements of a group that is scanned on its own.
inline constexpr std::int64_t kScanGroup = 8;

/// Some elements of a line that lie side by side.
struct ScanLine {
  const float* x;
  float* out;  // null where only totals count; may be x
  std::int64_t n;
  bool reverse = false, exclusive = false;
  bool streams = false;  // past the caches: `out` begins, or if it is reversed ends, a cache line
};

/// Some rows of lines that lie side by side.
struct ScanRows {
  const float* x;
  float* out;  // null where only totals count; may be x
  std::int64_t rows, columns;
  std::int64_t apart;  // elements from a row to the next, which is walked later
  bool exclusive = false;
  bool streams = false;  // past the caches: rows of `out` begin on cache lines
};

/// Totals are those of what came before, and become those of all: doubles, or floats for extremes;
/// those of logaddexp are logarithms.
struct ScanOps {
  /// Null for extremes, and where only some elements are computed (see scan_log_sums).
  void (*along)(const ScanLine& line, double& total) = nullptr;
  void (*across)(const ScanRows& rows, void* totals) = nullptr;
};

/// Null where isa() has no vectors for it.
const ScanOps* scan_ops(ScanKind kind);

/// A scan that adds up e^x: `logarithm` is that of the sum so far. Returns how many elements it
/// did: all before some that are too far above the sum, or not finite, or huge, or the first that
/// counts in an exclusive scan. Within 2.5e-6 of the exact value, absolutely, or 1.3 ulp.
std::int64_t scan_log_sums(const ScanLine& line, double& logarithm);
/// The same of lines side by side (ScanOps::across); null where isa() has no vectors for it.
void (*log_sums_across())(const ScanRows& rows, void* totals);

}  // namespace heddle::cpu
