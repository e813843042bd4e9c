// Systems of linear equations, by LAPACK: the transposed of what it sees of a.
#include "base/check.h"
#include "device/cpu/lapack.h"
#include "device/cpu/lines.h"
#include "device/cpu/matrices.h"

namespace heddle::cpu {

namespace {

template <class T>
struct Equations {
  std::int64_t n, k;  // k right sides
  bool triangular, upper;

  struct Room {
    T *a, *b;
    int* pivots;
  };
  Room carve(Carver& carver) const {
    return {carver.take<T>(triangular ? 0 : n * n), carver.take<T>(k == 1 ? 0 : n * k),
            carver.take<int>(triangular ? 0 : n)};
  }
  int operator()(const MatrixOperands& matrix, const Room& room) const {
    if (n * k == 0) return 0;
    T* b = k == 1 ? matrix.output<T>(0) : room.b;
    transpose_matrix(matrix.input<T>(1), n, k, b);
    if (const int info = solve(matrix.input<T>(0), room, b)) return info;
    if (k > 1) transpose_matrix(b, k, n, matrix.output<T>(0));
    return 0;
  }
  int solve(const T* a, const Room& room, T* b) const {
    const int size = static_cast<int>(n), sides = static_cast<int>(k);
    if (triangular) return lapack::trtrs_transposed(upper ? 'L' : 'U', size, sides, a, b);
    std::copy_n(a, n * n, room.a);
    if (const int info = lapack::getrf(size, size, room.a, room.pivots)) return info;
    return lapack::getrs_transposed(size, sides, room.a, room.pivots, b);
  }
  std::string failure(int info) const {
    if (!triangular) return "of a is singular: the equations have no or many solutions";
    return fmt::format("of a is singular: element {} of its diagonal is 0", info - 1);
  }
};

}  // namespace

Prepared prepare_solve(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const auto& op = std::get<Solve>(args.op);
  const Shape& shape = args.inputs[1].spec.shape;
  const std::int64_t n = shape[shape.size() - 2], k = shape.back();
  if (std::max(n, k) > kMostRows) return refuse(too_large("solve", n, k));
  const std::int64_t work = cubic_work(n, n) + std::min<std::int64_t>(n * k, INT_MAX) * 64;
  if (args.inputs[0].spec.dtype == DType::f64) {
    return make_matrix_kernel(args, "solve", Equations<double>{n, k, op.triangular, op.upper},
                              work);
  }
  return make_matrix_kernel(args, "solve", Equations<float>{n, k, op.triangular, op.upper}, work);
}

}  // namespace heddle::cpu
