// The loops of products.h, written once; products_<level>.cpp builds them for each level.
#pragma once

#include "device/cpu/product_tiles.h"

namespace heddle::cpu::HEDDLE_SIMD {

// ---- Around attention

template <class W>
void decode(const std::byte* from, std::int64_t count, float* to) {
  const auto* elements = reinterpret_cast<const typename W::Element*>(from);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store16(to + i, W::load(elements + i));
  if (i < count) store16(to + i, W::load_first(elements + i, count - i));
}

template <class W>
void decode_group(const std::byte* from, std::int64_t stride, std::int64_t rows, float* to) {
  // What processors fetch by themselves ends with a page, and rows are often in pages of their own.
  constexpr std::int64_t kRowsAhead = 8, kLine = 64;
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(typename W::Element)) * kGroupColumns;
  for (std::int64_t r = 0; r < rows; ++r, from += stride, to += kGroupColumns) {
    const auto* elements = reinterpret_cast<const typename W::Element*>(from);
    F32x16 row[kGroupPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kGroupPanels; ++p) row[p] = W::load(elements + p * kPanel);
#pragma GCC unroll 4
    for (int p = 0; p < kGroupPanels; ++p) store16(to + p * kPanel, row[p]);
#pragma GCC unroll 4
    for (std::int64_t at = 0; at < kBytes; at += kLine) {
      __builtin_prefetch(from + kRowsAhead * stride + at);
    }
  }
}

void to_panel(const float* rows, std::int64_t stride, std::int64_t columns, float* panel) {
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    F32x16 square[kLanes];
    for (int r = 0; r < kLanes; ++r) square[r] = load16(rows + r * stride + c);
    transpose16(square);
    for (int r = 0; r < kLanes; ++r) store16(panel + (c + r) * kPanel, square[r]);
  }
}

void softmax(SoftmaxRow& row) {
  constexpr float kNothing = -__builtin_inff();
  const std::int64_t first = row.begin / kLanes * kLanes;
  const std::int64_t last = smaller((row.end + kLanes - 1) / kLanes * kLanes, row.whole);
  for (std::int64_t i = first; i < row.begin; ++i) row.scores[i] = kNothing;
  for (std::int64_t i = row.end; i < last; ++i) row.scores[i] = kNothing;

  F32x16 largest = broadcast(row.maximum);
  for (std::int64_t i = first; i < last; i += kLanes) {
    largest = maximum(load16(row.scores + i), largest);  // passes over what is not a number
  }
  const float maximum_now = max_lanes(largest);
  // Where all is -inf so far, exp(-inf - 0) is the zero that exp(-inf - -inf) is not.
  const F32x16 reference = broadcast(maximum_now == kNothing ? 0.0f : maximum_now);
  row.rescale = first_lane(exponential(subtract(broadcast(row.maximum), reference)));
  row.maximum = maximum_now;

  F32x16 sum = zeros();
  for (std::int64_t i = 0; i < first; i += kLanes) store16(row.scores + i, zeros());
  for (std::int64_t i = first; i < last; i += kLanes) {
    const F32x16 weight = exponential(subtract(load16(row.scores + i), reference));
    store16(row.scores + i, weight);
    sum = add(sum, weight);
  }
  for (std::int64_t i = last; i < row.whole; i += kLanes) store16(row.scores + i, zeros());
  row.sum = row.sum * row.rescale + sum_lanes(sum);
}

void blend(float* to, float a, const float* from, float b, std::int64_t count) {
  const F32x16 scale_to = broadcast(a), scale_from = broadcast(b);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const F32x16 scaled = multiply(load16(from + i), scale_from);
    store16(to + i, multiply_add(load16(to + i), scale_to, scaled));
  }
}

bool all_finite(const float* from, std::int64_t count) {
  F32x16 sum = zeros();  // 0 * x is 0 for finite x and NaN for others
  for (std::int64_t i = 0; i < count; i += kLanes) {
    sum = multiply_add(load16(from + i), zeros(), sum);
  }
  return sum_lanes(sum) == 0.0f;
}

constexpr Products kProducts = {
    {panels<StoredF32>, panels<StoredF16>, panels<StoredBf16>},
    {dots<StoredF32>, dots<StoredF16>, dots<StoredBf16>},
    sum_tile_job<StoredF32>,
    {decode<StoredF32>, decode<StoredF16>, decode<StoredBf16>},
    {decode_group<StoredF32>, decode_group<StoredF16>, decode_group<StoredBf16>},
    to_panel,
    softmax,
    blend,
    all_finite,
};

}  // namespace heddle::cpu::HEDDLE_SIMD
