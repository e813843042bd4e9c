// Fourier transforms against sums in float64, and what must hold of them.
#include <complex>
#include <numbers>
#include <random>

#include "array_test_support.h"
#include "heddle/fft.h"

namespace heddle::test {
namespace {

using Complex = std::complex<double>;
using fft::FFTNorm;

std::vector<Complex> numbers(const Array& a) {
  const Array complex = astype(a, DType::complex64);
  std::vector<Complex> result;
  for (const std::complex<float> x : complex.to_vector<std::complex<float>>()) {
    result.emplace_back(x);
  }
  return result;
}

Array random_complex(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::complex<float>> values(static_cast<std::size_t>(elements(shape)));
  const auto draw = [&] { return std::uniform_real_distribution<float>(-1, 1)(random); };
  for (auto& x : values) x = {draw(), draw()};
  return Array(values, shape);
}

Array random_real(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(elements(shape)));
  for (float& x : values) x = std::uniform_real_distribution<float>(-1, 1)(random);
  return Array(values, shape);
}

std::vector<Complex> naive(const std::vector<Complex>& x, bool inverse) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<Complex> y(x.size());
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t j = 0; j < n; ++j) {
      const double turns = static_cast<double>(j * k % n) / static_cast<double>(n);
      y[static_cast<std::size_t>(k)] +=
          x[static_cast<std::size_t>(j)] *
          std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * turns);
    }
    if (inverse) y[static_cast<std::size_t>(k)] /= static_cast<double>(n);
  }
  return y;
}

void expect_numbers(const std::vector<Complex>& got, const std::vector<Complex>& want,
                    double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_LE(std::abs(got[i] - want[i]), tolerance) << "element " << i;
  }
}

double energy(const std::vector<Complex>& x) {
  double sum = 0;
  for (const Complex value : x) sum += std::norm(value);
  return sum;
}

TEST(Fft, OfOneAxisIsTheSum) {
  for (const int n : {1, 2, 3, 7, 12, 37, 100}) {
    const Array x = random_complex({n}, static_cast<unsigned>(n));
    const double tolerance = 1e-5 * std::sqrt(n);
    expect_numbers(numbers(fft::fft(x)), naive(numbers(x), false), tolerance);
    expect_numbers(numbers(fft::ifft(x)), naive(numbers(x), true), tolerance);
    const Array real = random_real({n}, static_cast<unsigned>(n));
    std::vector<Complex> half = naive(numbers(real), false);
    half.resize(static_cast<std::size_t>(n / 2 + 1));
    expect_numbers(numbers(fft::rfft(real)), half, tolerance);
    expect_numbers(numbers(fft::irfft(fft::rfft(real), n, -1)), numbers(real), 1e-5);
  }
}

/// Too long for sums: back again, the energy, and the transforms of single waves.
TEST(Fft, LongOnesComeBack) {
  for (const int n : {100003, 1 << 17, 3 * 5 * 7 * 11 * 13 * 2, 65537, 2 * 50021}) {
    const Array x = random_complex({n}, 7);
    const Array y = fft::fft(x);
    expect_numbers(numbers(fft::ifft(y)), numbers(x), 2e-5);
    const double energies = energy(numbers(y)) / energy(numbers(x));
    EXPECT_NEAR(energies / n, 1, 1e-4);
    const Array real = random_real({n}, 8);
    expect_numbers(numbers(fft::irfft(fft::rfft(real), n, 0)), numbers(real), 2e-5);
    const int frequency = n / 3;
    std::vector<std::complex<float>> wave(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < n; ++j) {
      const double turns = static_cast<double>(j * frequency % n) / n;
      const Complex value = std::polar(1.0, 2 * std::numbers::pi * turns);
      wave[static_cast<std::size_t>(j)] = {static_cast<float>(value.real()),
                                           static_cast<float>(value.imag())};
    }
    const std::vector<Complex> spectrum = numbers(fft::fft(Array(wave, {n})));
    for (int k = 0; k < n; ++k) {
      const double want = k == frequency ? n : 0;
      EXPECT_NEAR(std::abs(spectrum[static_cast<std::size_t>(k)]), want, 1e-5 * n) << k;
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Fft, OverSeveralAxesIsOneAfterTheOther) {
  const Array x = random_complex({3, 4, 5}, 1);
  const auto same = [](const Array& a, const Array& b) {
    EXPECT_EQ(to_string(a.spec()), to_string(b.spec()));
    expect_numbers(numbers(a), numbers(b), 1e-5);
  };
  same(fft::fftn(x), fft::fft(fft::fft(fft::fft(x, 2), 1), 0));
  same(fft::fftn(x, Dims{0, 2}), fft::fft(fft::fft(x, 2), 0));
  same(fft::fft2(x), fft::fftn(x, Dims{1, 2}));
  same(fft::ifft2(fft::fft2(x)), x);
  same(fft::ifftn(fft::fftn(x)), x);
  const Array real = random_real({3, 4, 6}, 2);
  const Array half = fft::rfftn(real);
  EXPECT_EQ(half.shape(), (Shape{3, 4, 4}));
  same(half, slice(fft::fftn(real), {0, 0, 0}, {3, 4, 4}));
  same(fft::irfftn(half), real);
  same(fft::irfft2(fft::rfft2(real)), real);
  same(fft::rfftn(real, Dims{2, 0}), fft::fft(fft::rfft(real, 0), 2));
  same(fft::irfftn(fft::rfftn(real, Dims{1, 0}), {4, 3}, Dims{1, 0}), real);
  EXPECT_EQ(fft::irfft(half).shape(), (Shape{3, 4, 6}));
  EXPECT_EQ(fft::irfft(half, 7, -1).shape(), (Shape{3, 4, 7}));
}

TEST(Fft, LengthsCutOrPad) {
  const Array x = random_complex({2, 6}, 3);
  const Array longer = pad(x, {{0, 0}, {0, 3}});
  expect_numbers(numbers(fft::fft(x, 9, 1)), numbers(fft::fft(longer)), 1e-5);
  expect_numbers(numbers(fft::fft(x, 4, -1)), numbers(fft::fft(slice(x, {0, 0}, {2, 4}))), 1e-5);
  EXPECT_EQ(fft::fftn(x, {3, 8}, Dims{0, 1}).shape(), (Shape{3, 8}));
  EXPECT_EQ(fft::rfft2(x, {5, 7}, Dims{0, 1}).shape(), (Shape{5, 4}));
  EXPECT_EQ(fft::irfft2(x, {5, 7}, Dims{0, 1}).shape(), (Shape{5, 7}));
}

TEST(Fft, NormsShareOutTheDivisor) {
  const Array x = random_complex({4, 6}, 4);
  const double root = std::sqrt(24.0);
  const auto scaled = [](const Array& a, double factor) {
    std::vector<Complex> values = numbers(a);
    for (Complex& value : values) value *= factor;
    return values;
  };
  expect_numbers(numbers(fft::fftn(x, FFTNorm::ortho)), scaled(fft::fftn(x), 1 / root), 1e-5);
  expect_numbers(numbers(fft::fftn(x, FFTNorm::forward)), scaled(fft::fftn(x), 1 / 24.0), 1e-5);
  expect_numbers(numbers(fft::ifftn(x, FFTNorm::ortho)), scaled(fft::ifftn(x), root), 1e-5);
  expect_numbers(numbers(fft::ifftn(x, FFTNorm::forward)), scaled(fft::ifftn(x), 24), 1e-5);
  expect_numbers(numbers(fft::ifft(fft::fft(x, 0, FFTNorm::ortho), 0, FFTNorm::ortho)), numbers(x),
                 1e-5);
  const Array real = random_real({5}, 5);
  const Array round = fft::irfft(fft::rfft(real, -1, FFTNorm::forward), 5, 0, FFTNorm::forward);
  EXPECT_EQ(round.dtype(), DType::f32);
  expect_numbers(numbers(round), numbers(real), 1e-5);
}

TEST(Fft, TypesAndLayouts) {
  EXPECT_EQ(fft::fft(ones({4}, DType::i32)).dtype(), DType::complex64);
  EXPECT_EQ(fft::fft(ones({4}, DType::f16)).dtype(), DType::complex64);
  EXPECT_EQ(fft::rfft(ones({4}, DType::u8)).dtype(), DType::complex64);
  EXPECT_EQ(fft::irfft(ones({4})).dtype(), DType::f32);
  EXPECT_EQ(fft::irfft(ones({4}, DType::f64)).dtype(), DType::f32);
  const Array x = random_complex({6, 8}, 6);
  for (const Array& view : {transpose(x), slice(x, {0, 1}, {6, 8}, {2, 3}), flip(x)}) {
    for (const int axis : {0, 1}) {
      expect_numbers(numbers(fft::fft(view, axis)), numbers(fft::fft(contiguous(view), axis)), 0);
    }
  }
  EXPECT_EQ(fft::fft(zeros({0, 4})).shape(), (Shape{0, 4}));
  EXPECT_EQ(fft::rfft(zeros({0, 4}), 1).shape(), (Shape{0, 3}));
  EXPECT_EQ(fft::fftn(x, Dims{}).dtype(), DType::complex64);
}

TEST(Fft, NanStaysInItsLine) {
  const Array x = reshape(Array({1.0f, 2.0f, NAN, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f}), {2, 4});
  const std::vector<Complex> y = numbers(fft::fft(x));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(y[i].real()));
  for (std::size_t i = 4; i < 8; ++i) EXPECT_FALSE(std::isnan(y[i].real()));
}

TEST(Fft, Shifts) {
  const Array five = arange(5.0), six = arange(6.0);
  expect_near(fft::fftshift(five), {3, 4, 0, 1, 2});
  expect_near(fft::ifftshift(five), {2, 3, 4, 0, 1});
  expect_near(fft::fftshift(six), {3, 4, 5, 0, 1, 2});
  expect_near(fft::ifftshift(six), {3, 4, 5, 0, 1, 2});
  const Array x = reshape(six, {2, 3});
  expect_near(fft::fftshift(x), {5, 3, 4, 2, 0, 1});
  expect_near(fft::fftshift(x, Dims{1}), {2, 0, 1, 5, 3, 4});
  expect_near(fft::ifftshift(fft::fftshift(x)), doubles(x));
  expect_near(fft::fftshift(Array(3.0f)), {3});
  EXPECT_EQ(fft::fftshift(zeros({0, 1})).shape(), (Shape{0, 1}));
}

TEST(Fft, Frequencies) {
  expect_near(fft::fftfreq(4), {0, 0.25, -0.5, -0.25});
  expect_near(fft::fftfreq(5, 0.1), {0, 2, 4, -4, -2});
  expect_near(fft::fftfreq(1), {0});
  expect_near(fft::rfftfreq(4), {0, 0.25, 0.5});
  expect_near(fft::rfftfreq(5, 0.1), {0, 2, 4});
  EXPECT_EQ(fft::fftfreq(4).dtype(), DType::f32);
}

}  // namespace
}  // namespace heddle::test
