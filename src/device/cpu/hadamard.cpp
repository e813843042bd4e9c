// Hadamard transforms of rows: Sylvester's butterflies over runs of 2^k elements, then a matrix of
// order 12, 20 or 28 across the runs.
#include <array>

#include "base/check.h"
#include "device/cpu/convert.h"
#include "device/cpu/lines.h"
#include "device/cpu/tasks.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kMostOrder = 28;
constexpr std::int64_t kColumns = 64;  // of the runs, at a time

/// Signs, as rows of a matrix of `order`.
using Signs = std::array<std::array<std::int8_t, kMostOrder>, kMostOrder>;

/// Paley's second construction, of the squares modulo 5: the symmetric conference matrix
/// [0, 1; 1, Q] with [+ +; + -] for 1, its opposite for -1, and [+ -; - -] for 0.
Signs paley_12() {
  constexpr int kPrime = 5, kLegendre[kPrime] = {0, 1, -1, -1, 1};
  Signs signs{};
  for (int i = 0; i <= kPrime; ++i) {
    for (int j = 0; j <= kPrime; ++j) {
      const bool border = i == 0 || j == 0;
      const int entry = i == j ? 0 : border ? 1 : kLegendre[(i - j + kPrime) % kPrime];
      const int block[2][2] = {{1, entry == 0 ? -1 : 1}, {entry == 0 ? -1 : 1, -1}};
      for (int r = 0; r < 2; ++r) {
        for (int c = 0; c < 2; ++c) {
          signs[2 * i + r][2 * j + c] =
              static_cast<std::int8_t>(entry == 0 ? block[r][c] : entry * block[r][c]);
        }
      }
    }
  }
  return signs;
}

/// Williamson's array of the circulants of four first rows.
Signs williamson(const std::array<std::string_view, 4>& rows) {
  // Which circulant, and its sign.
  constexpr int kArray[4][4] = {{1, 2, 3, 4}, {-2, 1, -4, 3}, {-3, 4, 1, -2}, {-4, -3, 2, 1}};
  const auto n = static_cast<int>(rows[0].size());
  Signs signs{};
  for (int i = 0; i < 4 * n; ++i) {
    for (int j = 0; j < 4 * n; ++j) {
      const int which = kArray[i / n][j / n];
      const std::string_view row = rows[static_cast<std::size_t>(std::abs(which) - 1)];
      const int sign = row[static_cast<std::size_t>((j - i % n + 4 * n) % n)] == '+' ? 1 : -1;
      signs[i][j] = static_cast<std::int8_t>(which > 0 ? sign : -sign);
    }
  }
  return signs;
}

/// As N. J. A. Sloane's library lists them: 12 pal2, 20 will and 28 will.
const Signs& signs_of(std::int64_t order) {
  static const Signs twelve = paley_12();
  static const Signs twenty = williamson({"+----", "+----", "++--+", "+-++-"});
  static const Signs twenty_eight = williamson({"+------", "++----+", "+-+--+-", "+--++--"});
  return order == 12 ? twelve : order == 20 ? twenty : twenty_eight;
}

template <class T>
struct Rows {
  std::int64_t n, order;
  T scale;
  const Signs* signs;

  void transform(T* x) const {
    const std::int64_t run = n / order;
    for (std::int64_t i = 0; i < order; ++i) butterflies(x + i * run, run);
    if (order > 1) {
      for (std::int64_t c = 0; c < run; c += kColumns) {
        across(x + c, run, std::min(kColumns, run - c));
      }
    }
    for (std::int64_t i = 0; i < n; ++i) x[i] *= scale;
  }

 private:
  static void butterflies(T* x, std::int64_t run) {
    for (std::int64_t half = 1; half < run; half *= 2) {
      for (std::int64_t i = 0; i < run; i += 2 * half) {
        for (std::int64_t k = i; k < i + half; ++k) {
          const T a = x[k], b = x[k + half];
          x[k] = a + b;
          x[k + half] = a - b;
        }
      }
    }
  }

  void across(T* x, std::int64_t run, std::int64_t columns) const {
    T sums[kMostOrder][kColumns];
    for (std::int64_t i = 0; i < order; ++i) {
      std::fill_n(sums[i], columns, T{});
      for (std::int64_t j = 0; j < order; ++j) {
        const T sign =
            static_cast<T>((*signs)[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
        for (std::int64_t c = 0; c < columns; ++c) sums[i][c] += sign * x[j * run + c];
      }
    }
    for (std::int64_t i = 0; i < order; ++i) std::copy_n(sums[i], columns, x + i * run);
  }
};

template <class T>
Prepared prepare_rows_of(const PrepareArgs& args, const Rows<T>& rows) {
  const TensorSpec& x = args.inputs[0].spec;
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = x.shape.size() > 1;
  traits.aliases.push_back({.output = 0, .input = 0});
  const std::int64_t count = elements(x.shape) / rows.n;
  const std::int64_t per_row = x.shape.size() > 1 && x.shape[0] > 0 ? count / x.shape[0] : 0;
  const bool half = is_half(x.dtype);
  const std::size_t row_bytes = static_cast<std::size_t>(rows.n) * item_size(x.dtype);
  const Tasks tasks(count, per_row, 16 * rows.n,
                    half ? static_cast<std::size_t>(rows.n) * sizeof(float) : 0,
                    traits.reads[0].end);
  traits.workspace_bytes = tasks.workspace_bytes();
  const WidenFunction widen = half ? widen_function(x.dtype) : nullptr;
  const NarrowFunction narrow = half ? narrow_function(x.dtype) : nullptr;
  return make_kernel(std::move(traits), [=](const Launch& launch) {
    tasks.run(launch, [&](std::int64_t row, std::byte* scratch) {
      const std::byte* from = launch.inputs[0].data + static_cast<std::size_t>(row) * row_bytes;
      std::byte* to = launch.outputs[0].data + static_cast<std::size_t>(row) * row_bytes;
      if constexpr (std::is_same_v<T, float>) {
        if (widen) {
          auto* floats = reinterpret_cast<float*>(scratch);
          widen(from, floats, rows.n);
          rows.transform(floats);
          return narrow(floats, to, rows.n);
        }
      }
      auto* x_row = reinterpret_cast<T*>(to);
      if (from != to) std::copy_n(reinterpret_cast<const T*>(from), rows.n, x_row);
      rows.transform(x_row);
    });
  });
}

}  // namespace

Prepared prepare_hadamard(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const TensorSpec& x = args.inputs[0].spec;
  const std::int64_t n = x.shape.back(), order = hadamard_order(n);
  const Signs* signs = order > 1 ? &signs_of(order) : nullptr;
  const float scale = std::get<Hadamard>(args.op).scale;
  if (x.dtype == DType::f64) return prepare_rows_of(args, Rows<double>{n, order, scale, signs});
  return prepare_rows_of(args, Rows<float>{n, order, scale, signs});
}

}  // namespace heddle::cpu
