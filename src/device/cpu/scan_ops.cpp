#include "device/cpu/scan_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "device/cpu/combine.h"
#include "device/cpu/isa.h"
#include "device/cpu/row_ops.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/scan_ops.cpp"
#include "hwy/foreach_target.h"
//
#include "device/cpu/widened-inl.h"

#ifndef HEDDLE_CPU_SCAN_ONCE
#define HEDDLE_CPU_SCAN_ONCE
namespace heddle::cpu {
struct ScanTable {
  const ScanOps* (*ops)(ScanKind);
};
}  // namespace heddle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON

// ---- Ways to combine

struct Adding {
  static constexpr double kIdentity = 0;
  template <class V>
  static HWY_INLINE HWY_ATTR V apply(V a, V b) {
    return hn::Add(a, b);
  }
  /// The same by a product, where units that add are busier than those that multiply.
  template <class V>
  static HWY_INLINE HWY_ATTR V join(V a, V b) {
    return hn::MulAdd(a, hn::Set(hn::DFromV<V>(), 1.0), b);
  }
  static double apply(double a, double b) { return a + b; }
};
struct Multiplying {
  static constexpr double kIdentity = 1;
  template <class V>
  static HWY_INLINE HWY_ATTR V apply(V a, V b) {
    return hn::Mul(a, b);
  }
  template <class V>
  static HWY_INLINE HWY_ATTR V join(V a, V b) {
    return hn::Mul(a, b);
  }
  static double apply(double a, double b) { return a * b; }
};

/// What `across` needs of them: totals of a vector of columns.
template <class Step>
struct WideTotals {
  using Element = double;
  using Totals = Wide;
  static HWY_INLINE HWY_ATTR Wide load(const double* from) { return load_wide(from); }
  static HWY_INLINE HWY_ATTR void store(Wide x, double* to) { store_wide(x, to); }
  static HWY_INLINE HWY_ATTR Wide with(Wide totals, FloatVec x) {
    const Wide wide = widened(x);
    return {Step::apply(totals.low, wide.low), Step::apply(totals.high, wide.high)};
  }
  static double with(double total, float x) { return Step::apply(total, static_cast<double>(x)); }
  static HWY_INLINE HWY_ATTR FloatVec value(Wide totals) { return narrowed(totals); }
};
template <class Kind>
struct ExtremeTotals {
  using Element = float;
  using Totals = FloatVec;
  static HWY_INLINE HWY_ATTR FloatVec load(const float* from) {
    return hn::LoadU(FloatTag(), from);
  }
  static HWY_INLINE HWY_ATTR void store(FloatVec x, float* to) { hn::StoreU(x, FloatTag(), to); }
  static HWY_INLINE HWY_ATTR FloatVec with(FloatVec a, FloatVec x) {
    const auto beats = std::is_same_v<Kind, Max> ? hn::Gt(a, x) : hn::Lt(a, x);
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), beats), a, x);
  }
  static float with(float a, float x) { return Kind()(a, x); }
  static HWY_INLINE HWY_ATTR FloatVec value(FloatVec totals) { return totals; }
};

// ---- Across

/// Rows [first, first + kRows): some at once, since a row alone would leave most of the memory's
/// speed unused. The rows after them are fetched meanwhile.
template <class Kind, int kRows, Stores kStores>
HWY_INLINE HWY_ATTR void across_some(const ScanRows& rows, std::int64_t first,
                                     typename Kind::Element* totals) {
  const float* x = rows.x + first * rows.apart;
  float* out = rows.out ? rows.out + first * rows.apart : nullptr;
  const bool more = first + 2 * kRows <= rows.rows;
  std::int64_t c = 0;
  for (; c + kFloats <= rows.columns; c += kFloats) {
    auto total = Kind::load(totals + c);
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t at = r * rows.apart + c;
      if (more) __builtin_prefetch(x + at + kRows * rows.apart);
      const auto with = Kind::with(total, hn::LoadU(FloatTag(), x + at));
      if (out) put<kStores>(Kind::value(rows.exclusive ? total : with), out + at);
      total = with;
    }
    Kind::store(total, totals + c);
  }
  for (; c < rows.columns; ++c) {
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t at = r * rows.apart + c;
      const auto with = Kind::with(totals[c], x[at]);
      if (out) out[at] = static_cast<float>(rows.exclusive ? totals[c] : with);
      totals[c] = with;
    }
  }
}

template <class Kind, Stores kStores>
HWY_ATTR void across_all(const ScanRows& rows, typename Kind::Element* totals) {
  constexpr int kAtOnce = 4;
  std::int64_t r = 0;
  for (; r + kAtOnce <= rows.rows; r += kAtOnce)
    across_some<Kind, kAtOnce, kStores>(rows, r, totals);
  for (; r < rows.rows; ++r) across_some<Kind, 1, kStores>(rows, r, totals);
}

template <class Kind>
HWY_ATTR void across(const ScanRows& rows, void* totals) {
  auto* elements = static_cast<typename Kind::Element*>(totals);
  if (rows.streams) return across_all<Kind, Stores::streamed>(rows, elements);
  across_all<Kind, Stores::cached>(rows, elements);
}

// ---- Along
//
// In vectors of up to four: wider ones take more steps, most of whose lanes do nothing.

using LineTag = hn::CappedTag<double, 4>;
using LineVec = hn::Vec<LineTag>;
using LineFloats = hn::Rebind<float, LineTag>;
constexpr auto kLineLanes = static_cast<std::int64_t>(hn::MaxLanes(LineTag()));

constexpr int kGroupVectors = static_cast<int>(kScanGroup / kLineLanes);

struct Group {
  LineVec v[kGroupVectors];
};

/// Lane i becomes lane from(i).
template <class From>
HWY_INLINE HWY_ATTR LineVec permuted(LineVec v, const From& from) {
  const LineTag d;
  HWY_ALIGN std::int64_t lanes[kLineLanes];
  for (std::int64_t i = 0; i < kLineLanes; ++i) lanes[i] = from(i);
  return hn::TableLookupLanes(v, hn::SetTableIndices(d, lanes));
}
HWY_INLINE HWY_ATTR LineVec last_of(LineVec v) {
  return permuted(v, [](std::int64_t) { return kLineLanes - 1; });
}
HWY_INLINE HWY_ATTR hn::Mask<LineTag> lanes_with(std::int64_t bit) {
  const hn::RebindToSigned<LineTag> di;
  return hn::RebindMask(LineTag(), hn::TestBit(hn::Iota(di, 0), hn::Set(di, bit)));
}

/// A vector's lanes by halves, from `half` on.
template <class Step, std::int64_t half>
HWY_INLINE HWY_ATTR LineVec scan_lanes(LineVec v) {
  if constexpr (half == kLineLanes) {
    return v;
  } else {
    const LineVec lower =
        permuted(v, [](std::int64_t i) { return (i & half) != 0 ? i / half * half - 1 : i; });
    return scan_lanes<Step, 2 * half>(hn::IfThenElse(lanes_with(half), Step::join(lower, v), v));
  }
}
template <class Step>
HWY_INLINE HWY_ATTR void scan_group(Group& group) {
#pragma GCC unroll 8
  for (int k = 0; k < kGroupVectors; ++k) group.v[k] = scan_lanes<Step, 1>(group.v[k]);
  for (int half = 1; half < kGroupVectors; half *= 2) {
#pragma GCC unroll 8
    for (int k = 0; k < kGroupVectors; ++k) {
      if ((k & half) == 0) continue;
      group.v[k] = Step::apply(last_of(group.v[k / half * half - 1]), group.v[k]);
    }
  }
}

/// Where the group's vector k lies among its elements, which are walked from the last if `reverse`.
HWY_INLINE HWY_ATTR std::int64_t place_of(int k, bool reverse) {
  return reverse ? kScanGroup - (k + 1) * kLineLanes : k * kLineLanes;
}

template <class Step, bool kReverse, Stores kStores>
HWY_INLINE HWY_ATTR LineVec along_group(const float* x, bool exclusive, LineVec total, float* out) {
  const LineTag d;
  const LineFloats half;
  Group group;
  for (int k = 0; k < kGroupVectors; ++k) {
    const LineVec v = hn::PromoteTo(d, hn::LoadU(half, x + place_of(k, kReverse)));
    group.v[k] = kReverse ? hn::Reverse(d, v) : v;
  }
  scan_group<Step>(group);
  LineVec before = hn::Set(d, Step::kIdentity);
  for (int k = 0; out && k < kGroupVectors; ++k) {
    LineVec v = group.v[k];
    if (exclusive) {
      v = permuted(v, [](std::int64_t i) { return i > 0 ? i - 1 : 0; });
      v = hn::IfThenElse(hn::FirstN(d, 1), before, v);
      before = last_of(group.v[k]);
    }
    v = Step::apply(total, v);
    const auto floats = hn::DemoteTo(half, kReverse ? hn::Reverse(d, v) : v);
    if constexpr (kStores == Stores::streamed) {
      hn::Stream(floats, half, out + place_of(k, kReverse));
    } else {
      hn::StoreU(floats, half, out + place_of(k, kReverse));
    }
  }
  return Step::apply(total, last_of(group.v[kGroupVectors - 1]));
}

template <class Step, bool kReverse, Stores kStores>
HWY_NOINLINE HWY_ATTR void along_in(const ScanLine& line, double& sum) {
  const float* x = line.x;
  float* out = line.out;
  const std::int64_t n = line.n;
  const bool exclusive = line.exclusive;
  LineVec total = hn::Set(LineTag(), sum);
  std::int64_t i = 0;
  const auto first_of = [n](std::int64_t at) { return kReverse ? n - kScanGroup - at : at; };
  for (; !exclusive && out && i + kScanGroup <= n; i += kScanGroup) {
    const std::int64_t first = first_of(i);
    if (i % 16 == 0) {
      __builtin_prefetch(x + (kReverse ? first - kStreamedAhead : first + kStreamedAhead), 0, 2);
    }
    total = along_group<Step, kReverse, kStores>(x + first, false, total, out + first);
  }
  for (; i + kScanGroup <= n; i += kScanGroup) {
    const std::int64_t first = first_of(i);
    total = along_group<Step, kReverse, kStores>(x + first, exclusive, total,
                                                 out ? out + first : nullptr);
  }
  if (i < n) {
    const std::int64_t rest = n - i, from = kReverse ? kScanGroup - rest : 0;
    const std::int64_t first = kReverse ? 0 : i;
    float padded[kScanGroup];
    std::fill_n(padded, kScanGroup, static_cast<float>(Step::kIdentity));
    std::copy_n(x + first, rest, padded + from);
    total = along_group<Step, kReverse, Stores::cached>(padded, exclusive, total, padded);
    if (out) std::copy_n(padded + from, rest, out + first);
  }
  sum = hn::GetLane(total);
}

template <class Step>
HWY_ATTR void along(const ScanLine& line, double& total) {
  constexpr auto kCached = Stores::cached, kStreamed = Stores::streamed;
  const auto function =
      line.reverse
          ? (line.streams ? along_in<Step, true, kStreamed> : along_in<Step, true, kCached>)
          : (line.streams ? along_in<Step, false, kStreamed> : along_in<Step, false, kCached>);
  function(line, total);
}

const ScanOps* find_ops(ScanKind kind) {
  static constexpr ScanOps kSum{along<Adding>, across<WideTotals<Adding>>};
  static constexpr ScanOps kProd{along<Multiplying>, across<WideTotals<Multiplying>>};
  static constexpr ScanOps kMax{nullptr, across<ExtremeTotals<Max>>};
  static constexpr ScanOps kMin{nullptr, across<ExtremeTotals<Min>>};
  switch (kind) {
    case ScanKind::sum:
      return &kSum;
    case ScanKind::prod:
      return &kProd;
    case ScanKind::max:
      return &kMax;
    case ScanKind::min:
      return &kMin;
    case ScanKind::logaddexp:
      break;  // scan_logs.cpp has these
  }
  return nullptr;
}

#else

const ScanOps* find_ops(ScanKind) {
  return nullptr;
}

#endif

const ScanTable& scan_table() {
  static constexpr ScanTable kTable{find_ops};
  return kTable;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

namespace {
const ScanTable& table() {
  HEDDLE_SIMD_RETURN(scan_table);
}
}  // namespace

const ScanOps* scan_ops(ScanKind kind) {
  if (kind != ScanKind::logaddexp) return table().ops(kind);
  static const ScanOps kLogs{nullptr, log_sums_across()};
  return kLogs.across ? &kLogs : nullptr;
}

}  // namespace heddle::cpu
#endif
