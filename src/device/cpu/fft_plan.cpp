#include "device/cpu/fft_plan.h"

#include <kissfft/kiss_fft.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "base/check.h"

namespace heddle::cpu {

namespace {

// Up to this length, the definition takes no longer than Bluestein's convolution.
constexpr std::int64_t kShortRest = 48;
constexpr std::int64_t kColumns = 64;  // computed side by side

std::int64_t smooth_part(std::int64_t n) {
  std::int64_t smooth = 1;
  for (const std::int64_t prime : {2, 3, 5}) {
    for (; n % prime == 0; n /= prime) smooth *= prime;
  }
  return smooth;
}

const kiss_fft_cpx* kiss_of(const Complex* x) {
  return reinterpret_cast<const kiss_fft_cpx*>(x);
}
kiss_fft_cpx* kiss_of(Complex* x) {
  return reinterpret_cast<kiss_fft_cpx*>(x);
}

/// std::complex's own product looks for NaN.
Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

Complex root_of_unity(std::int64_t numerator, std::int64_t denominator) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(numerator % denominator) /
                       static_cast<double>(denominator);
  return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
}

FftPlan::Kiss FftPlan::kiss(std::int64_t n, bool inverse) {
  kiss_fft_state* plan = kiss_fft_alloc(static_cast<int>(n), inverse, nullptr, nullptr);
  require(plan, ErrorCode::out_of_memory, "fft: no memory for a plan of {} elements", n);
  return Kiss(plan, [](kiss_fft_state* state) { std::free(state); });
}

FftPlan::FftPlan(std::int64_t n, bool inverse)
    : n_(n), smooth_(smooth_part(n)), rest_(n / smooth_) {
  const std::int64_t sign = inverse ? 1 : -1;
  if (smooth_ > 1) smooth_plan_ = kiss(smooth_, inverse);
  if (rest_ == 1) return;
  turns_.reserve(static_cast<std::size_t>(n_));
  for (std::int64_t b = 0; b < rest_; ++b) {
    for (std::int64_t k = 0; k < smooth_; ++k) turns_.push_back(root_of_unity(sign * b * k, n_));
  }
  if (rest_ <= kShortRest) {
    for (std::int64_t i = 0; i < rest_; ++i) roots_.push_back(root_of_unity(sign * i, rest_));
    return;
  }
  // With jk = (j^2 + k^2 - (k - j)^2) / 2 a transform is a convolution with w^(-i^2 / 2).
  padded_ = kiss_fft_next_fast_size(static_cast<int>(2 * rest_ - 1));
  padded_forward_ = kiss(padded_, false);
  padded_inverse_ = kiss(padded_, true);
  std::vector<Complex> around(static_cast<std::size_t>(padded_));
  for (std::int64_t i = 0; i < rest_; ++i) {
    const Complex turn = root_of_unity(sign * (i * i % (2 * rest_)), 2 * rest_);
    chirp_.push_back(turn);
    around[static_cast<std::size_t>(i)] = std::conj(turn);
    if (i > 0) around[static_cast<std::size_t>(padded_ - i)] = std::conj(turn);
  }
  spectrum_.resize(around.size());
  kiss_fft(padded_forward_.get(), kiss_of(around.data()), kiss_of(spectrum_.data()));
  for (Complex& x : spectrum_) x /= static_cast<float>(padded_);  // of the way back
}

std::int64_t FftPlan::scratch() const {
  return rest_ == 1 ? 0 : n_ + 2 * padded_;
}

void FftPlan::run(const Complex* from, Complex* to, Complex* scratch) const {
  if (n_ == 1) {
    *to = *from;
    return;
  }
  if (rest_ == 1) return kiss_fft(smooth_plan_.get(), kiss_of(from), kiss_of(to));
  for (std::int64_t b = 0; b < rest_; ++b) {
    Complex* row = scratch + b * smooth_;
    if (smooth_ == 1) {
      *row = from[b];
      continue;
    }
    kiss_fft_stride(smooth_plan_.get(), kiss_of(from + b), kiss_of(row), static_cast<int>(rest_));
    const Complex* turns = turns_.data() + b * smooth_;
    for (std::int64_t k = 0; k < smooth_; ++k) row[k] = product(row[k], turns[k]);
  }
  if (padded_ == 0) return short_lines(scratch, to);
  long_lines(scratch, to, scratch + n_);
}

/// Of columns of rest_ elements, some side by side.
void FftPlan::short_lines(const Complex* rows, Complex* to) const {
  for (std::int64_t first = 0; first < smooth_; first += kColumns) {
    const std::int64_t columns = std::min(kColumns, smooth_ - first);
    for (std::int64_t k = 0; k < rest_; ++k) {
      float real[kColumns], imaginary[kColumns];
      std::fill_n(real, columns, 0.0f);
      std::fill_n(imaginary, columns, 0.0f);
      for (std::int64_t b = 0; b < rest_; ++b) {
        const Complex root = roots_[static_cast<std::size_t>(b * k % rest_)];
        const float cosine = root.real(), sine = root.imag();
        const auto* row = reinterpret_cast<const float*>(rows + b * smooth_ + first);
        for (std::int64_t c = 0; c < columns; ++c) {
          real[c] += row[2 * c] * cosine - row[2 * c + 1] * sine;
          imaginary[c] += row[2 * c] * sine + row[2 * c + 1] * cosine;
        }
      }
      Complex* out = to + k * smooth_ + first;
      for (std::int64_t c = 0; c < columns; ++c) out[c] = {real[c], imaginary[c]};
    }
  }
}

void FftPlan::long_lines(const Complex* rows, Complex* to, Complex* scratch) const {
  Complex *line = scratch, *turned = scratch + padded_;
  for (std::int64_t c = 0; c < smooth_; ++c) {
    for (std::int64_t b = 0; b < rest_; ++b) {
      line[b] = product(rows[b * smooth_ + c], chirp_[static_cast<std::size_t>(b)]);
    }
    std::fill(line + rest_, line + padded_, Complex{});
    kiss_fft(padded_forward_.get(), kiss_of(line), kiss_of(turned));
    for (std::int64_t i = 0; i < padded_; ++i) {
      turned[i] = product(turned[i], spectrum_[static_cast<std::size_t>(i)]);
    }
    kiss_fft(padded_inverse_.get(), kiss_of(turned), kiss_of(line));
    for (std::int64_t k = 0; k < rest_; ++k) {
      to[k * smooth_ + c] = product(line[k], chirp_[static_cast<std::size_t>(k)]);
    }
  }
}

}  // namespace heddle::cpu
