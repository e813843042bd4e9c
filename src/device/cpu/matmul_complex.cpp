// Products of complex64 matrices, of any strides.
#include <algorithm>
#include <complex>

#include "device/cpu/matmul.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kRows = 4, kColumns = 64, kTerms = 256;
constexpr std::int64_t kChunkWork = std::int64_t{1} << 17;

struct Part {
  std::int64_t batch, row, rows, column, columns;
};

struct Panel {
  alignas(64) float real[kTerms][kColumns], imaginary[kTerms][kColumns];
};

/// Terms [k, k + depth) of b's columns.
void pack(const MatmulShape& s, const std::complex<float>* b, std::int64_t k, std::int64_t depth,
          const Part& part, Panel& panel) {
  for (std::int64_t t = 0; t < depth; ++t) {
    const std::complex<float>* row = b + (k + t) * s.b_depth + part.column * s.b_column;
    for (std::int64_t c = 0; c < part.columns; ++c) {
      panel.real[t][c] = row[c * s.b_column].real();
      panel.imaginary[t][c] = row[c * s.b_column].imag();
    }
  }
}

void multiply_row(const MatmulShape& s, const std::complex<float>* a, std::int64_t depth,
                  const Panel& panel, std::int64_t columns, float* real, float* imaginary) {
  for (std::int64_t t = 0; t < depth; ++t) {
    const float x = a[t * s.a_depth].real(), y = a[t * s.a_depth].imag();
    for (std::int64_t c = 0; c < columns; ++c) {
      real[c] += x * panel.real[t][c] - y * panel.imaginary[t][c];
      imaginary[c] += x * panel.imaginary[t][c] + y * panel.real[t][c];
    }
  }
}

void multiply_part(const MatmulShape& s, const Launch& launch, const Part& part) {
  using Complex = std::complex<float>;
  const Complex* a = launch.inputs[0].as<Complex>() + s.a_offset(part.batch) + part.row * s.a_row;
  const Complex* b = launch.inputs[1].as<Complex>() + s.b_offset(part.batch);
  Complex* out =
      launch.outputs[0].as<Complex>() + (part.batch * s.rows + part.row) * s.columns + part.column;
  Panel panel;
  float real[kRows][kColumns] = {}, imaginary[kRows][kColumns] = {};
  for (std::int64_t k = 0; k < s.depth; k += kTerms) {
    const std::int64_t depth = std::min(kTerms, s.depth - k);
    pack(s, b, k, depth, part, panel);
    for (std::int64_t r = 0; r < part.rows; ++r) {
      multiply_row(s, a + r * s.a_row + k * s.a_depth, depth, panel, part.columns, real[r],
                   imaginary[r]);
    }
  }
  for (std::int64_t r = 0; r < part.rows; ++r) {
    for (std::int64_t c = 0; c < part.columns; ++c) {
      out[r * s.columns + c] = {real[r][c], imaginary[r][c]};
    }
  }
}

}  // namespace

Prepared prepare_complex_matmul(const PrepareArgs& args, const MatmulShape& shape) {
  return make_kernel(
      whole_operand_traits(args.inputs, args.outputs), [shape](const Launch& launch) {
        const std::int64_t row_blocks = (shape.rows + kRows - 1) / kRows;
        const std::int64_t groups = (shape.columns + kColumns - 1) / kColumns;
        const std::int64_t work = kRows * kColumns * std::max<std::int64_t>(1, shape.depth);
        parallel(launch.team, shape.batch * row_blocks * groups,
                 std::max<std::int64_t>(1, kChunkWork / work),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t row = i % row_blocks * kRows;
                     const std::int64_t column = i / row_blocks % groups * kColumns;
                     multiply_part(shape, launch,
                                   {.batch = i / row_blocks / groups,
                                    .row = row,
                                    .rows = std::min(kRows, shape.rows - row),
                                    .column = column,
                                    .columns = std::min(kColumns, shape.columns - column)});
                   }
                 });
      });
}

}  // namespace heddle::cpu
