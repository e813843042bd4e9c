// Keys and bits, and what takes them as they come: integers, bools, orders.
#include "heddle/random.h"

#include <cmath>
#include <limits>
#include <mutex>
#include <random>
#include <vector>

#include "array/ops_common.h"
#include "array/random_key.h"
#include "op/threefry.h"

namespace heddle::random {

namespace {

ThreefryPair halves(std::uint64_t seed) noexcept {
  return {static_cast<std::uint32_t>(seed >> 32), static_cast<std::uint32_t>(seed)};
}

Array key_of(ThreefryPair key) {
  return Array(std::span<const std::uint32_t>(key), {2});
}

/// The implicit sequence. It goes on here, not in arrays: a key made in a graph would stay there.
class Sequence {
 public:
  static Sequence& instance() {
    static Sequence& sequence = *new Sequence;  // static variables may draw as they go
    return sequence;
  }

  void seed(std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    key_ = halves(seed);
  }

  ThreefryPair next() {
    const std::lock_guard lock(mutex_);
    // What split(key_) gives: the words of two counters, each counter's in different keys.
    const ThreefryPair first = threefry(key_, {0, 2}), second = threefry(key_, {1, 3});
    key_ = {first[0], second[0]};
    return {first[1], second[1]};
  }

 private:
  Sequence() {
    std::random_device system;
    key_ = {system(), system()};
  }

  std::mutex mutex_;
  ThreefryPair key_;
};

Array cast(const Array& a, DType dtype) {
  return astype(a, dtype);
}

/// Random integers of 64 bits: two draws of 32 where `wide`, each from a key of its own.
Array draw_u64(const Shape& shape, bool wide, const Array& key) {
  if (!wide) return cast(bits(shape, 4, key), DType::u64);
  const auto [low_key, high_key] = split(key);
  const Array low = cast(bits(shape, 4, low_key), DType::u64);
  const Array high = cast(bits(shape, 4, high_key), DType::u64);
  return bitwise_or(left_shift(high, Array(std::uint64_t{32})), low);
}

}  // namespace

// ---- Keys

Array key_or_next(const Key& key) {
  if (!key) return key_of(Sequence::instance().next());
  require(key->spec() == TensorSpec{DType::u32, {2}}, ErrorCode::invalid_argument,
          "the key is {}; it must be u32[2]", key->spec());
  return *key;
}

void require_broadcast_to(const Shape& shape, const Shape& a, const Shape& b, const char* what) {
  bool fits = false;
  try {
    fits = broadcast_shapes(broadcast_shapes(a, b), shape) == shape;
  } catch (const Error&) {
    // Said below, with the three shapes.
  }
  require(fits, ErrorCode::invalid_argument, "{} of the shapes {} and {} do not broadcast to {}",
          what, a, b, shape);
}

Array key(std::uint64_t seed) {
  return key_of(halves(seed));
}

void seed(std::uint64_t seed) {
  Sequence::instance().seed(seed);
}

std::pair<Array, Array> split(const Array& key, Where where) {
  return within("split", where, [&] {
    const std::vector<Array> keys = heddle::split(split(key, 2), 2);
    return std::pair(reshape(keys[0], {2}), reshape(keys[1], {2}));
  });
}

Array split(const Array& key, int num, Where where) {
  return within("split", where, [&] {
    require(num >= 0, ErrorCode::invalid_argument, "{} keys", num);
    return bits({num, 2}, 4, key);
  });
}

// ---- Bits

Array bits(const Shape& shape, int width, const Key& key, Where where) {
  return within("bits", where, [&] {
    return heddle::apply(RandomBits{shape, width}, {key_or_next(key)});
  });
}

Array bits(const Shape& shape, const Key& key, Where where) {
  return bits(shape, 4, key, where);
}

Array randint(const Arg& low, const Arg& high, const Shape& shape, DType dtype, const Key& key) {
  return within("randint", low, [&] {
    require(is_integer(dtype) || dtype == DType::bool_, ErrorCode::invalid_argument,
            "{} is neither an integer type nor bool", dtype);
    for (const Array& bound : {low.array(), high.array()}) {
      require(!is_block(bound.dtype()) && bound.dtype() != DType::complex64,
              ErrorCode::invalid_argument, "a bound is {}; it must be real", bound.spec());
    }
    require_broadcast_to(shape, low.shape(), high.shape(), "bounds");
    // The range wraps to what it is as u64. Whether it is empty is seen in the type asked for, in
    // which all bounds that make sense are exact.
    const Array first = cast(cast(low, DType::i64), DType::u64);
    const Array range = subtract(cast(cast(high, DType::i64), DType::u64), first);
    const bool is_unsigned = info(dtype).kind == DTypeKind::unsigned_int;
    const DType compared = is_unsigned ? DType::u64 : DType::i64;
    const Array empty = less_equal(cast(high, compared), cast(low, compared));
    const Array count = where(empty, Array(std::uint64_t{1}), range);
    const bool wide = dtype == DType::i64 || dtype == DType::u64;
    const Array drawn = draw_u64(shape, wide, key_or_next(key));
    return cast(add(first, remainder(drawn, count)), dtype);
  });
}

Array bernoulli(const Array& p, const Shape& shape, const Key& key, Where where) {
  return within("bernoulli", where, [&] {
    require(is_floating(p.dtype()), ErrorCode::invalid_argument,
            "the probability is {}; it must be floating", p.spec());
    require_broadcast_to(shape, p.shape(), {}, "probabilities");
    // One more than the largest draw as a float, so that a probability of 1 is above them all.
    constexpr float kMost = static_cast<float>(std::numeric_limits<std::uint32_t>::max());
    const Array above(std::nextafter(kMost, std::numeric_limits<float>::max()));
    return less(bits(shape, 4, key), multiply(p, above));
  });
}

Array bernoulli(const Array& p, const Key& key, Where where) {
  return bernoulli(p, p.shape(), key, where);
}

Array bernoulli(const Key& key, Where where) {
  return bernoulli(Array(0.5f), Shape{}, key, where);
}

// ---- Orders

Array permutation(const Array& x, int axis, const Key& key, Where where) {
  return within("permutation", where, [&] {
    const std::int64_t extent = x.shape()[normalize_axis(axis, x.ndim(), "permutation")];
    require(extent <= std::numeric_limits<int>::max(), ErrorCode::invalid_argument,
            "axis {} of {} is longer than an int can say", axis, x.spec());
    return take(x, permutation(static_cast<int>(extent), key), axis);
  });
}

Array permutation(int x, const Key& key, Where where) {
  return within("permutation", where, [&] {
    require(x >= 0, ErrorCode::invalid_argument, "{} numbers", x);
    return heddle::apply(Sort{.kind = SortKind::argsort}, {bits({x}, 4, key)});
  });
}

}  // namespace heddle::random
