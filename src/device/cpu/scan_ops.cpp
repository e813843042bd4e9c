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
#include "device/cpu/math-inl.h"
#include "hwy/contrib/math/math-inl.h"

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

using DoubleTag = hn::RepartitionToWide<FloatTag>;
using DoubleVec = hn::Vec<DoubleTag>;
using HalfTag = hn::Half<FloatTag>;  // as many floats as a vector has doubles
constexpr auto kFloats = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));
constexpr auto kDoubles = static_cast<std::int64_t>(hn::MaxLanes(DoubleTag()));

/// A vector of floats, as doubles.
struct Wide {
  DoubleVec low, high;
};
HWY_INLINE HWY_ATTR Wide widened(FloatVec x) {
  const DoubleTag d;
  const HalfTag half;
  return {hn::PromoteTo(d, hn::LowerHalf(half, x)), hn::PromoteTo(d, hn::UpperHalf(half, x))};
}
HWY_INLINE HWY_ATTR FloatVec narrowed(Wide x) {
  const HalfTag half;
  return hn::Combine(FloatTag(), hn::DemoteTo(half, x.high), hn::DemoteTo(half, x.low));
}
HWY_INLINE HWY_ATTR Wide load_wide(const double* from) {
  return {hn::LoadU(DoubleTag(), from), hn::LoadU(DoubleTag(), from + kDoubles)};
}
HWY_INLINE HWY_ATTR void store_wide(Wide x, double* to) {
  hn::StoreU(x.low, DoubleTag(), to);
  hn::StoreU(x.high, DoubleTag(), to + kDoubles);
}

// ---- Ways to combine

struct Adding {
  static constexpr double kIdentity = 0;
  static HWY_INLINE HWY_ATTR DoubleVec apply(DoubleVec a, DoubleVec b) { return hn::Add(a, b); }
  static double apply(double a, double b) { return a + b; }
};
struct Multiplying {
  static constexpr double kIdentity = 1;
  static HWY_INLINE HWY_ATTR DoubleVec apply(DoubleVec a, DoubleVec b) { return hn::Mul(a, b); }
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

template <bool kStreams>
HWY_INLINE HWY_ATTR void put(FloatVec v, float* out) {
  if constexpr (kStreams) {
    hn::Stream(v, FloatTag(), out);
  } else {
    hn::StoreU(v, FloatTag(), out);
  }
}

/// Rows [first, first + kRows): some at once, since a row alone would leave most of the memory's
/// speed unused. The rows after them are fetched meanwhile.
template <class Kind, int kRows, bool kStreams>
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
      if (out) put<kStreams>(Kind::value(rows.exclusive ? total : with), out + at);
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

template <class Kind, bool kStreams>
HWY_ATTR void across_all(const ScanRows& rows, typename Kind::Element* totals) {
  constexpr int kAtOnce = 4;
  std::int64_t r = 0;
  for (; r + kAtOnce <= rows.rows; r += kAtOnce)
    across_some<Kind, kAtOnce, kStreams>(rows, r, totals);
  for (; r < rows.rows; ++r) across_some<Kind, 1, kStreams>(rows, r, totals);
}

template <class Kind>
HWY_ATTR void across(const ScanRows& rows, void* totals) {
  auto* elements = static_cast<typename Kind::Element*>(totals);
  if (rows.streams) return across_all<Kind, true>(rows, elements);
  across_all<Kind, false>(rows, elements);
}

// ---- Along

constexpr int kGroupVectors = static_cast<int>(kScanGroup / kDoubles);

struct Group {
  DoubleVec v[kGroupVectors];
};

/// Lane i becomes lane from(i).
template <class From>
HWY_INLINE HWY_ATTR DoubleVec permuted(DoubleVec v, const From& from) {
  const DoubleTag d;
  HWY_ALIGN std::int64_t lanes[kDoubles];
  for (std::int64_t i = 0; i < kDoubles; ++i) lanes[i] = from(i);
  return hn::TableLookupLanes(v, hn::SetTableIndices(d, lanes));
}
HWY_INLINE HWY_ATTR DoubleVec last_of(DoubleVec v) {
  return permuted(v, [](std::int64_t) { return kDoubles - 1; });
}
HWY_INLINE HWY_ATTR hn::Mask<DoubleTag> lanes_with(std::int64_t bit) {
  const hn::RebindToSigned<DoubleTag> di;
  return hn::RebindMask(DoubleTag(), hn::TestBit(hn::Iota(di, 0), hn::Set(di, bit)));
}

template <class Step>
HWY_INLINE HWY_ATTR void scan_group(Group& group) {
  for (DoubleVec& v : group.v) {
    for (std::int64_t half = 1; half < kDoubles; half *= 2) {
      const DoubleVec lower =
          permuted(v, [half](std::int64_t i) { return (i & half) != 0 ? i / half * half - 1 : i; });
      v = hn::IfThenElse(lanes_with(half), Step::apply(lower, v), v);
    }
  }
  for (int half = 1; half < kGroupVectors; half *= 2) {
    for (int k = 0; k < kGroupVectors; ++k) {
      if ((k & half) == 0) continue;
      group.v[k] = Step::apply(last_of(group.v[k / half * half - 1]), group.v[k]);
    }
  }
}

/// Where the group's vector k lies among its elements, which are walked from the last if `reverse`.
HWY_INLINE HWY_ATTR std::int64_t place_of(int k, bool reverse) {
  return reverse ? kScanGroup - (k + 1) * kDoubles : k * kDoubles;
}

template <class Step>
HWY_INLINE HWY_ATTR DoubleVec along_group(const float* x, bool reverse, bool exclusive,
                                          DoubleVec total, float* out) {
  const DoubleTag d;
  const HalfTag half;
  Group group;
  for (int k = 0; k < kGroupVectors; ++k) {
    const DoubleVec v = hn::PromoteTo(d, hn::LoadU(half, x + place_of(k, reverse)));
    group.v[k] = reverse ? hn::Reverse(d, v) : v;
  }
  scan_group<Step>(group);
  DoubleVec before = hn::Set(d, Step::kIdentity);
  for (int k = 0; out && k < kGroupVectors; ++k) {
    DoubleVec v = group.v[k];
    if (exclusive) {
      v = permuted(v, [](std::int64_t i) { return i > 0 ? i - 1 : 0; });
      v = hn::IfThenElse(hn::FirstN(d, 1), before, v);
      before = last_of(group.v[k]);
    }
    v = Step::apply(total, v);
    hn::StoreU(hn::DemoteTo(half, reverse ? hn::Reverse(d, v) : v), half,
               out + place_of(k, reverse));
  }
  return Step::apply(total, last_of(group.v[kGroupVectors - 1]));
}

template <class Step, bool kReverse>
HWY_NOINLINE HWY_ATTR void along_in(const float* x, std::int64_t n, bool exclusive, double& sum,
                                    float* out) {
  DoubleVec total = hn::Set(DoubleTag(), sum);
  std::int64_t i = 0;
  const auto first_of = [&](std::int64_t at) { return kReverse ? n - kScanGroup - at : at; };
  for (; !exclusive && out && i + kScanGroup <= n; i += kScanGroup) {
    const std::int64_t first = first_of(i);
    total = along_group<Step>(x + first, kReverse, false, total, out + first);
  }
  for (; i + kScanGroup <= n; i += kScanGroup) {
    const std::int64_t first = first_of(i);
    total = along_group<Step>(x + first, kReverse, exclusive, total, out ? out + first : nullptr);
  }
  if (i < n) {
    const std::int64_t rest = n - i, from = kReverse ? kScanGroup - rest : 0;
    const std::int64_t first = kReverse ? 0 : i;
    float padded[kScanGroup];
    std::fill_n(padded, kScanGroup, static_cast<float>(Step::kIdentity));
    std::copy_n(x + first, rest, padded + from);
    total = along_group<Step>(padded, kReverse, exclusive, total, padded);
    if (out) std::copy_n(padded + from, rest, out + first);
  }
  sum = hn::GetLane(total);
}

template <class Step>
HWY_ATTR void along(const float* x, std::int64_t n, bool reverse, bool exclusive, double& total,
                    float* out) {
  if (reverse) return along_in<Step, true>(x, n, exclusive, total, out);
  along_in<Step, false>(x, n, exclusive, total, out);
}

// ---- Sums of e^x, across (scan_logs.cpp has those along)

/// The state of a vector of columns: the sum of what came before is sum e^shift.
struct LogState {
  FloatVec shift;
  Wide sum;
};

struct LogColumns {
  static constexpr std::int64_t kMost = 512;
  HWY_ALIGN float shifts[kMost];
  HWY_ALIGN double sums[kMost];

  double log_of(std::int64_t c) const {
    return sums[c] == 0 ? -std::numeric_limits<double>::infinity()
                        : static_cast<double>(shifts[c]) + std::log(sums[c]);
  }
  void set(std::int64_t c, double logarithm) {
    const auto shift = static_cast<float>(logarithm);
    shifts[c] = std::isfinite(shift) ? shift : 0.0f;
    sums[c] = std::exp(logarithm - static_cast<double>(shifts[c]));
  }
};

/// Rows of a column one by one, in double; the first is at x, the others `apart` elements on.
inline void log_column(const float* x, std::int64_t apart, std::int64_t count, const ScanRows& rows,
                       std::int64_t first, std::int64_t c, LogColumns& columns) {
  double sum = columns.log_of(c);
  for (std::int64_t r = 0; r < count; ++r) {
    const double with = LogAddExp()(sum, static_cast<double>(x[r * apart]));
    if (rows.out) {
      rows.out[(first + r) * rows.apart + c] = static_cast<float>(rows.exclusive ? sum : with);
    }
    sum = with;
  }
  columns.set(c, sum);
}

/// The columns whose sums stay so near e^shift that logarithms of floats will do.
template <int kRows>
HWY_INLINE HWY_ATTR hn::Mask<FloatTag> near_columns(const FloatVec (&x)[kRows], bool exclusive,
                                                    LogState& state) {
  const FloatTag d;
  FloatVec high = x[0], low = x[0], poison = x[0];
  for (int r = 1; r < kRows; ++r) {
    high = hn::Max(high, x[r]), low = hn::Min(low, x[r]);
    poison = hn::Add(poison, x[r]);  // not finite if one of them is not
  }
  const FloatVec sum = narrowed(state.sum), furthest = constant(kFurthestLogs);
  const auto starts = hn::Eq(sum, hn::Zero(d));
  state.shift = hn::IfThenElse(starts, high, state.shift);
  const auto is_near =
      hn::Ge(hn::IfThenElse(starts, hn::Sub(low, state.shift), furthest), hn::Neg(furthest));
  constexpr float kLeast = 1.2e-7f, kMost = 8e6f;  // e^-16 and e^16
  const auto counts = hn::And(hn::Ge(sum, constant(kLeast)), hn::Le(sum, constant(kMost)));
  const auto is_usual = hn::And(hn::Le(hn::Sub(high, state.shift), furthest),
                                hn::Le(hn::Abs(poison), constant(1e30f)));
  const auto may_start = exclusive ? counts : hn::Or(counts, starts);
  return hn::And(hn::And(is_near, is_usual), may_start);
}

/// The same sums for a shift that is no less than what is to come, in the columns that are not
/// `kept` and hold any.
template <int kRows>
HWY_NOINLINE HWY_ATTR void shift_anew(const FloatVec (&x)[kRows], hn::Mask<FloatTag> kept,
                                      LogState& state) {
  const DoubleTag d;
  const FloatTag df;
  FloatVec high = x[0];
  for (int r = 1; r < kRows; ++r) high = hn::Max(high, x[r]);
  const FloatVec sum = narrowed(state.sum);
  const auto stays = hn::Or(kept, hn::Not(hn::Gt(sum, hn::Zero(df))));
  const Wide old = widened(state.shift);
  const Wide logs{hn::Add(old.low, hn::Log(d, state.sum.low)),
                  hn::Add(old.high, hn::Log(d, state.sum.high))};
  state.shift = hn::IfThenElse(stays, state.shift, hn::Max(narrowed(logs), high));
  const Wide shift = widened(state.shift);
  const auto bounded = [&](DoubleVec v) HWY_ATTR { return hn::Max(v, hn::Set(d, -700.0)); };
  // Of 0 or 1, which are exact in both.
  const Wide choice = widened(hn::IfThenElse(stays, hn::Zero(df), constant(1.0f)));
  const auto chosen = [&](DoubleVec which, DoubleVec anew, DoubleVec before) HWY_ATTR {
    return hn::IfThenElse(hn::Gt(which, hn::Zero(d)), anew, before);
  };
  state.sum = {
      chosen(choice.low, hn::Exp(d, bounded(hn::Sub(logs.low, shift.low))), state.sum.low),
      chosen(choice.high, hn::Exp(d, bounded(hn::Sub(logs.high, shift.high))), state.sum.high)};
}

/// Columns [c, c + kFloats) that are not near, from what they were before these rows.
template <int kRows>
HWY_NOINLINE HWY_ATTR void log_far_columns(const FloatVec (&x)[kRows], hn::Mask<FloatTag> near,
                                           const LogState& before, const ScanRows& rows,
                                           std::int64_t first, std::int64_t c,
                                           LogColumns& columns) {
  const FloatTag d;
  HWY_ALIGN float values[kRows * kFloats], shifts[kFloats];
  HWY_ALIGN double sums[kFloats];
  std::uint8_t bits[8] = {};
  for (int r = 0; r < kRows; ++r) hn::Store(x[r], d, values + r * kFloats);
  hn::Store(before.shift, d, shifts);
  store_wide(before.sum, sums);
  hn::StoreMaskBits(d, near, bits);
  for (std::int64_t i = 0; i < kFloats; ++i) {
    if (bits[i / 8] >> (i % 8) & 1) continue;
    columns.shifts[c + i] = shifts[i];
    columns.sums[c + i] = sums[i];
    log_column(values + i, kFloats, kRows, rows, first, c + i, columns);
  }
}

template <int kRows, bool kStreams>
HWY_INLINE HWY_ATTR void log_some(const ScanRows& rows, std::int64_t first, LogColumns& columns) {
  const FloatTag d;
  std::int64_t c = 0;
  const bool more = first + 2 * kRows <= rows.rows;
  for (; c + kFloats <= rows.columns; c += kFloats) {
    FloatVec x[kRows];
    for (int r = 0; r < kRows; ++r) {
      const float* at = rows.x + (first + r) * rows.apart + c;
      if (more) __builtin_prefetch(at + kRows * rows.apart);
      x[r] = hn::LoadU(d, at);
    }
    const LogState before{hn::Load(d, columns.shifts + c), load_wide(columns.sums + c)};
    LogState state = before;
    auto near = near_columns<kRows>(x, rows.exclusive, state);
    const bool usual = hn::AllTrue(d, near);
    if (HWY_UNLIKELY(!usual)) {
      shift_anew<kRows>(x, near, state);
      near = near_columns<kRows>(x, rows.exclusive, state);
    }
    for (int r = 0; r < kRows; ++r) {
      const Wide term = widened(exp_below_88(hn::Sub(x[r], state.shift)));
      const Wide with{hn::Add(state.sum.low, term.low), hn::Add(state.sum.high, term.high)};
      if (rows.out) {
        const FloatVec sum = narrowed(rows.exclusive ? state.sum : with);
        put<kStreams>(hn::Add(log_of_normal(sum), state.shift),
                      rows.out + (first + r) * rows.apart + c);
      }
      state.sum = with;
    }
    hn::Store(state.shift, d, columns.shifts + c);
    store_wide(state.sum, columns.sums + c);
    if (HWY_UNLIKELY(!usual)) log_far_columns<kRows>(x, near, before, rows, first, c, columns);
  }
  for (; c < rows.columns; ++c) {
    log_column(rows.x + first * rows.apart + c, rows.apart, kRows, rows, first, c, columns);
  }
}

template <bool kStreams>
HWY_NOINLINE HWY_ATTR void log_all(const ScanRows& rows, double* totals) {
  constexpr int kAtOnce = 8;
  LogColumns columns;
  for (std::int64_t c = 0; c < rows.columns; ++c) columns.set(c, totals[c]);
  std::int64_t r = 0;
  for (; r + kAtOnce <= rows.rows; r += kAtOnce) log_some<kAtOnce, kStreams>(rows, r, columns);
  for (; r < rows.rows; ++r) log_some<1, kStreams>(rows, r, columns);
  for (std::int64_t c = 0; c < rows.columns; ++c) totals[c] = columns.log_of(c);
}

HWY_ATTR void log_across(const ScanRows& rows, void* totals) {
  ScanRows some = rows;
  for (std::int64_t c = 0; c < rows.columns; c += LogColumns::kMost) {
    some.columns = std::min(LogColumns::kMost, rows.columns - c);
    some.x = rows.x + c;
    some.out = rows.out ? rows.out + c : nullptr;
    auto* some_totals = static_cast<double*>(totals) + c;
    rows.streams ? log_all<true>(some, some_totals) : log_all<false>(some, some_totals);
  }
}

const ScanOps* find_ops(ScanKind kind) {
  static constexpr ScanOps kSum{along<Adding>, across<WideTotals<Adding>>};
  static constexpr ScanOps kProd{along<Multiplying>, across<WideTotals<Multiplying>>};
  static constexpr ScanOps kMax{nullptr, across<ExtremeTotals<Max>>};
  static constexpr ScanOps kMin{nullptr, across<ExtremeTotals<Min>>};
  static constexpr ScanOps kLogAddExp{nullptr, log_across};
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
      return &kLogAddExp;
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
  return table().ops(kind);
}

}  // namespace heddle::cpu
#endif
