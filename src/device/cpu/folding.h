// How reductions combine elements, each kind and type in a few functions on arrays, so that what
// walks memory need not know them.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "device/cpu/combine.h"
#include "device/cpu/prefetch.h"
#include "device/cpu/row_ops.h"

namespace heddle::cpu {

/// The type in which a kind accumulates T.
template <class Kind, class T>
struct Accumulator {
  using type = T;
};
template <class Kind, class T>
requires((std::same_as<Kind, Sum> || std::same_as<Kind, Prod>)&&std::integral<T> &&
         sizeof(T) < 4) struct Accumulator<Kind, T> {
  using type = std::int32_t;
};

/// All and any, of masks that are as wide as the elements.
struct Both {
  template <class A>
  static constexpr A identity() {
    return static_cast<A>(-1);
  }
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(a & b);
  }
};
struct Either {
  template <class A>
  static constexpr A identity() {
    return A{0};
  }
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(a | b);
  }
};
template <class Kind>
constexpr bool kOfTruth = std::is_same_v<Kind, Both> || std::is_same_v<Kind, Either>;

/// An element as a kind accumulates it.
template <class Kind, class A, class T>
A accumulated(T x) {
  if constexpr (kOfTruth<Kind>) {
    return static_cast<A>(-static_cast<A>(x != T{}));
  } else {
    return static_cast<A>(x);
  }
}

/// How elements of one type are combined, on arrays of accumulators; whatever the walk.
struct Folding {
  std::int64_t width = 0;             // bytes of an accumulator
  std::int64_t item = 0;              // bytes of an element
  const FloatFold* floats = nullptr;  // where elements are floats

  void (*clear)(std::int64_t n, void* to) = nullptr;
  void (*fold_block)(const void* x, std::int64_t n, void* to) = nullptr;
  void (*fold_rows)(const void* const* rows, const void* const* next, std::int64_t count,
                    std::int64_t n, void* to) = nullptr;
  void (*join)(const void* a, const void* b, std::int64_t n, void* to) = nullptr;
  /// What is stored: accumulators divided by `divisor`, as the type that outputs are computed in.
  void (*finish)(const void* from, std::int64_t divisor, std::int64_t n, void* to) = nullptr;

  /// In the order of row_ops.h; of n <= kBlock elements where they are not floats. Meanwhile as
  /// many of `next`, if that is not null, are fetched.
  void block(const void* x, const void* next, std::int64_t n, void* to) const {
    if (floats) {
      const auto* later = static_cast<const float*>(next);
      *static_cast<float*>(to) = floats->block(static_cast<const float*>(x), later, n);
      return;
    }
    if (next) prefetch_later(next, n * item);
    fold_block(x, n, to);
  }
  /// to = to combined with each of the rows, while as many of `next` are fetched.
  void rows(const void* const* from, const void* const* next, std::int64_t count, std::int64_t n,
            void* to) const {
    if (!floats) return fold_rows(from, next, count, n, to);
    floats->rows(from, next, count, n, static_cast<float*>(to));
  }
};

template <class Kind, class A>
void clear_to(std::int64_t n, void* to) {
  std::fill_n(static_cast<A*>(to), n, Kind::template identity<A>());
}

template <class Kind, class A>
void join_to(const void* a, const void* b, std::int64_t n, void* to) {
  const auto *x = static_cast<const A*>(a), *y = static_cast<const A*>(b);
  auto* out = static_cast<A*>(to);
  for (std::int64_t i = 0; i < n; ++i) out[i] = Kind()(x[i], y[i]);
}

template <class Kind, class T, class A>
void fold_block_to(const void* from, std::int64_t n, void* to) {
  const auto* x = static_cast<const T*>(from);
  A lanes[kSumLanes];
  std::fill_n(lanes, kSumLanes, Kind::template identity<A>());
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int l = 0; l < kSumLanes; ++l) {
      lanes[l] = Kind()(lanes[l], accumulated<Kind, A>(x[i + l]));
    }
  }
  for (int l = 0; i < n; ++i, ++l) lanes[l] = Kind()(lanes[l], accumulated<Kind, A>(x[i]));
  for (int half = kSumLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] = Kind()(lanes[l], lanes[l + half]);
  }
  *static_cast<A*>(to) = lanes[0];
}

template <class Kind, class T, class A>
void fold_rows_to(const void* const* rows, const void* const* next, std::int64_t count,
                  std::int64_t n, void* to) {
  constexpr std::int64_t kAtOnce = 16;
  auto* out = static_cast<A*>(to);
  std::int64_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) {
    A folded[kAtOnce];
    std::copy_n(out + i, kAtOnce, folded);
    for (std::int64_t r = 0; next && r < count; ++r) {
      prefetch_later(static_cast<const T*>(next[r]) + i, kAtOnce * static_cast<int>(sizeof(T)));
    }
    for (std::int64_t r = 0; r < count; ++r) {
      const T* x = static_cast<const T*>(rows[r]) + i;
      for (std::int64_t c = 0; c < kAtOnce; ++c) {
        folded[c] = Kind()(folded[c], accumulated<Kind, A>(x[c]));
      }
    }
    std::copy_n(folded, kAtOnce, out + i);
  }
  for (; i < n; ++i) {
    for (std::int64_t r = 0; r < count; ++r) {
      out[i] = Kind()(out[i], accumulated<Kind, A>(static_cast<const T*>(rows[r])[i]));
    }
  }
}

template <class A, class Out>
void finish_to(const void* from, std::int64_t divisor, std::int64_t n, void* to) {
  const auto* x = static_cast<const A*>(from);
  auto* out = static_cast<Out*>(to);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<A>) {
      out[i] = static_cast<Out>(x[i]);
    } else {
      out[i] = static_cast<Out>(divisor == 1 ? x[i] : x[i] / static_cast<A>(divisor));
    }
  }
}

template <class Kind>
const FloatFold* float_fold() {
  if (std::is_same_v<Kind, Sum>) return &row_ops().sums;
  if (std::is_same_v<Kind, Prod>) return &row_ops().products;
  if (std::is_same_v<Kind, Max>) return &row_ops().largest;
  if (std::is_same_v<Kind, Min>) return &row_ops().smallest;
  return std::is_same_v<Kind, Both> ? &row_ops().all : &row_ops().any;
}

template <class Kind, class T, class A, class Out>
Folding folding() {
  Folding made;
  made.width = sizeof(A);
  made.item = sizeof(T);
  if constexpr (std::is_same_v<T, float> && sizeof(A) == sizeof(float)) {
    made.floats = float_fold<Kind>();
  } else {
    made.fold_block = fold_block_to<Kind, T, A>;
    made.fold_rows = fold_rows_to<Kind, T, A>;
  }
  made.clear = clear_to<Kind, A>;
  made.join = join_to<Kind, A>;
  made.finish = finish_to<A, Out>;
  return made;
}

}  // namespace heddle::cpu
