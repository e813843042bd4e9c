// Fourier transforms in single precision, over lines of any length.
//
// `n` says how long lines are: longer ones are cut, shorter ones get zeros behind. Real types
// become complex64 (for rfft: f32). Inverse transforms of "real" ones take n/2 + 1 elements of the
// last axis named and give n, by default 2 (length - 1); forward ones the other way round. `norm`
// says which direction divides: backward, the inverse one by n; forward, the forward one; ortho,
// both by sqrt(n).
#pragma once

#include <cstdint>
#include <source_location>

#include "heddle/array.h"

namespace heddle {
namespace fft {

enum class FFTNorm : std::uint8_t { backward, ortho, forward };

// Of one axis.
Array fft(const Arg& a, int n, int axis, FFTNorm norm = FFTNorm::backward);
Array fft(const Arg& a, int axis = -1, FFTNorm norm = FFTNorm::backward);
Array ifft(const Arg& a, int n, int axis, FFTNorm norm = FFTNorm::backward);
Array ifft(const Arg& a, int axis = -1, FFTNorm norm = FFTNorm::backward);
Array rfft(const Arg& a, int n, int axis, FFTNorm norm = FFTNorm::backward);
Array rfft(const Arg& a, int axis = -1, FFTNorm norm = FFTNorm::backward);
Array irfft(const Arg& a, int n, int axis, FFTNorm norm = FFTNorm::backward);
Array irfft(const Arg& a, int axis = -1, FFTNorm norm = FFTNorm::backward);

// Of two.
Array fft2(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array fft2(const Arg& a, const Dims& axes = {-2, -1}, FFTNorm norm = FFTNorm::backward);
Array ifft2(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array ifft2(const Arg& a, const Dims& axes = {-2, -1}, FFTNorm norm = FFTNorm::backward);
Array rfft2(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array rfft2(const Arg& a, const Dims& axes = {-2, -1}, FFTNorm norm = FFTNorm::backward);
Array irfft2(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array irfft2(const Arg& a, const Dims& axes = {-2, -1}, FFTNorm norm = FFTNorm::backward);

// Of some, or of all.
Array fftn(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array fftn(const Arg& a, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array fftn(const Arg& a, FFTNorm norm = FFTNorm::backward);
Array ifftn(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array ifftn(const Arg& a, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array ifftn(const Arg& a, FFTNorm norm = FFTNorm::backward);
Array rfftn(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array rfftn(const Arg& a, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array rfftn(const Arg& a, FFTNorm norm = FFTNorm::backward);
Array irfftn(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array irfftn(const Arg& a, const Dims& axes, FFTNorm norm = FFTNorm::backward);
Array irfftn(const Arg& a, FFTNorm norm = FFTNorm::backward);

/// Elements moved round along axes (by default all), so that frequency 0 is in the middle; and
/// back.
Array fftshift(const Arg& a, const Dims& axes);
Array fftshift(const Arg& a);
Array ifftshift(const Arg& a, const Dims& axes);
Array ifftshift(const Arg& a);

/// The frequencies of fft's and rfft's elements, f32, where samples are `d` apart.
Array fftfreq(int n, double d = 1.0, std::source_location where = std::source_location::current());
Array rfftfreq(int n, double d = 1.0, std::source_location where = std::source_location::current());

}  // namespace fft
}  // namespace heddle
