// Products with weights of all types, for tests of linear in its forms.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "device/cpu/kernel_run.h"
#include "tensor/blocks.h"

namespace heddle::cpu {

inline constexpr DType kBlockTypes[] = {DType::q4_0, DType::q4_1, DType::q5_0,   DType::q5_1,
                                        DType::q8_0, DType::q2_K, DType::q3_K,   DType::q4_K,
                                        DType::q5_K, DType::q6_K, DType::iq4_nl, DType::iq4_xs};

/// Where a type's f16 scales lie in a block.
inline std::vector<std::size_t> scale_offsets(DType dtype) {
  switch (dtype) {
    case DType::q4_1:
      return {offsetof(BlockQ4_1, d), offsetof(BlockQ4_1, m)};
    case DType::q5_1:
      return {offsetof(BlockQ5_1, d), offsetof(BlockQ5_1, m)};
    case DType::q2_K:
      return {offsetof(BlockQ2K, d), offsetof(BlockQ2K, dmin)};
    case DType::q3_K:
      return {offsetof(BlockQ3K, d)};
    case DType::q4_K:
      return {offsetof(BlockQ4K, d), offsetof(BlockQ4K, dmin)};
    case DType::q5_K:
      return {offsetof(BlockQ5K, d), offsetof(BlockQ5K, dmin)};
    case DType::q6_K:
      return {offsetof(BlockQ6K, d)};
    default:
      return {0};
  }
}

/// Blocks of random bits, so that all codes and sub-scales occur, with scales about `scale`.
inline HostTensor random_blocks(DType dtype, std::int64_t columns, std::int64_t depth,
                                std::uint32_t seed, float scale = 0.01f) {
  HostTensor t = make_tensor(dtype, {columns, depth});
  std::mt19937 generator(seed);
  for (std::byte& b : t.bytes) b = static_cast<std::byte>(generator());
  std::normal_distribution<float> normal;
  const auto block = static_cast<std::size_t>(info(dtype).block_bytes);
  for (std::size_t at = 0; at < t.bytes.size(); at += block) {
    for (const std::size_t offset : scale_offsets(dtype)) {
      const f16 value(scale * normal(generator));
      std::memcpy(t.bytes.data() + at + offset, &value, sizeof value);
    }
  }
  return t;
}

inline HostTensor packed(const HostTensor& weight) {
  return run_kernel(prepare_repack, Repack{}, {weight}, {2})[0];
}

inline HostTensor rows_of(const HostTensor& x, std::int64_t first, std::int64_t count) {
  const std::int64_t width = x.operand.spec.shape.back();
  HostTensor part = make_tensor(x.operand.spec.dtype, {count, width});
  const std::size_t row = row_bytes(x.operand.spec.dtype, width);
  std::copy_n(x.bytes.begin() + static_cast<std::ptrdiff_t>(row) * first, part.bytes.size(),
              part.bytes.begin());
  return part;
}

inline HostTensor linear(const HostTensor& x, const HostTensor& w, RunOptions options = {}) {
  return run_kernel(prepare_linear, Linear{}, {x, w}, options)[0];
}

/// Sums in float64 of the stored values, and of their magnitudes, for a bound on the error.
struct PlainReference {
  std::vector<double> sums, magnitudes;
};
inline PlainReference plain_reference(const HostTensor& x, const HostTensor& weight) {
  const auto depth = static_cast<std::size_t>(x.operand.spec.shape.back());
  const auto columns = static_cast<std::size_t>(weight.operand.spec.shape[0]);
  const auto rows = static_cast<std::size_t>(x.operand.spec.shape[0]);
  PlainReference result{std::vector<double>(rows * columns), std::vector<double>(rows * columns)};
  std::vector<double> w(columns * depth);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = element(weight, i);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t k = 0; k < depth; ++k) {
        const double term = element(x, r * depth + k) * w[c * depth + k];
        result.sums[r * columns + c] += term;
        result.magnitudes[r * columns + c] += std::abs(term);
      }
    }
  }
  return result;
}

/// The same values, each as the nearest bf16.
inline HostTensor as_bf16(const HostTensor& t) {
  HostTensor rounded = make_tensor(DType::bf16, t.operand.spec.shape);
  const std::size_t count = rounded.bytes.size() / sizeof(bf16);
  for (std::size_t i = 0; i < count; ++i) set_element(rounded, i, element(t, i));
  return rounded;
}

}  // namespace heddle::cpu
