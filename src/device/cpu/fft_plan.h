// The discrete Fourier transform of one line of any length.
//
// Lengths n = s q, where s has no prime factors but 2, 3 and 5: kissfft transforms q lines of s
// elements, and what is left are s lines of q, by their definition where q is short and by
// Bluestein's convolution where it is long. (kissfft takes other primes too, in memory that it
// allocates, and with n^2 operations.)
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

struct kiss_fft_state;

namespace heddle::cpu {

using Complex = std::complex<float>;

class FftPlan {
 public:
  /// n >= 1; the exponent is negative, or if `inverse` positive.
  FftPlan(std::int64_t n, bool inverse);

  std::int64_t length() const { return n_; }
  /// Elements of memory that `run` needs.
  std::int64_t scratch() const;
  /// Of n elements, which are not each other's. Unscaled. From any number of threads.
  void run(const Complex* from, Complex* to, Complex* scratch) const;

  /// The longest line.
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 29;

 private:
  using Kiss = std::shared_ptr<kiss_fft_state>;
  static Kiss kiss(std::int64_t n, bool inverse);

  void short_lines(const Complex* rows, Complex* to) const;
  void long_lines(const Complex* rows, Complex* to, Complex* scratch) const;

  std::int64_t n_, smooth_, rest_;
  Kiss smooth_plan_;
  std::vector<Complex> turns_;  // w^(b k) at b smooth_ + k, w of order n
  std::vector<Complex> roots_;  // of order rest_, where that is short
  // Bluestein's, of long rests.
  std::int64_t padded_ = 0;
  Kiss padded_forward_, padded_inverse_;
  std::vector<Complex> chirp_, spectrum_;
};

/// e^(2 pi i numerator / denominator), exact to float.
Complex root_of_unity(std::int64_t numerator, std::int64_t denominator);

}  // namespace heddle::cpu
