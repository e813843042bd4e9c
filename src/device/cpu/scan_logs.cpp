// Scans that add up e^x and give logarithms.
//
// A sum is kept as T e^s, T in double, and its logarithm L beside it. Terms come in tiles: prefix
// sums p of a tile's terms are floats, and the results are L + log(1 + p / T). Where p / T is
// small, as it is once a line has run for a while, that takes no look-up, and all is well with the
// terms too. L grows by the last of these logarithms, whose errors are parts of what it grows by,
// and now and then is taken of T again.
#include <algorithm>
#include <cmath>
#include <limits>

#include "device/cpu/combine.h"
#include "device/cpu/isa.h"
#include "device/cpu/prefetch.h"
#include "device/cpu/scan_ops.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/scan_logs.cpp"
#include "hwy/foreach_target.h"
//
#include "device/cpu/math-inl.h"
#include "device/cpu/widened-inl.h"
#include "hwy/contrib/math/math-inl.h"

#ifndef HEDDLE_CPU_SCAN_LOGS_ONCE
#define HEDDLE_CPU_SCAN_LOGS_ONCE
namespace heddle::cpu {
struct LogScans {
  std::int64_t (*along)(const ScanLine&, double&) = nullptr;
  void (*across)(const ScanRows&, void*) = nullptr;
};
}  // namespace heddle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON

/// How far a number may be above s: logarithms of e^16 have an error of 1e-6 in float.
constexpr float kFurthest = 16 * kTermUnit;
constexpr float kSmall = 0.25f;
/// How far a logarithm may grow by parts before it is taken of the sum again.
constexpr double kMostGrown = 0.5;
/// Logarithms of this size and their differences are floats with an error that does not count.
constexpr float kMostLog = 1e6f;

/// The s of a `shift` (see term_exponent).
inline double natural(float shift) {
  return static_cast<double>(shift) / static_cast<double>(kTermUnit);
}
inline float shift_for(double logarithm) {
  return static_cast<float>(logarithm * static_cast<double>(kTermUnit));
}
/// e^x, which usually is about 1.
inline double exp_of_rest(double x) {
  return std::fabs(x) < 1e-4 ? 1 + x + x * x / 2 : std::exp(x);
}

/// A logarithm of sums in two parts, so that a result is rounded once.
struct Base {
  FloatVec high, low;
};
HWY_INLINE HWY_ATTR FloatVec joined(Base base, FloatVec log) {
  return hn::Add(base.high, hn::Add(base.low, log));
}

/// log(1 + r) for 0 <= r <= kSmall: a fit with an error of 1e-8 of r.
HWY_INLINE HWY_ATTR FloatVec log1p_of_part(FloatVec r) {
  const FloatVec p = polynomial(r, -0.4999982f, 0.3332285f, -0.24797633f, 0.18251978f, -0.0935614f);
  return hn::MulAdd(hn::Mul(r, r), p, r);
}

// ---- Along

using Lanes = decltype(hn::SetTableIndices(FloatTag(), static_cast<std::int32_t*>(nullptr)));

/// What a scan of a vector's lanes by halves takes: for each of its steps, the lanes that join
/// others, and these.
struct LaneSteps {
  static constexpr int kSteps = kFloats == 16 ? 4 : kFloats == 8 ? 3 : 2;
  Lanes from[kSteps];
  Lanes before, last;
  hn::Mask<FloatTag> joined[kSteps];
};
HWY_INLINE HWY_ATTR LaneSteps lane_steps() {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  HWY_ALIGN std::int32_t lanes[kFloats];
  LaneSteps steps;
  for (int s = 0; s < LaneSteps::kSteps; ++s) {
    const std::int32_t half = 1 << s;
    for (std::int32_t i = 0; i < kFloats; ++i) lanes[i] = i & half ? i / half * half - 1 : i;
    steps.from[s] = hn::SetTableIndices(d, lanes);
    const auto bits = hn::TestBit(hn::Iota(di, 0), hn::Set(di, half));
    steps.joined[s] = hn::RebindMask(d, bits);
  }
  for (std::int32_t i = 0; i < kFloats; ++i) lanes[i] = std::max(0, i - 1);
  steps.before = hn::SetTableIndices(d, lanes);
  std::fill_n(lanes, kFloats, static_cast<std::int32_t>(kFloats - 1));
  steps.last = hn::SetTableIndices(d, lanes);
  return steps;
}

/// The sum of what came before, and what it is counted from.
struct LogSum {
  double log, sum;
  double grown = 0;
  float shift;
};

/// Vectors that follow each other: side by side, as a vector's steps wait for each other.
template <int kVectors>
struct Vectors {
  FloatVec v[kVectors];
};

/// Prefix sums of all, and their last one in all lanes.
template <int kVectors>
HWY_INLINE HWY_ATTR FloatVec add_up(Vectors<kVectors>& terms, const LaneSteps& steps) {
  for (int s = 0; s < LaneSteps::kSteps; ++s) {
    for (FloatVec& v : terms.v) {
      const FloatVec lower = hn::TableLookupLanes(v, steps.from[s]);
      v = hn::Add(v, hn::IfThenElseZero(steps.joined[s], lower));
    }
  }
  FloatVec last = hn::TableLookupLanes(terms.v[0], steps.last);
  for (int k = 1; k < kVectors; ++k) {
    const FloatVec of_vector = hn::TableLookupLanes(terms.v[k], steps.last);
    terms.v[k] = hn::Add(terms.v[k], last);
    last = hn::Add(last, of_vector);
  }
  return last;
}

/// Prefix sums become what joins the logarithm so far when they join the sum. Returns the last one
/// of them, or more than kMostGrown.
template <int kVectors>
HWY_INLINE HWY_ATTR double take_logs(Vectors<kVectors>& sums, float last, const LogSum& so_far,
                                     const LaneSteps& steps) {
  const float inverse = 1 / static_cast<float>(so_far.sum);
  const FloatVec inverses = constant(inverse), one = constant(1.0f);
  if (HWY_UNLIKELY(!(last * inverse <= kSmall))) {
    const bool starts = so_far.sum == 0;
    for (FloatVec& v : sums.v) {
      v = log_of_normal(starts ? v : hn::MulAdd(v, inverses, one));
    }
    return 1;
  }
  for (FloatVec& v : sums.v) v = log1p_of_part(hn::Mul(v, inverses));
  const FloatVec log = hn::TableLookupLanes(sums.v[kVectors - 1], steps.last);
  return static_cast<double>(hn::GetLane(log));
}

/// Whether the line's next number and the sum so far may be counted from one place.
inline bool begin_sum(float first, bool exclusive, double logarithm, LogSum& sum) {
  const bool starts = logarithm == -std::numeric_limits<double>::infinity();
  const double base = starts ? static_cast<double>(first) : logarithm;
  if (!(std::fabs(base) <= kMostLog) || (starts && exclusive)) return false;
  sum.shift = shift_for(base);
  sum.sum = starts ? 0 : exp_of_rest(base - natural(sum.shift));
  sum.log = starts ? natural(sum.shift) : logarithm;
  return true;
}

template <bool kReverse>
struct LogLine {
  LaneSteps steps;
  LogSum sum;
  bool exclusive = false;

  static HWY_INLINE HWY_ATTR FloatVec ordered(FloatVec v) {
    return kReverse ? hn::Reverse(FloatTag(), v) : v;
  }
  /// Where the vector k of some is.
  template <int kVectors>
  static constexpr std::int64_t place_of(int k) {
    return (kReverse ? kVectors - 1 - k : k) * kFloats;
  }

  /// Prefix sums of the terms of vectors, of a single one of which perhaps only `count` count.
  template <int kVectors>
  struct Prefix {
    Vectors<kVectors> sums;
    float last;
  };
  template <int kVectors>
  HWY_INLINE HWY_ATTR Prefix<kVectors> prefix_of(const float* x,
                                                 std::int64_t count = kFloats) const {
    const FloatTag d;
    const FloatVec shift = constant(sum.shift);
    Vectors<kVectors> some;
    for (int k = 0; k < kVectors; ++k) {
      const FloatVec v = ordered(hn::LoadU(d, x + place_of<kVectors>(k)));
      some.v[k] = term_of(term_exponent(v, shift));
    }
    if (count < kFloats) some.v[0] = hn::IfThenElseZero(hn::FirstN(d, count), some.v[0]);
    const float last = hn::GetLane(add_up(some, steps));
    return {some, last};
  }

  /// Results of the numbers at `x` go to `out`, if that is not null. False, and nothing is done,
  /// where one is too far above the sum.
  template <int kVectors, Stores kStores>
  HWY_INLINE HWY_ATTR bool add(Prefix<kVectors> prefix, const float* x, float* out) {
    const FloatTag d;
    if (HWY_UNLIKELY(!(prefix.last <= kSmall * static_cast<float>(sum.sum)))) {
      for (int k = 0; k < kVectors; ++k) {
        const FloatVec v = hn::LoadU(d, x + place_of<kVectors>(k));
        const FloatVec exponents = term_exponent(v, constant(sum.shift));
        if (!hn::AllTrue(d, hn::Le(exponents, constant(kFurthest)))) return false;
      }
    }
    if (out) put_logs<kVectors, kStores>(prefix.sums, prefix.last, out);
    sum.sum += static_cast<double>(prefix.last);
    if (HWY_UNLIKELY(sum.grown > kMostGrown)) take_anew();
    return true;
  }

 private:
  /// The logarithm of the sum, which is counted from there once it is large, so that exponents of
  /// what counts in it are small.
  void take_anew() {
    constexpr double kLarge = 64;
    sum.log = natural(sum.shift) + std::log(sum.sum);
    sum.grown = 0;
    if (sum.sum < kLarge) return;
    sum.shift = shift_for(sum.log);
    sum.sum = exp_of_rest(sum.log - natural(sum.shift));
  }

  template <int kVectors, Stores kStores>
  HWY_INLINE HWY_ATTR void put_logs(Vectors<kVectors>& some, float last, float* out) {
    const FloatTag d;
    const auto high = static_cast<float>(sum.log);
    const auto low = static_cast<float>(sum.log - static_cast<double>(high));
    const Base base{constant(high), constant(low)};
    const double growth = take_logs(some, last, sum, steps);
    sum.log += growth;
    sum.grown += growth;
    FloatVec before = hn::Zero(d);
    for (int k = 0; k < kVectors; ++k) {
      FloatVec log = some.v[k];
      if (exclusive) {
        log = hn::IfThenElse(hn::FirstN(d, 1), before, hn::TableLookupLanes(log, steps.before));
        before = hn::TableLookupLanes(some.v[k], steps.last);
      }
      put<kStores>(ordered(joined(base, log)), out + place_of<kVectors>(k));
    }
  }
};

/// Vectors of `line` from the element `i` on, as long as that goes well. Returns where it ended.
/// The next ones are added up while those before are finished.
template <int kVectors, bool kReverse, Stores kStores>
HWY_INLINE HWY_ATTR std::int64_t add_vectors(const ScanLine& line, std::int64_t i,
                                             LogLine<kReverse>& logs) {
  constexpr std::int64_t kStep = kVectors * kFloats;
  if (i + kStep > line.n) return i;
  const auto place = [&line](std::int64_t at) { return kReverse ? line.n - kStep - at : at; };
  auto prefix = logs.template prefix_of<kVectors>(line.x + place(i));
  for (; i + kStep <= line.n; i += kStep) {
    const std::int64_t at = place(i);
    const auto now = prefix;
    const float shift = logs.sum.shift;
    if (i + 2 * kStep <= line.n) {
      prefix = logs.template prefix_of<kVectors>(line.x + place(i + kStep));
    }
    prefetch_later(line.x + (kReverse ? at - kStreamedAhead : at + kStreamedAhead), 4 * kStep);
    float* out = line.out ? line.out + at : nullptr;
    if (!logs.template add<kVectors, kStores>(now, line.x + at, out)) break;
    if (HWY_UNLIKELY(logs.sum.shift != shift)) return i + kStep;
  }
  return i;
}

template <bool kReverse, Stores kStores>
HWY_NOINLINE HWY_ATTR std::int64_t log_line(const ScanLine& line, double& logarithm) {
  LogLine<kReverse> logs;
  const float first = line.x[kReverse ? line.n - 1 : 0];
  if (!begin_sum(first, line.exclusive, logarithm, logs.sum)) return 0;
  logs.steps = lane_steps();
  logs.exclusive = line.exclusive;
  std::int64_t i = 0, begin = 0;
  do {
    begin = i;
    i = add_vectors<4, kReverse, kStores>(line, i, logs);
    if (i == begin) i = add_vectors<1, kReverse, kStores>(line, i, logs);
  } while (i > begin);
  const std::int64_t rest = line.n - i;
  if (rest > 0 && rest < kFloats) {
    const std::int64_t at = kReverse ? 0 : i, from = kReverse ? kFloats - rest : 0;
    HWY_ALIGN float padded[kFloats];
    std::fill_n(padded, kFloats, first);
    std::copy_n(line.x + at, rest, padded + from);
    const auto prefix = logs.template prefix_of<1>(padded, rest);
    if (logs.template add<1, Stores::cached>(prefix, padded, line.out ? padded : nullptr)) {
      if (line.out) std::copy_n(padded + from, rest, line.out + at);
      i = line.n;
    }
  }
  const LogSum& sum = logs.sum;
  if (i > 0) logarithm = line.out ? sum.log : natural(sum.shift) + std::log(sum.sum);
  return i;
}

HWY_ATTR std::int64_t log_along(const ScanLine& line, double& logarithm) {
  const auto function =
      line.streams
          ? (line.reverse ? log_line<true, Stores::streamed> : log_line<false, Stores::streamed>)
          : (line.reverse ? log_line<true, Stores::cached> : log_line<false, Stores::cached>);
  return function(line, logarithm);
}

// ---- Across

struct LogState {
  FloatVec shift;
  Wide sum, log;
};

struct LogColumns {
  static constexpr std::int64_t kMost = 1024;
  HWY_ALIGN float shifts[kMost];
  HWY_ALIGN double sums[kMost];
  HWY_ALIGN double logs[kMost];

  /// Of huge ones, from which floats are too far apart to count, the sum is NaN.
  void set(std::int64_t c, double logarithm) {
    const bool is_usual = std::fabs(logarithm) <= kMostLog;
    const bool is_nothing = logarithm == -std::numeric_limits<double>::infinity();
    shifts[c] = is_usual ? shift_for(logarithm) : 0.0f;
    sums[c] = is_usual ? exp_of_rest(logarithm - natural(shifts[c]))
                       : (is_nothing ? 0 : std::numeric_limits<double>::quiet_NaN());
    logs[c] = logarithm;
  }
};

HWY_INLINE HWY_ATTR LogState load_state(const LogColumns& columns, std::int64_t c) {
  return {hn::Load(FloatTag(), columns.shifts + c), load_wide(columns.sums + c),
          load_wide(columns.logs + c)};
}
HWY_INLINE HWY_ATTR void store_state(const LogState& state, std::int64_t c, LogColumns& columns) {
  hn::Store(state.shift, FloatTag(), columns.shifts + c);
  store_wide(state.sum, columns.sums + c);
  store_wide(state.log, columns.logs + c);
}

HWY_INLINE HWY_ATTR Wide sum_of(Wide a, Wide b) {
  return {hn::Add(a.low, b.low), hn::Add(a.high, b.high)};
}
HWY_INLINE HWY_ATTR Wide natural(FloatVec shift) {
  const DoubleVec inverse = hn::Set(DoubleTag(), 1 / static_cast<double>(kTermUnit));
  const Wide wide = widened(shift);
  return {hn::Mul(wide.low, inverse), hn::Mul(wide.high, inverse)};
}
HWY_INLINE HWY_ATTR Base base_of(Wide log) {
  const FloatVec high = narrowed(log);
  const Wide wide = widened(high);
  return {high, narrowed({hn::Sub(log.low, wide.low), hn::Sub(log.high, wide.high)})};
}
HWY_INLINE HWY_ATTR Wide log_of(Wide x) {
  const DoubleTag d;
  return {hn::Log(d, x.low), hn::Log(d, x.high)};
}

/// Rows of a column one by one, in double; the first is at x, the others `apart` elements on.
inline void log_column(const float* x, std::int64_t apart, std::int64_t count, const ScanRows& rows,
                       std::int64_t first, std::int64_t c, LogColumns& columns) {
  double sum = columns.logs[c];
  for (std::int64_t r = 0; r < count; ++r) {
    const double with = LogAddExp()(sum, static_cast<double>(x[r * apart]));
    if (rows.out) {
      rows.out[(first + r) * rows.apart + c] = static_cast<float>(rows.exclusive ? sum : with);
    }
    sum = with;
  }
  columns.set(c, sum);
}

template <int kRows>
HWY_INLINE HWY_ATTR Vectors<kRows> tile_of(const FloatVec (&x)[kRows], FloatVec shift) {
  Vectors<kRows> tile;
  for (int r = 0; r < kRows; ++r) {
    const FloatVec term = term_of(term_exponent(x[r], shift));
    tile.v[r] = r == 0 ? term : hn::Add(tile.v[r - 1], term);
  }
  return tile;
}

template <Stores kStores>
HWY_INLINE HWY_ATTR void put_row(FloatVec log, Base base, const ScanRows& rows, std::int64_t r,
                                 std::int64_t c) {
  put<kStores>(joined(base, log), rows.out + r * rows.apart + c);
}

/// The columns that may be counted from the state's shift, or from their first number, which then
/// becomes it.
template <int kRows>
HWY_INLINE HWY_ATTR hn::Mask<FloatTag> near_columns(const FloatVec (&x)[kRows], bool exclusive,
                                                    LogState& state) {
  const FloatTag d;
  const FloatVec sum = narrowed(state.sum);
  const auto starts = hn::Eq(sum, hn::Zero(d));
  const FloatVec from_first = hn::Mul(x[0], constant(kTermUnit));
  state.shift = hn::IfThenElse(starts, from_first, state.shift);
  auto is_near = hn::Le(hn::Abs(state.shift), constant(kMostLog));
  for (int r = 0; r < kRows; ++r) {
    const auto below = hn::Le(term_exponent(x[r], state.shift), constant(kFurthest));
    is_near = hn::And(is_near, below);
  }
  const auto counts = hn::And(hn::Ge(sum, constant(1e-30f)), hn::Le(sum, constant(1e30f)));
  return hn::And(is_near, exclusive ? counts : hn::Or(counts, starts));
}

/// The sums so far counted from themselves.
HWY_INLINE HWY_ATTR void shift_anew(LogState& state) {
  const DoubleTag d;
  const FloatTag df;
  const auto holds = hn::Gt(narrowed(state.sum), hn::Zero(df));
  const DoubleVec unit = hn::Set(d, static_cast<double>(kTermUnit));
  const FloatVec shift = narrowed({hn::Mul(state.log.low, unit), hn::Mul(state.log.high, unit)});
  const auto is_usual = hn::And(holds, hn::Le(hn::Abs(shift), constant(kMostLog)));
  state.shift = hn::IfThenElse(is_usual, shift, state.shift);
  const Wide choice = widened(hn::IfThenElse(is_usual, constant(1.0f), hn::Zero(df)));
  const Wide place = natural(state.shift);
  const auto anew = [&](DoubleVec which, DoubleVec log, DoubleVec from, DoubleVec sum) HWY_ATTR {
    return hn::IfThenElse(hn::Gt(which, hn::Zero(d)), hn::Exp(d, hn::Sub(log, from)), sum);
  };
  state.sum = {anew(choice.low, state.log.low, place.low, state.sum.low),
               anew(choice.high, state.log.high, place.high, state.sum.high)};
}

/// Logarithms of the sums, where there are any, which are then counted from there.
HWY_INLINE HWY_ATTR void take_anew(LogState& state) {
  const DoubleVec zero = hn::Zero(DoubleTag());
  const Wide log = sum_of(natural(state.shift), log_of(state.sum));
  state.log = {hn::IfThenElse(hn::Gt(state.sum.low, zero), log.low, state.log.low),
               hn::IfThenElse(hn::Gt(state.sum.high, zero), log.high, state.log.high)};
  shift_anew(state);
}
HWY_NOINLINE HWY_ATTR void take_all_anew(std::int64_t count, LogColumns& columns) {
  for (std::int64_t c = 0; c + kFloats <= count; c += kFloats) {
    LogState state = load_state(columns, c);
    take_anew(state);
    store_state(state, c, columns);
  }
}

/// Columns [c, c + kFloats) that are not near, from what they were before these rows.
template <int kRows>
HWY_NOINLINE HWY_ATTR void log_far_columns(const FloatVec (&x)[kRows], hn::Mask<FloatTag> near,
                                           const LogState& before, const ScanRows& rows,
                                           std::int64_t first, std::int64_t c,
                                           LogColumns& columns) {
  const FloatTag d;
  HWY_ALIGN float values[kRows * kFloats];
  HWY_ALIGN double logs[kFloats];
  std::uint8_t bits[8] = {};
  for (int r = 0; r < kRows; ++r) hn::Store(x[r], d, values + r * kFloats);
  store_wide(before.log, logs);
  hn::StoreMaskBits(d, near, bits);
  for (std::int64_t i = 0; i < kFloats; ++i) {
    if (bits[i / 8] >> (i % 8) & 1) continue;
    columns.logs[c + i] = logs[i];
    log_column(values + i, kFloats, kRows, rows, first, c + i, columns);
  }
}

/// Rows whose terms are not small beside the sums so far, or not usual at all.
template <int kRows, Stores kStores>
HWY_NOINLINE HWY_ATTR void log_unusual(const FloatVec (&x)[kRows], const ScanRows& rows,
                                       std::int64_t first, std::int64_t c, LogColumns& columns) {
  const FloatTag d;
  const LogState before = load_state(columns, c);
  LogState state = before;
  auto near = near_columns<kRows>(x, rows.exclusive, state);
  if (!hn::AllTrue(d, near)) {
    state = before;
    shift_anew(state);
    near = near_columns<kRows>(x, rows.exclusive, state);
  }
  const Vectors<kRows> tile = tile_of<kRows>(x, state.shift);
  const FloatVec sum = narrowed(state.sum);
  const auto starts = hn::Eq(sum, hn::Zero(d));
  const FloatVec inverse = hn::IfThenElse(starts, constant(1.0f), hn::Div(constant(1.0f), sum));
  const FloatVec one = hn::IfThenElse(starts, hn::Zero(d), constant(1.0f));
  const Base from_shift = base_of(natural(state.shift)), from_sum = base_of(state.log);
  const Base base{hn::IfThenElse(starts, from_shift.high, from_sum.high),
                  hn::IfThenElse(starts, from_shift.low, from_sum.low)};
  FloatVec previous = hn::Zero(d);
  for (int r = 0; rows.out && r < kRows; ++r) {
    const FloatVec log = log_of_normal(hn::MulAdd(tile.v[r], inverse, one));
    put_row<kStores>(rows.exclusive ? previous : log, base, rows, first + r, c);
    previous = log;
  }
  state.sum = sum_of(state.sum, widened(tile.v[kRows - 1]));
  take_anew(state);
  store_state(state, c, columns);
  if (!hn::AllTrue(d, near)) log_far_columns<kRows>(x, near, before, rows, first, c, columns);
}

template <int kRows, Stores kStores>
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
    LogState state = load_state(columns, c);
    const Vectors<kRows> tile = tile_of<kRows>(x, state.shift);
    const FloatVec inverse = hn::Div(constant(1.0f), narrowed(state.sum));
    const auto is_small = hn::Le(hn::Mul(tile.v[kRows - 1], inverse), constant(kSmall));
    if (HWY_UNLIKELY(!hn::AllTrue(d, is_small))) {
      log_unusual<kRows, kStores>(x, rows, first, c, columns);
      continue;
    }
    const Base base = base_of(state.log);
    FloatVec log = hn::Zero(d);
    for (int r = 0; r < kRows; ++r) {
      const FloatVec previous = log;
      log = log1p_of_part(hn::Mul(tile.v[r], inverse));
      if (rows.out) put_row<kStores>(rows.exclusive ? previous : log, base, rows, first + r, c);
    }
    state.sum = sum_of(state.sum, widened(tile.v[kRows - 1]));
    state.log = sum_of(state.log, widened(log));
    store_state(state, c, columns);
  }
  for (; c < rows.columns; ++c) {
    log_column(rows.x + first * rows.apart + c, rows.apart, kRows, rows, first, c, columns);
  }
}

template <Stores kStores>
HWY_NOINLINE HWY_ATTR void log_all(const ScanRows& rows, double* totals) {
  constexpr int kAtOnce = 8, kAnew = 256;
  LogColumns columns;
  for (std::int64_t c = 0; c < rows.columns; ++c) columns.set(c, totals[c]);
  std::int64_t r = 0;
  for (; r + kAtOnce <= rows.rows; r += kAtOnce) {
    log_some<kAtOnce, kStores>(rows, r, columns);
    if ((r + kAtOnce) % kAnew == 0) take_all_anew(rows.columns, columns);
  }
  for (; r < rows.rows; ++r) log_some<1, kStores>(rows, r, columns);
  std::copy_n(columns.logs, rows.columns, totals);
}

HWY_ATTR void log_across(const ScanRows& rows, void* totals) {
  ScanRows some = rows;
  for (std::int64_t c = 0; c < rows.columns; c += LogColumns::kMost) {
    some.columns = std::min(LogColumns::kMost, rows.columns - c);
    some.x = rows.x + c;
    some.out = rows.out ? rows.out + c : nullptr;
    auto* some_totals = static_cast<double*>(totals) + c;
    rows.streams ? log_all<Stores::streamed>(some, some_totals)
                 : log_all<Stores::cached>(some, some_totals);
  }
}

constexpr LogScans kLogScans{log_along, log_across};

#else

constexpr LogScans kLogScans;

#endif

const LogScans& log_scans() {
  return kLogScans;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

namespace {
const LogScans& table() {
  HEDDLE_SIMD_RETURN(log_scans);
}
}  // namespace

std::int64_t scan_log_sums(const ScanLine& line, double& logarithm) {
  return table().along ? table().along(line, logarithm) : 0;
}

void (*log_sums_across())(const ScanRows&, void*) {
  return table().across;
}

}  // namespace heddle::cpu
#endif
