// Fourier transforms.
#include "heddle/fft.h"

#include <cmath>

#include "array/ops_common.h"

namespace heddle::fft {

namespace {

struct Transform {
  const char* function;
  bool real = false, inverse = false;
};

/// What is left to multiply by, as inverse transforms of `count` elements divide by that.
double scale_of(const Transform& transform, FFTNorm norm, double count) {
  if (norm == FFTNorm::backward) return 1.0;
  const double all = norm == FFTNorm::forward ? count : std::sqrt(count);
  return transform.inverse ? all : 1 / all;
}

/// Cut, or with zeros behind.
Array of_length(const Array& x, std::size_t axis, std::int64_t length) {
  const std::int64_t extent = x.shape()[axis];
  if (extent == length) return x;
  if (extent < length) return pad(x, Dims{static_cast<std::int64_t>(axis)}, {0}, {length - extent});
  Dims stop = x.shape();
  stop[axis] = length;
  return slice(x, Dims(x.ndim(), 0), stop);
}

Array one_axis(FftKind kind, const Array& x, std::size_t axis, std::int64_t n) {
  return heddle::apply(Fft{kind, static_cast<std::int64_t>(axis), n}, {x});
}

Array over_axes(const Transform& transform, const Array& a, const Dims& n, const Dims& axes,
                FFTNorm norm) {
  Array x = astype(a, transform.real && !transform.inverse ? DType::f32 : DType::complex64);
  std::vector<std::size_t> at;
  double count = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    at.push_back(normalize_axis(axes[i], a.ndim(), transform.function));
    const bool halved = transform.real && transform.inverse && i + 1 == axes.size();
    x = of_length(x, at.back(), halved ? n[i] / 2 + 1 : n[i]);
    count *= static_cast<double>(n[i]);
  }
  const FftKind kind = transform.inverse ? FftKind::inverse : FftKind::forward;
  const std::size_t last = at.size() - 1;
  const bool ends_real = transform.real && transform.inverse;
  if (!ends_real) {
    x = one_axis(transform.real ? FftKind::real_forward : kind, x, at[last], n[last]);
  }
  for (std::size_t i = last; i-- > 0;) x = one_axis(kind, x, at[i], n[i]);
  if (ends_real) x = one_axis(FftKind::real_inverse, x, at[last], n[last]);
  const double scale = scale_of(transform, norm, count);
  return scale == 1.0 ? x : multiply(x, astype(Array(scale), x.dtype()));
}

Array transformed(const Transform& transform, const Arg& a, const Dims& n, const Dims& axes,
                  FFTNorm norm) {
  return within(transform.function, a, [&]() -> Array {
    require(a.ndim() > 0 || !axes.empty(), ErrorCode::invalid_argument,
            "{}: {} is a scalar, which has no axis to transform", transform.function, a.spec());
    require(n.size() == axes.size(), ErrorCode::invalid_argument,
            "{}: lengths {} do not fit axes {}", transform.function, n, axes);
    require(norm == FFTNorm::backward || norm == FFTNorm::ortho || norm == FFTNorm::forward,
            ErrorCode::invalid_argument, "{}: norm {}; it must be backward, ortho or forward",
            transform.function, static_cast<int>(norm));
    sorted_axes(axes, a.ndim(), transform.function);  // refuses those that are named twice
    if (axes.empty()) return a;
    for (const std::int64_t length : n) {
      require(length > 0, ErrorCode::invalid_argument,
              "{}: {} along axes {} to lengths {}; they must be at least 1", transform.function,
              a.spec(), axes, n);
    }
    return over_axes(transform, a, n, axes, norm);
  });
}

/// To the lengths that there are.
Array transformed(const Transform& transform, const Arg& a, const Dims& axes, FFTNorm norm) {
  return within(transform.function, a, [&]() -> Array {
    Dims n;
    for (const std::int64_t axis : axes) {
      n.push_back(a.shape()[normalize_axis(axis, a.ndim(), transform.function)]);
    }
    if (transform.real && transform.inverse && !n.empty()) n[n.size() - 1] = 2 * (n.back() - 1);
    return transformed(transform, a, n, axes, norm);
  });
}

Dims all_axes(const Arg& a) {
  Dims axes;
  for (std::size_t i = 0; i < a.ndim(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

/// Rolled by half the extents, in the direction of `sign`.
Array shifted(const char* function, const Arg& a, const Dims& axes, int sign) {
  return within(function, a, [&]() -> Array {
    if (axes.empty()) return a;
    Dims shifts;
    for (const std::int64_t axis : sorted_axes(axes, a.ndim(), function)) {
      shifts.push_back(sign * (a.shape()[static_cast<std::size_t>(axis)] / 2));
    }
    return roll(a, shifts, sorted_axes(axes, a.ndim(), function));
  });
}

constexpr Transform kFft{"fft", false, false}, kIfft{"ifft", false, true};
constexpr Transform kRfft{"rfft", true, false}, kIrfft{"irfft", true, true};
constexpr Transform kFft2{"fft2", false, false}, kIfft2{"ifft2", false, true};
constexpr Transform kRfft2{"rfft2", true, false}, kIrfft2{"irfft2", true, true};
constexpr Transform kFftn{"fftn", false, false}, kIfftn{"ifftn", false, true};
constexpr Transform kRfftn{"rfftn", true, false}, kIrfftn{"irfftn", true, true};

}  // namespace

Array fft(const Arg& a, int n, int axis, FFTNorm norm) {
  return transformed(kFft, a, Dims{n}, Dims{axis}, norm);
}
Array fft(const Arg& a, int axis, FFTNorm norm) {
  return transformed(kFft, a, Dims{axis}, norm);
}
Array ifft(const Arg& a, int n, int axis, FFTNorm norm) {
  return transformed(kIfft, a, Dims{n}, Dims{axis}, norm);
}
Array ifft(const Arg& a, int axis, FFTNorm norm) {
  return transformed(kIfft, a, Dims{axis}, norm);
}
Array rfft(const Arg& a, int n, int axis, FFTNorm norm) {
  return transformed(kRfft, a, Dims{n}, Dims{axis}, norm);
}
Array rfft(const Arg& a, int axis, FFTNorm norm) {
  return transformed(kRfft, a, Dims{axis}, norm);
}
Array irfft(const Arg& a, int n, int axis, FFTNorm norm) {
  return transformed(kIrfft, a, Dims{n}, Dims{axis}, norm);
}
Array irfft(const Arg& a, int axis, FFTNorm norm) {
  return transformed(kIrfft, a, Dims{axis}, norm);
}

Array fft2(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm) {
  return transformed(kFft2, a, n, axes, norm);
}
Array fft2(const Arg& a, const Dims& axes, FFTNorm norm) {
  return transformed(kFft2, a, axes, norm);
}
Array ifft2(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm) {
  return transformed(kIfft2, a, n, axes, norm);
}
Array ifft2(const Arg& a, const Dims& axes, FFTNorm norm) {
  return transformed(kIfft2, a, axes, norm);
}
Array rfft2(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm) {
  return transformed(kRfft2, a, n, axes, norm);
}
Array rfft2(const Arg& a, const Dims& axes, FFTNorm norm) {
  return transformed(kRfft2, a, axes, norm);
}
Array irfft2(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm) {
  return transformed(kIrfft2, a, n, axes, norm);
}
Array irfft2(const Arg& a, const Dims& axes, FFTNorm norm) {
  return transformed(kIrfft2, a, axes, norm);
}

Array fftn(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm) {
  return transformed(kFftn, a, n, axes, norm);
}
Array fftn(const Arg& a, const Dims& axes, FFTNorm norm) {
  return transformed(kFftn, a, axes, norm);
}
Array fftn(const Arg& a, FFTNorm norm) {
  return transformed(kFftn, a, all_axes(a), norm);
}
Array ifftn(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm) {
  return transformed(kIfftn, a, n, axes, norm);
}
Array ifftn(const Arg& a, const Dims& axes, FFTNorm norm) {
  return transformed(kIfftn, a, axes, norm);
}
Array ifftn(const Arg& a, FFTNorm norm) {
  return transformed(kIfftn, a, all_axes(a), norm);
}
Array rfftn(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm) {
  return transformed(kRfftn, a, n, axes, norm);
}
Array rfftn(const Arg& a, const Dims& axes, FFTNorm norm) {
  return transformed(kRfftn, a, axes, norm);
}
Array rfftn(const Arg& a, FFTNorm norm) {
  return transformed(kRfftn, a, all_axes(a), norm);
}
Array irfftn(const Arg& a, const Shape& n, const Dims& axes, FFTNorm norm) {
  return transformed(kIrfftn, a, n, axes, norm);
}
Array irfftn(const Arg& a, const Dims& axes, FFTNorm norm) {
  return transformed(kIrfftn, a, axes, norm);
}
Array irfftn(const Arg& a, FFTNorm norm) {
  return transformed(kIrfftn, a, all_axes(a), norm);
}

Array fftshift(const Arg& a, const Dims& axes) {
  return shifted("fftshift", a, axes, 1);
}
Array fftshift(const Arg& a) {
  return shifted("fftshift", a, all_axes(a), 1);
}
Array ifftshift(const Arg& a, const Dims& axes) {
  return shifted("ifftshift", a, axes, -1);
}
Array ifftshift(const Arg& a) {
  return shifted("ifftshift", a, all_axes(a), -1);
}

namespace {

/// Elements of n apart by d, f32.
Array in_cycles(const char* function, int n, double d, const Array& steps) {
  require(d != 0 && std::isfinite(d), ErrorCode::invalid_argument,
          "{}: samples {} apart; it must be a finite distance, and not 0", function, d);
  return multiply(steps, Array(1.0 / (n * d)));
}

void require_samples(const char* function, int n) {
  require(n > 0, ErrorCode::invalid_argument, "{}: {} samples; there must be at least 1", function,
          n);
}

}  // namespace

Array fftfreq(int n, double d, std::source_location where) {
  return within("fftfreq", where, [&]() -> Array {
    require_samples("fftfreq", n);
    const auto half = static_cast<double>(n / 2);
    const Array steps = concatenate({arange(0.0, n - half), arange(-half, 0.0)});
    return in_cycles("fftfreq", n, d, steps);
  });
}

Array rfftfreq(int n, double d, std::source_location where) {
  return within("rfftfreq", where, [&]() -> Array {
    require_samples("rfftfreq", n);
    return in_cycles("rfftfreq", n, d, arange(0.0, n / 2 + 1.0));
  });
}

}  // namespace heddle::fft
