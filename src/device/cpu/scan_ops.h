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
  /// n elements of a line; `out` as in ScanRows. Null for extremes.
  void (*along)(const float* x, std::int64_t n, bool reverse, bool exclusive, double& total,
                float* out) = nullptr;
  void (*across)(const ScanRows& rows, void* totals) = nullptr;
};

/// Null where isa() has no vectors for it.
const ScanOps* scan_ops(ScanKind kind);

/// How far numbers may be apart whose logarithms of sums are computed in float: those of up to 16
/// have an error of 1e-6.
inline constexpr float kFurthestLogs = 16;

/// One block (n <= kBlock) of a scan that adds up e^x: `sum` is the log of the sum so far. The
/// results go to `out`, if that is not null. Within 2e-6 of the exact value, absolutely, or 1 ulp.
/// False, and nothing is done, where the block's numbers are too far apart for that, or not finite.
bool scan_log_sums(const float* x, std::int64_t n, bool reverse, bool exclusive, double& sum,
                   float* out);

}  // namespace heddle::cpu
