// Of products, linear algebra, Fourier transforms and einsum.
#include "heddle/einsum.h"
#include "heddle/fft.h"
#include "heddle/linalg.h"
#include "heddle/ops.h"
#include "mlx_functions.h"

namespace heddle::test {

// clang-format off
#define HEDDLE_NAMES(X) \
  X(addmm) X(bartlett) X(blackman) X(hadamard_transform) X(hamming) X(hanning) X(inner) X(kron) \
  X(outer) X(tensordot) X(vecdot)
#define HEDDLE_LINALG_NAMES(X) \
  X(linalg::cholesky) X(linalg::cholesky_inv) X(linalg::cross) X(linalg::det) X(linalg::eig) \
  X(linalg::eigh) X(linalg::eigvals) X(linalg::eigvalsh) X(linalg::inv) X(linalg::lu) \
  X(linalg::lu_factor) X(linalg::norm) X(linalg::pinv) X(linalg::qr) X(linalg::slogdet) \
  X(linalg::solve) X(linalg::solve_triangular) X(linalg::svd) X(linalg::tri_inv)
#define HEDDLE_FFT_NAMES(X) \
  X(fft::fft) X(fft::fft2) X(fft::fftfreq) X(fft::fftn) X(fft::fftshift) X(fft::ifft) \
  X(fft::ifft2) X(fft::ifftn) X(fft::ifftshift) X(fft::irfft) X(fft::irfft2) X(fft::irfftn) \
  X(fft::rfft) X(fft::rfft2) X(fft::rfftfreq) X(fft::rfftn)
#define HEDDLE_EINSUM_NAMES(X) X(einsum) X(einsum_path)
// clang-format on
HEDDLE_HAS("ops.h", HEDDLE_NAMES)
namespace linalg_names {
HEDDLE_HAS("linalg.h", HEDDLE_LINALG_NAMES)
}  // namespace linalg_names
namespace fft_names {
HEDDLE_HAS("fft.h", HEDDLE_FFT_NAMES)
}  // namespace fft_names
namespace einsum_names {
HEDDLE_HAS("einsum.h", HEDDLE_EINSUM_NAMES)
}  // namespace einsum_names

}  // namespace heddle::test
