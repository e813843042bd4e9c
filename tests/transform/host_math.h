// Arrays as vectors of numbers, for comparing directions. Complex ones count as pairs of reals.
#pragma once

#include <cmath>
#include <complex>
#include <vector>

#include "gradient_cases.h"

namespace heddle::test {

inline std::vector<double> numbers(const std::vector<Array>& arrays) {
  std::vector<double> all;
  for (const Array& array : arrays) {
    if (array.dtype() == DType::complex64) {
      for (const std::complex<float> z : array.to_vector<std::complex<float>>()) {
        all.push_back(z.real());
        all.push_back(z.imag());
      }
    } else {
      for (const double x : astype(array, DType::f64).to_vector<double>()) all.push_back(x);
    }
  }
  return all;
}

inline double inner(const std::vector<double>& a, const std::vector<double>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

inline double length(const std::vector<double>& a) {
  return std::sqrt(inner(a, a));
}

inline Array imaginary(std::mt19937& random, const Shape& shape) {
  const std::complex<float> i{0, 1};
  return random_array(random, shape, -1, 1, DType::complex64) * Array(std::span(&i, 1), Shape{});
}

inline std::vector<Array> random_like(std::mt19937& random, const std::vector<Array>& like) {
  std::vector<Array> made;
  for (const Array& array : like) {
    Array one = random_array(random, array.shape(), -1, 1, array.dtype());
    if (array.dtype() == DType::complex64) one = one + imaginary(random, array.shape());
    made.push_back(one);
  }
  return made;
}

/// x + step * t
inline std::vector<Array> moved(const std::vector<Array>& x, const std::vector<Array>& t,
                                double step) {
  std::vector<Array> sums;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Array scale = astype(Array(std::vector<double>{step}, {1}), x[i].dtype());
    sums.push_back(x[i] + reshape(scale, {}) * t[i]);
  }
  return sums;
}

/// The derivative of f at x in direction t, by central differences.
inline std::vector<double> central_difference(const ArraysFunction& f, const std::vector<Array>& x,
                                              const std::vector<Array>& t, double step) {
  std::vector<double> up = numbers(f(moved(x, t, step)));
  const std::vector<double> down = numbers(f(moved(x, t, -step)));
  for (std::size_t i = 0; i < up.size(); ++i) up[i] = (up[i] - down[i]) / (2 * step);
  return up;
}

}  // namespace heddle::test
