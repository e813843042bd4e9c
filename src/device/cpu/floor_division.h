// Division that rounds towards minus infinity, as in Python and NumPy.
#pragma once

#include <cmath>
#include <concepts>

namespace heddle::cpu {

template <std::floating_point T>
T floor_quotient(T a, T b) {
  if (b == 0) return a / b;
  const T rest = std::fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (std::isnan(quotient)) return quotient;
  if (quotient == 0) return std::copysign(T(0), a / b);
  // Without the error of the division.
  const T floor = std::floor(quotient);
  return quotient - floor > T(0.5) ? floor + 1 : floor;
}

/// What is left; it has the sign of b. Of a division by zero, NaN.
template <std::floating_point T>
T floor_rest(T a, T b) {
  const T rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(T(0), b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

}  // namespace heddle::cpu
