// Random numbers from keys. Names, arguments, defaults and numbers follow MLX's C++ API: a key and
// a shape give the bits that MLX and JAX (with threefry, unpartitioned) give.
//
// A key is u32[2]. The same key always gives the same numbers: split it where different ones are
// wanted. Without a key, functions take the next of one implicit sequence, which all threads share:
// it is seeded by `seed`, else by the system as it is first used. In a traced function that key is
// a constant, so that every run gives the same numbers: give keys as arguments there.
//
// All throw invalid_argument, naming the function and what is wrong, when called. Any thread may
// call them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include "heddle/array.h"

namespace heddle {
namespace random {

using Key = std::optional<Array>;
using Where = std::source_location;

/// The key of a seed: its high and its low half.
Array key(std::uint64_t seed);
/// Begins the implicit sequence anew.
void seed(std::uint64_t seed);

/// Two keys, or `num` of them as u32[num, 2], which give other numbers than `key` and each other.
std::pair<Array, Array> split(const Array& key, Where where = Where::current());
Array split(const Array& key, int num, Where where = Where::current());

/// Unsigned integers of `width` bytes: 1, 2 or 4, and beyond MLX 8.
Array bits(const Shape& shape, int width, const Key& key = std::nullopt,
           Where where = Where::current());
Array bits(const Shape& shape, const Key& key = std::nullopt, Where where = Where::current());

/// From [low, high), which broadcast to `shape`; in a floating dtype. In f16 and bf16 rounding may
/// reach `high`. f64 (beyond MLX) has 53 random bits, the others 32.
Array uniform(const Arg& low, const Arg& high, const Shape& shape, DType dtype = DType::f32,
              const Key& key = std::nullopt);
Array uniform(const Shape& shape, DType dtype, const Key& key = std::nullopt,
              Where where = Where::current());
Array uniform(const Shape& shape, const Key& key = std::nullopt, Where where = Where::current());

/// From the normal distribution of mean `loc` and deviation `scale`, which broadcast against
/// `shape`. complex64: both parts have half the variance.
Array normal(const Shape& shape, DType dtype, const std::optional<Array>& loc,
             const std::optional<Array>& scale, const Key& key, Where where = Where::current());
Array normal(const Shape& shape, DType dtype, float loc, float scale, const Key& key = std::nullopt,
             Where where = Where::current());
Array normal(const Shape& shape, float loc, float scale, const Key& key = std::nullopt,
             Where where = Where::current());
Array normal(const Shape& shape, DType dtype, const Key& key = std::nullopt,
             Where where = Where::current());
Array normal(const Shape& shape, const Key& key = std::nullopt, Where where = Where::current());

/// Vectors of mean `mean` [..., n] and covariance `cov` [..., n, n] (symmetric and positive
/// semi-definite, which is not checked), f32 [..., n]: leading axes and `shape` broadcast.
Array multivariate_normal(const Arg& mean, const Arg& cov, const Shape& shape,
                          DType dtype = DType::f32, const Key& key = std::nullopt);

/// Integers, or bools, from [low, high), which broadcast to `shape`; `low` where that is empty.
Array randint(const Arg& low, const Arg& high, const Shape& shape, DType dtype = DType::i32,
              const Key& key = std::nullopt);

/// Bools that are true with probability `p`, of a floating dtype; below 0 never, above 1 always.
Array bernoulli(const Array& p, const Shape& shape, const Key& key = std::nullopt,
                Where where = Where::current());
Array bernoulli(const Array& p, const Key& key = std::nullopt, Where where = Where::current());
template <class T>
requires std::is_arithmetic_v<T> Array bernoulli(T p, const Shape& shape,
                                                 const Key& key = std::nullopt,
                                                 Where where = Where::current()) {
  return bernoulli(Array(p), shape, key, where);
}
template <class T>
requires std::is_arithmetic_v<T> Array bernoulli(T p, const Key& key = std::nullopt,
                                                 Where where = Where::current()) {
  return bernoulli(Array(p), key, where);
}
/// A shape in braces, which could be a key's number too.
template <class T>
Array bernoulli(const T& p, std::initializer_list<std::int64_t> shape,
                const Key& key = std::nullopt, Where where = Where::current()) {
  return bernoulli(Array(p), Shape(shape), key, where);
}
/// One coin.
Array bernoulli(const Key& key = std::nullopt, Where where = Where::current());

/// From the standard normal distribution between `lower` and `upper`, which broadcast to `shape`;
/// `lower` where that is empty.
Array truncated_normal(const Arg& lower, const Arg& upper, const Shape& shape,
                       DType dtype = DType::f32, const Key& key = std::nullopt);
Array truncated_normal(const Arg& lower, const Arg& upper, DType dtype = DType::f32,
                       const Key& key = std::nullopt);

/// From the standard Gumbel distribution.
Array gumbel(const Shape& shape, DType dtype = DType::f32, const Key& key = std::nullopt,
             Where where = Where::current());

/// u32 indices along `axis` with the probabilities softmax(logits): `shape` must be what the logits
/// without that axis broadcast to; `num_samples` come along a new last axis; by default there is
/// one for each distribution.
Array categorical(const Arg& logits, int axis, const Shape& shape, const Key& key = std::nullopt);
Array categorical(const Arg& logits, int axis, int num_samples, const Key& key = std::nullopt);
Array categorical(const Arg& logits, int axis = -1, const Key& key = std::nullopt);

/// From the Laplace distribution of mean `loc` and scale `scale`.
Array laplace(const Shape& shape, DType dtype, float loc, float scale,
              const Key& key = std::nullopt, Where where = Where::current());
Array laplace(const Shape& shape, float loc, float scale, const Key& key = std::nullopt,
              Where where = Where::current());
Array laplace(const Shape& shape, DType dtype, const Key& key = std::nullopt,
              Where where = Where::current());
Array laplace(const Shape& shape, const Key& key = std::nullopt, Where where = Where::current());

/// The slices of `x` along `axis` in random order, or u32 numbers below `x`.
Array permutation(const Array& x, int axis = 0, const Key& key = std::nullopt,
                  Where where = Where::current());
Array permutation(int x, const Key& key = std::nullopt, Where where = Where::current());

}  // namespace random
}  // namespace heddle
