#define HEDDLE_SIMD avx512_bf16
#include "device/cpu/pair_products.h"

#include "device/cpu/bf16_pairs.h"

namespace heddle::cpu::HEDDLE_SIMD {

namespace {

const std::uint16_t* bf16_at(const std::byte* from) {
  return reinterpret_cast<const std::uint16_t*>(from);
}

/// The columns of two terms, pair by pair: those of the first 16 columns, and of the next.
struct TwoTerms {
  __m512i low, high;

  TwoTerms(__m512i first, __m512i second) {
    const __m512i turned = _mm512_unpacklo_epi16(first, second);
    const __m512i others = _mm512_unpackhi_epi16(first, second);
    const __m512i front = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
    const __m512i back = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    low = _mm512_permutex2var_epi64(turned, front, others);
    high = _mm512_permutex2var_epi64(turned, back, others);
  }
};

template <bool kWhole>
void pack_pair(const std::byte* first, const std::byte* second, std::int64_t columns, float* to) {
  for (std::int64_t c = 0; c < columns; c += kBf16OfLine) {
    const std::int64_t n = smaller(columns - c, kBf16OfLine);
    const auto load = [&](const std::byte* from) {
      return kWhole ? _mm512_loadu_si512(bf16_at(from) + c) : load32_halves(bf16_at(from) + c, n);
    };
    const TwoTerms pairs(load(first), second ? load(second) : _mm512_setzero_si512());
    _mm512_storeu_si512(to + c, pairs.low);
    _mm512_storeu_si512(to + c + kPanel, pairs.high);
  }
}

void pack_terms(const std::byte* from, std::int64_t stride, std::int64_t depth,
                std::int64_t columns, float* to) {
  // What processors fetch by themselves ends with a page, and rows are often in pages of their own.
  constexpr std::int64_t kRowsAhead = 16, kLine = 64;
  const auto pack = columns == kGroupColumns ? pack_pair<true> : pack_pair<false>;
  for (std::int64_t k = 0; k < depth; k += 2, from += 2 * stride, to += kGroupColumns) {
    pack(from, k + 1 < depth ? from + stride : nullptr, columns, to);
    for (const std::byte* row : {from, from + stride}) {
      __builtin_prefetch(row + kRowsAhead * stride);
      __builtin_prefetch(row + kRowsAhead * stride + kLine);
    }
  }
}

void pack_columns(const std::byte* from, std::int64_t stride, std::int64_t depth,
                  std::int64_t columns, float* to) {
  for (std::int64_t c = 0; c < columns; c += kPanel) {
    for (std::int64_t k = 0; k < depth; k += kBf16OfLine) {
      const std::int64_t terms = smaller(depth - k, kBf16OfLine);
      F32x16 square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const auto* column = bf16_at(from + (c + i) * stride) + k;
        const __m512i pairs =
            c + i < columns ? load32_halves(column, terms) : _mm512_setzero_si512();
        square[i].v = _mm512_castsi512_ps(pairs);
      }
      transpose16(square);
      for (int i = 0; 2 * i < terms; ++i) store16(to + (k / 2 + i) * kGroupColumns + c, square[i]);
    }
  }
}

}  // namespace

const PairProducts kPairProducts = {pack_terms, pack_columns, sum_tile_job<ReadyPairs>};

}  // namespace heddle::cpu::HEDDLE_SIMD
