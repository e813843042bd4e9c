// Factors that are unique, equations and transforms, by their definitions.
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>

#include "support/reference.h"

namespace heddle::test {

namespace {

using Complex = std::complex<Number>;
using Matrix = std::vector<std::vector<Number>>;

Matrix make_matrix(std::size_t rows, std::size_t columns) {
  return Matrix(rows, std::vector<Number>(columns));
}

/// Matrix `index` of a tensor of them.
Matrix matrix_of(const Values& x, std::size_t index) {
  const auto rows = static_cast<std::size_t>(x.spec.shape[x.spec.shape.size() - 2]);
  const auto columns = static_cast<std::size_t>(x.spec.shape.back());
  Matrix m = make_matrix(rows, columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      m[i][j] = x.real[(index * rows + i) * columns + j];
    }
  }
  return m;
}

void put(const Matrix& m, std::size_t index, Values& to) {
  std::size_t next = m.empty() ? 0 : index * m.size() * m[0].size();
  for (const std::vector<Number>& row : m) {
    for (const Number x : row) to.real[next++] = x;
  }
}

Matrix transposed(const Matrix& m) {
  Matrix t = make_matrix(m.empty() ? 0 : m[0].size(), m.size());
  for (std::size_t i = 0; i < t.size(); ++i) {
    for (std::size_t j = 0; j < m.size(); ++j) t[i][j] = m[j][i];
  }
  return t;
}

/// The triangle, and zeros.
Matrix triangle(Matrix m, bool upper) {
  for (std::size_t i = 0; i < m.size(); ++i) {
    for (std::size_t j = 0; j < m.size(); ++j) {
      if (upper ? j < i : j > i) m[i][j] = 0;
    }
  }
  return m;
}

/// L of the lower triangle of a.
Matrix cholesky(const Matrix& a) {
  const std::size_t n = a.size();
  Matrix l = make_matrix(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      Number sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
      l[i][j] = i == j ? std::sqrt(sum) : sum / l[j][j];
    }
  }
  return l;
}

/// x with a x = b, by elimination.
Matrix solution(Matrix a, Matrix b) {
  const std::size_t n = a.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i) {
      if (std::fabs(a[i][k]) > std::fabs(a[pivot][k])) pivot = i;
    }
    std::swap(a[k], a[pivot]), std::swap(b[k], b[pivot]);
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const Number factor = a[i][k] / a[k][k];
      for (std::size_t j = 0; j < n; ++j) a[i][j] -= factor * a[k][j];
      for (std::size_t j = 0; j < b[i].size(); ++j) b[i][j] -= factor * b[k][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (Number& x : b[i]) x /= a[i][i];
  }
  return b;
}

Matrix inverse(const Matrix& a) {
  Matrix identity = make_matrix(a.size(), a.size());
  for (std::size_t i = 0; i < a.size(); ++i) identity[i][i] = 1;
  return solution(a, identity);
}

/// Householder's reflections, each to the side of the first element's other sign.
void qr(Matrix a, Matrix& q, Matrix& r) {
  const std::size_t m = a.size(), n = m == 0 ? 0 : a[0].size(), k = std::min(m, n);
  Matrix whole = make_matrix(m, m);
  for (std::size_t i = 0; i < m; ++i) whole[i][i] = 1;
  for (std::size_t c = 0; c < k; ++c) {
    Number below = 0;
    for (std::size_t i = c + 1; i < m; ++i) below += a[i][c] * a[i][c];
    if (below == 0) continue;
    std::vector<Number> v(m);
    for (std::size_t i = c; i < m; ++i) v[i] = a[i][c];
    v[c] += std::copysign(std::sqrt(below + a[c][c] * a[c][c]), a[c][c]);
    const Number square = below + v[c] * v[c];
    const auto reflect = [&](Matrix& x) {  // x - 2 v (v^T x) / v^T v
      for (std::size_t j = 0; j < x[0].size(); ++j) {
        Number dot = 0;
        for (std::size_t i = c; i < m; ++i) dot += v[i] * x[i][j];
        for (std::size_t i = c; i < m; ++i) x[i][j] -= 2 * dot / square * v[i];
      }
    };
    reflect(a), reflect(whole);
  }
  q = make_matrix(m, k), r = make_matrix(k, n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < k; ++j) q[i][j] = whole[j][i];
  }
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = i; j < n; ++j) r[i][j] = a[i][j];
  }
}

void lu(const Values& a, std::size_t index, std::vector<Values>& out) {
  Matrix x = matrix_of(a, index);
  const std::size_t m = x.size(), n = m == 0 ? 0 : x[0].size(), k = std::min(m, n);
  std::vector<std::size_t> from(m);
  std::iota(from.begin(), from.end(), std::size_t{0});
  for (std::size_t c = 0; c < k; ++c) {
    std::size_t pivot = c;
    for (std::size_t i = c; i < m; ++i) {
      if (std::fabs(x[i][c]) > std::fabs(x[pivot][c])) pivot = i;
    }
    std::swap(x[c], x[pivot]), std::swap(from[c], from[pivot]);
    out[1].real[index * k + c] = static_cast<Number>(pivot);
    for (std::size_t i = c + 1; i < m && x[c][c] != 0; ++i) {
      x[i][c] /= x[c][c];
      for (std::size_t j = c + 1; j < n; ++j) x[i][j] -= x[i][c] * x[c][j];
    }
  }
  put(x, index, out[0]);
  for (std::size_t i = 0; i < m; ++i) {
    out[2].real[index * m + from[i]] = static_cast<Number>(i);
  }
}

std::vector<Values> outputs_of(const Op& op, const std::vector<Values>& in) {
  std::vector<TensorSpec> specs;
  for (const Values& x : in) specs.push_back(x.spec);
  std::vector<Values> out;
  for (const TensorSpec& spec : infer(op, specs)) out.emplace_back(spec);
  return out;
}

std::size_t matrices(const Values& x) {
  std::size_t count = 1;
  for (std::size_t i = 0; i + 2 < x.spec.shape.size(); ++i) {
    count *= static_cast<std::size_t>(x.spec.shape[i]);
  }
  return count;
}

std::vector<Values> factor(const Factor& op, const std::vector<Values>& in) {
  std::vector<Values> out = outputs_of(op, in);
  for (std::size_t i = 0; i < matrices(in[0]); ++i) {
    const Matrix a = matrix_of(in[0], i);
    switch (op.kind) {
      case FactorKind::cholesky:
        put(op.upper ? transposed(cholesky(transposed(a))) : cholesky(a), i, out[0]);
        break;
      case FactorKind::inverse:
        put(inverse(a), i, out[0]);
        break;
      case FactorKind::triangular_inverse:
        put(inverse(triangle(a, op.upper)), i, out[0]);
        break;
      case FactorKind::qr: {
        Matrix q, r;
        qr(a, q, r);
        put(q, i, out[0]), put(r, i, out[1]);
        break;
      }
      case FactorKind::lu:
        lu(in[0], i, out);
        break;
      default:
        throw std::logic_error("reference: these factors are not unique");
    }
  }
  return out;
}

std::vector<Values> solve(const Solve& op, const std::vector<Values>& in) {
  std::vector<Values> out = outputs_of(op, in);
  for (std::size_t i = 0; i < matrices(in[0]); ++i) {
    const Matrix a = matrix_of(in[0], i);
    put(solution(op.triangular ? triangle(a, op.upper) : a, matrix_of(in[1], i)), i, out[0]);
  }
  return out;
}

Complex root(std::int64_t numerator, std::int64_t denominator) {
  const Number angle = 2 * std::numbers::pi_v<Number> *
                       static_cast<Number>(numerator % denominator) /
                       static_cast<Number>(denominator);
  return {std::cos(angle), std::sin(angle)};
}

std::vector<Values> fft(const Fft& op, const std::vector<Values>& in) {
  std::vector<Values> out = outputs_of(op, in);
  const bool backwards = op.kind == FftKind::inverse || op.kind == FftKind::real_inverse;
  const auto axis = static_cast<std::size_t>(op.axis);
  std::vector<Complex> roots;
  for (std::int64_t i = 0; i < op.n; ++i) roots.push_back(root(backwards ? i : -i, op.n));
  for_each_index(out[0].spec.shape, [&](const Dims& index) {
    Complex sum = 0;
    for (std::int64_t j = 0; j < op.n; ++j) {
      Dims from = index;
      const bool mirrored = op.kind == FftKind::real_inverse && j > op.n / 2;
      from[axis] = mirrored ? op.n - j : j;
      const std::size_t at = flat_index(in[0].spec.shape, from);
      Complex x(in[0].real[at], in[0].imaginary.empty() ? 0 : in[0].imaginary[at]);
      if (mirrored) x = std::conj(x);
      // What is its own conjugate has no imaginary part.
      if (op.kind == FftKind::real_inverse && (j == 0 || 2 * j == op.n)) x = x.real();
      const Complex w = roots[static_cast<std::size_t>(index[axis] * j % op.n)];
      sum += Complex(x.real() * w.real() - x.imag() * w.imag(),  // NaN as they come
                     x.real() * w.imag() + x.imag() * w.real());
    }
    if (backwards) sum /= static_cast<Number>(op.n);
    const std::size_t at = flat_index(out[0].spec.shape, index);
    out[0].real[at] = sum.real();
    if (!out[0].imaginary.empty()) out[0].imaginary[at] = sum.imag();
  });
  return out;
}

/// Rows of N. J. A. Sloane's had.12.pal2, had.20.will and had.28.will.
std::vector<std::string> hadamard_matrix(std::int64_t order) {
  if (order == 1) return {"+"};
  if (order == 12) {
    return {"+-++++++++++", "--+-+-+-+-+-", "+++-++----++", "+---+--+-++-",
            "+++++-++----", "+-+---+--+-+", "++--+++-++--", "+--++---+--+",
            "++----+++-++", "+--+-++---+-", "++++----+++-", "+-+--+-++---"};
  }
  if (order == 20) {
    return {"+----+----++--++-++-", "-+----+---+++---+-++", "--+----+---+++-+-+-+",
            "---+----+---+++++-+-", "----+----++--++-++-+", "-+++++-----+--+++--+",
            "+-+++-+---+-+--+++--", "++-++--+---+-+--+++-", "+++-+---+---+-+--+++",
            "++++-----++--+-+--++", "--++-+-++-+-----++++", "---++-+-++-+---+-+++",
            "+---++-+-+--+--++-++", "++---++-+----+-+++-+", "-++---++-+----+++++-",
            "-+--+--++-+----+----", "+-+-----++-+----+---", "-+-+-+---+--+----+--",
            "--+-+++------+----+-", "+--+--++------+----+"};
  }
  // Williamson's array of four circulants.
  const std::string rows[] = {"+------", "++----+", "+-+--+-", "+--++--"};
  const int array[4][4] = {{1, 2, 3, 4}, {-2, 1, -4, 3}, {-3, 4, 1, -2}, {-4, -3, 2, 1}};
  std::vector<std::string> all(28, std::string(28, '+'));
  for (std::size_t i = 0; i < 28; ++i) {
    for (std::size_t j = 0; j < 28; ++j) {
      const int which = array[i / 7][j / 7];
      const bool plus = rows[std::abs(which) - 1][(j % 7 + 7 - i % 7) % 7] == '+';
      all[i][j] = plus == (which > 0) ? '+' : '-';
    }
  }
  return all;
}

std::vector<Values> hadamard(const Hadamard& op, const Values& x) {
  Values out(x.spec);
  const std::int64_t n = x.spec.shape.back(), order = hadamard_order(n), run = n / order;
  const std::vector<std::string> signs = hadamard_matrix(order);
  for (std::size_t i = 0; i < out.real.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) % n;
    const std::size_t first = i - static_cast<std::size_t>(row);
    Number sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const bool block =
          signs[static_cast<std::size_t>(row / run)][static_cast<std::size_t>(j / run)] == '+';
      const bool sylvester =
          __builtin_parityll(static_cast<std::uint64_t>((row % run) & (j % run))) == 0;
      const Number value = x.real[first + static_cast<std::size_t>(j)];
      sum += block == sylvester ? value : -value;
    }
    out.real[i] = sum * static_cast<Number>(op.scale);
  }
  return {out};
}

}  // namespace

std::vector<Values> reference_linalg(const Op& op, const std::vector<Values>& in) {
  if (const auto* o = std::get_if<Factor>(&op)) return factor(*o, in);
  if (const auto* o = std::get_if<Solve>(&op)) return solve(*o, in);
  if (const auto* o = std::get_if<Fft>(&op)) return fft(*o, in);
  if (const auto* o = std::get_if<Hadamard>(&op)) return hadamard(*o, in[0]);
  return {};
}

}  // namespace heddle::test
