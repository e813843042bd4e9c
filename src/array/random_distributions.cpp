// Numbers of a distribution, made of uniform ones.
#include <cmath>
#include <limits>

#include "array/ops_common.h"
#include "array/random_key.h"

namespace heddle::random {

namespace {

void require_floating(DType dtype) {
  require(is_floating(dtype), ErrorCode::invalid_argument, "{} is not a floating type", dtype);
}

/// `value` in the dtype, rounded once.
Array constant(double value, DType dtype) {
  return astype(dtype == DType::f64 ? Array(std::span<const double>(&value, 1), {})
                                    : Array(static_cast<float>(value)),
                dtype);
}

/// The largest number below 1 of a dtype that draws are rounded to, as f32.
float below_one(DType dtype) {
  if (dtype == DType::f16) return 1.0f - 0x1p-11f;
  if (dtype == DType::bf16) return 1.0f - 0x1p-8f;
  return 1.0f - 0x1p-24f;
}

/// In [0, 1).
Array unit(const Shape& shape, DType dtype, const Array& key) {
  if (dtype == DType::f64) {
    const Array drawn = right_shift(bits(shape, 8, key), Array(std::uint64_t{11}));
    return multiply(astype(drawn, DType::f64), constant(0x1p-53, DType::f64));
  }
  constexpr float kMost = static_cast<float>(std::numeric_limits<std::uint32_t>::max());
  const Array drawn = divide(astype(bits(shape, 4, key), DType::f32), Array(kMost));
  return astype(minimum(drawn, Array(below_one(dtype))), dtype);
}

Array erfinv(const Array& x) {
  return heddle::apply(Unary{UnaryKind::erfinv}, {x});
}

/// In (-1, 1); f64 or f32.
Array around_zero(const Shape& shape, DType dtype, const Array& key) {
  const double low = dtype == DType::f64 ? std::nextafter(-1.0, 0.0)
                                         : static_cast<double>(std::nextafter(-1.0f, 0.0f));
  return uniform(constant(low, dtype), constant(1.0, dtype), shape, dtype, key);
}

DType drawn_in(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

Array complex_normal(Shape shape, const std::optional<Array>& loc,
                     const std::optional<Array>& scale, const Array& key) {
  shape.push_back(2);
  const Array parts = erfinv(around_zero(shape, DType::f32, key));
  Array samples = squeeze(view(parts, DType::complex64), Dims{-1});
  if (scale) samples = multiply(*scale, samples);
  if (loc) samples = add(*loc, samples);
  return samples;
}

std::optional<Array> unless(float value, float trivial) {
  return value == trivial ? std::nullopt : std::optional(Array(value));
}

std::size_t axis_of(int axis, const Array& logits) {
  return normalize_axis(axis, logits.ndim(), "categorical");
}

Shape without(Shape shape, std::size_t axis) {
  shape.erase(axis);
  return shape;
}

/// The index of the largest of the logits with Gumbel noise added, for each element of `shape`.
Array choose(const Array& logits, std::size_t axis, const Shape& shape, const Key& key) {
  require(
      is_floating(logits.dtype()) || is_integer(logits.dtype()) || logits.dtype() == DType::bool_,
      ErrorCode::invalid_argument, "logits are {}; they must be real", logits.spec());
  // Leading axes that `shape` has beyond the logits' come before the axis.
  const std::size_t at = axis + shape.size() + 1 - logits.ndim();
  Shape noisy = shape;
  noisy.insert(at, logits.shape()[axis]);
  const Array noise = gumbel(noisy, DType::f32, key);
  return argmax(add(noise, logits), static_cast<int>(at));
}

}  // namespace

// ---- Uniform

Array uniform(const Arg& low, const Arg& high, const Shape& shape, DType dtype, const Key& key) {
  return within("uniform", low, [&] {
    require_floating(dtype);
    require_broadcast_to(shape, low.shape(), high.shape(), "bounds");
    const Array first = astype(low, dtype);
    const Array range = subtract(astype(high, dtype), first);
    return add(multiply(range, unit(shape, dtype, key_or_next(key))), first);
  });
}

Array uniform(const Shape& shape, DType dtype, const Key& key, Where where) {
  return within("uniform", where, [&] {
    require_floating(dtype);
    return uniform(constant(0, dtype), constant(1, dtype), shape, dtype, key);
  });
}

Array uniform(const Shape& shape, const Key& key, Where where) {
  return uniform(shape, DType::f32, key, where);
}

// ---- Normal

Array normal(const Shape& shape, DType dtype, const std::optional<Array>& loc,
             const std::optional<Array>& scale, const Key& key, Where where) {
  return within("normal", where, [&]() -> Array {
    if (dtype == DType::complex64) return complex_normal(shape, loc, scale, key_or_next(key));
    require(is_floating(dtype), ErrorCode::invalid_argument,
            "{} is neither a floating type nor complex64", dtype);
    Array factor = constant(std::sqrt(2.0), dtype);
    if (scale) factor = multiply(factor, astype(*scale, dtype));
    const Array uniforms = around_zero(shape, drawn_in(dtype), key_or_next(key));
    Array samples = multiply(factor, astype(erfinv(uniforms), dtype));
    if (loc) samples = add(astype(*loc, dtype), samples);
    return samples;
  });
}

Array normal(const Shape& shape, DType dtype, float loc, float scale, const Key& key, Where where) {
  return normal(shape, dtype, unless(loc, 0), unless(scale, 1), key, where);
}

Array normal(const Shape& shape, float loc, float scale, const Key& key, Where where) {
  return normal(shape, DType::f32, loc, scale, key, where);
}

Array normal(const Shape& shape, DType dtype, const Key& key, Where where) {
  return normal(shape, dtype, std::nullopt, std::nullopt, key, where);
}

Array normal(const Shape& shape, const Key& key, Where where) {
  return normal(shape, DType::f32, key, where);
}

Array multivariate_normal(const Arg& mean, const Arg& cov, const Shape& shape, DType dtype,
                          const Key& key) {
  return within("multivariate_normal", mean, [&] {
    require(dtype == DType::f32, ErrorCode::invalid_argument, "{}; only f32 is supported", dtype);
    require(mean.ndim() >= 1 && cov.ndim() >= 2, ErrorCode::invalid_argument,
            "the mean is {} and the covariance {}; they must be [..., n] and [..., n, n]",
            mean.spec(), cov.spec());
    const std::int64_t n = mean.shape().back();
    require(cov.shape(-1) == n && cov.shape(-2) == n, ErrorCode::invalid_argument,
            "the mean {} and the covariance {} do not agree: they must be [..., n] and [..., n, n]",
            mean.spec(), cov.spec());
    const std::size_t batch = cov.ndim() - 2;
    Shape drawn = broadcast_shapes(Shape(std::span(cov.shape().begin(), batch)),
                                   without(mean.shape(), mean.ndim() - 1));
    drawn = broadcast_shapes(drawn, shape);
    drawn.push_back(n);
    // A square root of the covariance, from its singular values.
    const std::vector<Array> svd =
        apply_multi(Factor{.kind = FactorKind::svd}, {astype(cov, DType::f32)});
    const Array root = matmul(multiply(svd[0], expand_dims(sqrt(svd[1]), -2)), svd[2]);
    const Array standard = expand_dims(normal(drawn, DType::f32, key), -2);
    return add(mean, squeeze(matmul(standard, root), Dims{-2}));
  });
}

Array truncated_normal(const Arg& lower, const Arg& upper, const Shape& shape, DType dtype,
                       const Key& key) {
  return within("truncated_normal", lower, [&] {
    require_floating(dtype);
    const Array root = constant(std::sqrt(2.0), dtype);
    const Array least = astype(lower, dtype), most = astype(upper, dtype);
    const Array a = erf(divide(least, root)), b = erf(divide(most, root));
    const Array samples = multiply(root, erfinv(uniform(a, b, shape, dtype, key)));
    return maximum(minimum(most, samples), least);
  });
}

Array truncated_normal(const Arg& lower, const Arg& upper, DType dtype, const Key& key) {
  return within("truncated_normal", lower, [&] {
    return truncated_normal(lower, upper, broadcast_shapes(lower.shape(), upper.shape()), dtype,
                            key);
  });
}

// ---- Others

Array gumbel(const Shape& shape, DType dtype, const Key& key, Where where) {
  return within("gumbel", where,
                [&] { return negative(log(negative(log(uniform(shape, dtype, key))))); });
}

Array categorical(const Arg& logits, int axis, const Shape& shape, const Key& key) {
  return within("categorical", logits, [&] {
    const std::size_t at = axis_of(axis, logits);
    require_broadcast_to(shape, without(logits.shape(), at), {}, "distributions");
    return choose(logits, at, shape, key);
  });
}

Array categorical(const Arg& logits, int axis, int num_samples, const Key& key) {
  return within("categorical", logits, [&] {
    const std::size_t at = axis_of(axis, logits);
    require(num_samples >= 0, ErrorCode::invalid_argument, "{} samples", num_samples);
    Shape shape = without(logits.shape(), at);
    shape.push_back(num_samples);
    return choose(expand_dims(logits, -1), at, shape, key);
  });
}

Array categorical(const Arg& logits, int axis, const Key& key) {
  return within("categorical", logits, [&] {
    const std::size_t at = axis_of(axis, logits);
    return choose(logits, at, without(logits.shape(), at), key);
  });
}

Array laplace(const Shape& shape, DType dtype, float loc, float scale, const Key& key,
              Where where) {
  return within("laplace", where, [&] {
    require_floating(dtype);
    // The inverse of the distribution function.
    const Array x = around_zero(shape, drawn_in(dtype), key_or_next(key));
    Array samples = astype(multiply(sign(x), log1p(negative(abs(x)))), dtype);
    if (scale != 1.0f) samples = multiply(constant(static_cast<double>(scale), dtype), samples);
    if (loc != 0.0f) samples = add(constant(static_cast<double>(loc), dtype), samples);
    return samples;
  });
}

Array laplace(const Shape& shape, float loc, float scale, const Key& key, Where where) {
  return laplace(shape, DType::f32, loc, scale, key, where);
}

Array laplace(const Shape& shape, DType dtype, const Key& key, Where where) {
  return laplace(shape, dtype, 0.0f, 1.0f, key, where);
}

Array laplace(const Shape& shape, const Key& key, Where where) {
  return laplace(shape, DType::f32, key, where);
}

}  // namespace heddle::random
