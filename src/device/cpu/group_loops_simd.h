// The loops of group_loops.h, written once; group_loops_<level>.cpp builds them for each level.
#pragma once

#include "device/cpu/group_loops.h"
#include "device/cpu/simd.h"

#if defined(__AVX512F__)
#include "device/cpu/group_words_avx512.h"
#elif defined(__AVX2__)
#include "device/cpu/group_words_avx2.h"
#else
#include "device/cpu/group_words_portable.h"
#endif

namespace heddle::cpu::HEDDLE_SIMD {

// ---- What codes mean: of a whole code, and of code V of each lane's word

template <int kBits>
struct Integers {
  static F32x16 value(U32x16 code) { return to_floats(code); }
};

/// Codes that a table of sixteen serves: of four bits, and of two, whose table repeats itself.
template <class Values>
struct TableCodes {
  Table16 table = load_table(Values::kValues);
  template <int V>
  F32x16 in_word(U32x16 words) const {
    return look_up<V * Values::kBits>(table, words);
  }
};

struct Bits2 : TableCodes<Bits2>, Integers<2> {
  static constexpr GroupCode kCode = GroupCode::bits2;
  static constexpr int kBits = 2;
  static constexpr float kValues[16] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
};
struct Bits3 : Integers<3> {
  static constexpr GroupCode kCode = GroupCode::bits3;
  static constexpr int kBits = 3;
};
struct Bits4 : TableCodes<Bits4>, Integers<4> {
  static constexpr GroupCode kCode = GroupCode::bits4;
  static constexpr int kBits = 4;
  static constexpr float kValues[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};
struct Bits5 : Integers<5> {
  static constexpr GroupCode kCode = GroupCode::bits5;
  static constexpr int kBits = 5;
};
struct Bits6 : Integers<6> {
  static constexpr GroupCode kCode = GroupCode::bits6;
  static constexpr int kBits = 6;
};
struct Bits8 : Integers<8> {
  static constexpr GroupCode kCode = GroupCode::bits8;
  static constexpr int kBits = 8;
  template <int V>
  F32x16 in_word(U32x16 words) const {
    return to_floats(bit_and(shift_right<8 * V>(words), 0xffu));
  }
};
struct E2m1 : TableCodes<E2m1> {
  static constexpr GroupCode kCode = GroupCode::e2m1;
  static constexpr int kBits = 4;
  static constexpr float kValues[16] = {0,     0.5f,  1,     1.5f,  2,     3,     4,     6,
                                        -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  F32x16 value(U32x16 code) const { return in_word<0>(code); }
};
struct E4m3 {
  static constexpr GroupCode kCode = GroupCode::e4m3;
  static constexpr int kBits = 8;
  static F32x16 value(U32x16 code) {
    const U32x16 sign = shift_left<24>(bit_and(code, 0x80u));
    const U32x16 rest = shift_left<20>(bit_and(code, 0x7fu));
    return multiply(as_floats(bit_or(sign, rest)), broadcast(kE4m3Scale));
  }
  template <int V>
  F32x16 in_word(U32x16 words) const {
    return value(shift_right<8 * V>(words));  // the higher bits are masked there
  }
};

// ---- Scales

/// Sixteen scales or biases, of which `count` are there; the others are 0.
inline F32x16 load_scales(GroupScale stored, const std::byte* from, std::int64_t first,
                          std::int64_t count) {
  const auto half = [&](auto load, auto load_first) {
    const auto* at = reinterpret_cast<const std::uint16_t*>(from) + first;
    return count == kLanes ? load(at) : load_first(at, count);
  };
  switch (stored) {
    case GroupScale::f32: {
      const float* at = reinterpret_cast<const float*>(from) + first;
      return count == kLanes ? load16(at) : load_first(at, count);
    }
    case GroupScale::f16:
      return half(StoredF16::load, StoredF16::load_first);
    case GroupScale::bf16:
      return half(StoredBf16::load, StoredBf16::load_first);
    case GroupScale::e8m0:
    case GroupScale::e4m3:
      break;
  }
  std::uint8_t bytes[kLanes] = {};
  std::memcpy(bytes, reinterpret_cast<const std::uint8_t*>(from) + first,
              static_cast<std::size_t>(count));
  const U32x16 codes = widen_bytes(bytes);
  if (stored == GroupScale::e4m3) return E4m3::value(codes);
  constexpr std::uint32_t kLeast = 0x00400000u;  // 2^-127, which code 0 stands for
  return as_floats(at_least(shift_left<23>(codes), kLeast));
}

/// The scales and biases of a block of a row: of kGroupBlock elements in groups of 16 or more.
struct BlockScales {
  static constexpr std::int64_t kMost = kGroupBlock / 16;
  alignas(64) float scales[kMost + kLanes];
  alignas(64) float biases[kMost + kLanes];

  void load(const GroupRows& w, std::int64_t row, std::int64_t first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kLanes) {
      const std::int64_t n = smaller(count - i, kLanes), at = row * w.groups + first + i;
      store16(scales + i, load_scales(w.scale, w.scales, at, n));
      if (w.biases) store16(biases + i, load_scales(w.scale, w.biases, at, n));
    }
  }
};

// ---- Dots

// Of a row's stream and, behind it, the next rows'.
inline constexpr std::int64_t kWordsAhead = 512;

/// Calls f.template operator()<V>() for V of 0 ... kCount - 1.
template <int V, int kCount, class F>
[[gnu::always_inline]] inline void unrolled(const F& f) {
  if constexpr (V < kCount) {
    f.template operator()<V>();
    unrolled<V + 1, kCount>(f);
  }
}

/// A block of a row of w.
struct DotBlock {
  const std::uint32_t* words;  // its first
  std::int64_t word_count;
  std::int64_t elements, groups;
  int group_shift;     // a group is of 2^group_shift elements
  std::int64_t first;  // element of the row
  std::int64_t first_group;
  std::int64_t sums;  // where an arranged row's sums begin
  const BlockScales* scales;
  bool has_biases;
};

/// Adds the block's terms for R rows of x to their sums, in lanes.
template <class Code, int R>
[[gnu::always_inline]] inline void add_block(const Code& code, const DotBlock& b,
                                             const float* const* x, F32x16 (&sums)[R]) {
  constexpr GroupStep kStep = group_step(Code::kCode);
  constexpr int kVectors = static_cast<int>(kStep.vectors);
  constexpr std::int64_t kElements = kStep.vectors * kLanes;
  const auto per_step = static_cast<int>(larger(1, kElements >> b.group_shift));
  const Spread spread = make_spread(per_step);
  for (std::int64_t at = 0, word = 0; at < b.elements; at += kElements, word += kStep.words) {
    U32x16 words;
    __builtin_prefetch(b.words + word + kWordsAhead);
    if constexpr (kStep.word_in_lane) {
      const std::int64_t left = b.word_count - word;
      words =
          left >= kStep.words ? load_words(b.words + word) : load_first_words(b.words + word, left);
    }
    F32x16 part[R];
    const auto add_vector = [&]<int V>() __attribute__((always_inline)) {
      F32x16 values;
      if constexpr (kStep.word_in_lane) {
        values = code.template in_word<V>(words);
      } else {
        values = code.value(unpack_codes<Code::kBits>(b.words + word, kStep.words, V));
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const F32x16 with = load16(x[r] + b.first + at + V * kLanes);
        part[r] = V == 0 ? multiply(values, with) : multiply_add(values, with, part[r]);
      }
    };
    unrolled<0, kVectors>(add_vector);
    const F32x16 scale = spread_from(b.scales->scales + (at >> b.group_shift), spread);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r] = multiply_add(part[r], scale, sums[r]);
  }
  if (!b.has_biases) return;
  for (std::int64_t g = 0; g < b.groups; g += kLanes) {
    const std::int64_t n = smaller(b.groups - g, kLanes);
    const F32x16 biases = load16(b.scales->biases + g);
    for (int r = 0; r < R; ++r) {
      const float* of_groups = x[r] + b.sums + b.first_group + g;
      const F32x16 with = n == kLanes ? load16(of_groups) : load_first(of_groups, n);
      sums[r] = multiply_add(biases, with, sums[r]);
    }
  }
}

template <class Code>
DotBlock block_of(const GroupDots& job, std::int64_t column, std::int64_t first,
                  BlockScales& scales) {
  constexpr std::int64_t kStep = kLanes * group_step(Code::kCode).vectors;
  const GroupRows& w = job.w;
  const std::int64_t elements = smaller(kGroupBlock, job.depth - first);
  const int shift = __builtin_ctzll(static_cast<unsigned long long>(w.group_size));
  const DotBlock block{.words = w.codes + column * w.row_words + first / kWordCodes * Code::kBits,
                       .word_count = elements * Code::kBits / 32,
                       .elements = elements,
                       .groups = elements >> shift,
                       .group_shift = shift,
                       .first = first,
                       .first_group = first >> shift,
                       .sums = (job.depth + kStep - 1) / kStep * kStep,
                       .scales = &scales,
                       .has_biases = w.biases != nullptr};
  scales.load(w, column, block.first_group, block.groups);
  return block;
}

/// Calls f.template operator()<R>(row) for tiles of R rows that make up [begin, end).
template <class F>
inline void for_tiles(std::int64_t begin, std::int64_t end, const F& f) {
  std::int64_t row = begin;
  if constexpr (kGroupRowsAtOnce >= 4) {
    for (; row + 4 <= end; row += 4) f.template operator()<4>(row);
  }
  for (; row + 2 <= end; row += 2) f.template operator()<2>(row);
  for (; row < end; ++row) f.template operator()<1>(row);
}

/// More rows than this are quicker where their blocks stay in the first level of caches.
inline constexpr std::int64_t kFewGroupRows = 2;

/// Few rows take w in the order of memory.
template <class Code>
void dots_of_few(const GroupDots& job) {
  const Code code;
  BlockScales scales;
  for (std::int64_t c = 0; c < job.columns; ++c) {
    for_tiles(0, job.rows, [&]<int R>(std::int64_t row) {
      F32x16 sums[R];
      for (int r = 0; r < R; ++r) sums[r] = zeros();
      for (std::int64_t k = 0; k < job.depth; k += kGroupBlock) {
        add_block<Code, R>(code, block_of<Code>(job, c, k, scales), job.x + row, sums);
      }
      for (int r = 0; r < R; ++r) job.out[(row + r) * job.out_stride + c] = sum_lanes(sums[r]);
    });
  }
}

inline constexpr std::int64_t kColumnsTogether = 16;

/// Many rows share each block of some columns, and columns share those rows' block; sums wait in
/// memory for the next block.
template <class Code>
void dots_of_many(const GroupDots& job, std::int64_t first, std::int64_t columns) {
  const Code code;
  BlockScales scales;
  alignas(64) float sums[kGroupRowsMost * kColumnsTogether][kLanes];
  for (std::int64_t k = 0; k < job.depth; k += kGroupBlock) {
    for (std::int64_t begin = 0; begin < job.rows; begin += kGroupRowsAtOnce) {
      const std::int64_t end = smaller(begin + kGroupRowsAtOnce, job.rows);
      for (std::int64_t c = 0; c < columns; ++c) {
        const DotBlock block = block_of<Code>(job, first + c, k, scales);
        for_tiles(begin, end, [&]<int R>(std::int64_t row) {
          float(*at)[kLanes] = sums + row * kColumnsTogether + c;
          F32x16 lanes[R];
          for (int r = 0; r < R; ++r) {
            lanes[r] = k == 0 ? zeros() : load16(at[r * kColumnsTogether]);
          }
          add_block<Code, R>(code, block, job.x + row, lanes);
          for (int r = 0; r < R; ++r) store16(at[r * kColumnsTogether], lanes[r]);
        });
      }
    }
  }
  for (std::int64_t r = 0; r < job.rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      job.out[r * job.out_stride + first + c] =
          job.depth == 0 ? 0.0f : sum_lanes(load16(sums[r * kColumnsTogether + c]));
    }
  }
}

template <class Code>
void dots(const GroupDots& job) {
  if (job.rows <= kFewGroupRows) return dots_of_few<Code>(job);
  for (std::int64_t c = 0; c < job.columns; c += kColumnsTogether) {
    dots_of_many<Code>(job, c, smaller(kColumnsTogether, job.columns - c));
  }
}

// ---- Values

template <class Code>
void decode(const GroupRows& w, std::int64_t row, std::int64_t first, std::int64_t count,
            float* out) {
  const Code code;
  const std::uint32_t* words = w.codes + row * w.row_words + first / kWordCodes * Code::kBits;
  for (std::int64_t i = 0; i < count; i += kWordCodes, words += Code::kBits) {
    const std::int64_t left = smaller(count - i, kWordCodes) * Code::kBits / 32;
    for (int half = 0; half < 2; ++half) {  // of 16, which lie in one group
      const std::int64_t at = i + kLanes * half;
      if (at >= count) break;
      const std::int64_t group = row * w.groups + (first + at) / w.group_size;
      const F32x16 scale = broadcast(first_lane(load_scales(w.scale, w.scales, group, 1)));
      const F32x16 values = code.value(unpack_codes<Code::kBits>(words, left, half));
      // Codes are short, and so the product is exact or rounded as it would be in between.
      const F32x16 product = multiply(values, scale);
      store16(out + at,
              w.biases
                  ? add(product, broadcast(first_lane(load_scales(w.scale, w.biases, group, 1))))
                  : product);
    }
  }
}

const GroupLoops kGroupLoops = {
    {dots<Bits2>, dots<Bits3>, dots<Bits4>, dots<Bits5>, dots<Bits6>, dots<Bits8>, dots<E2m1>,
     dots<E4m3>},
    {decode<Bits2>, decode<Bits3>, decode<Bits4>, decode<Bits5>, decode<Bits6>, decode<Bits8>,
     decode<E2m1>, decode<E4m3>},
};

}  // namespace heddle::cpu::HEDDLE_SIMD
