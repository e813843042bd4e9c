#include "bounds.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "device/cpu/isa.h"
#include "measure.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace heddle::bench {

namespace {

volatile std::uint64_t sink;

constexpr std::int64_t kWordsOfLine = 8;
constexpr std::int64_t kLinesAtOnce = 1 << 12;

/// Sums of their own for each word of a line, so that no addition waits for another.
void read_lines(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  std::uint64_t sums[kWordsOfLine] = {};
  for (std::int64_t line = begin; line < end; ++line) {
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kWordsOfLine; ++i) sums[i] += words[line * kWordsOfLine + i];
  }
  sink = std::accumulate(sums, sums + kWordsOfLine, std::uint64_t{0});
}

// Enough sums side by side to hide what an instruction takes: 4 or 5 cycles, at two a cycle.
constexpr int kSums = 12;
constexpr std::int64_t kSteps = 200'000;  // some tenths of a millisecond

/// What each thread runs, on its own registers. Nothing may be known to the compiler of a sum after
/// a step, so that it leaves none out.
struct Loop {
  void (*run)();
  double operations;  // of all steps
};
constexpr Loop loop_of(void (*run)(), double operations_of_a_step) {
  return {run, operations_of_a_step * kSums * static_cast<double>(kSteps)};
}

#if defined(__x86_64__)

[[gnu::target("avx512f")]] void fused_avx512() {
  const __m512 factor = _mm512_set1_ps(0.5f);
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_set1_ps(0.5f);
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(sum, factor, factor);
      __asm__ volatile("" : "+v"(sum));
    }
  }
}

[[gnu::target("avx2,fma")]] void fused_avx2() {
  const __m256 factor = _mm256_set1_ps(0.5f);
  __m256 sums[kSums];
  for (__m256& sum : sums) sum = _mm256_set1_ps(0.5f);
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(sum, factor, factor);
      __asm__ volatile("" : "+v"(sum));
    }
  }
}

[[gnu::target("sse2")]] void plain_sse() {
  const __m128 factor = _mm_set1_ps(0.5f);
  __m128 sums[kSums];
  for (__m128& sum : sums) sum = _mm_set1_ps(0.5f);
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (__m128& sum : sums) {
      sum = _mm_add_ps(_mm_mul_ps(sum, factor), factor);
      __asm__ volatile("" : "+x"(sum));
    }
  }
}

[[gnu::target("avx512f,avx512bf16")]] void pairs_avx512() {
  __m512bh ones;
  std::memset(&ones, 0, sizeof ones);
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, ones, ones);
      __asm__ volatile("" : "+v"(sum));
    }
  }
}

[[gnu::target("avx512f,avx512vnni")]] void bytes_avx512() {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums[kSums];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, ones, ones);
      __asm__ volatile("" : "+v"(sum));
    }
  }
}

/// Without VNNI: pairs of bytes, pairs of those, and a sum.
[[gnu::target("avx2")]] void bytes_avx2() {
  const __m256i ones = _mm256_set1_epi8(1);
  __m256i sums[kSums];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) {
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(sum, ones), ones));
      __asm__ volatile("" : "+v"(sum));
    }
  }
}

/// What _tile_loadconfig takes: https://www.felixcloutier.com/x86/ldtilecfg
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

TileConfig whole_tiles() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = 64;
    config.rows[tile] = 16;
  }
  return config;
}

/// Four sums of 16 by 16, of operands that are zeros.
[[gnu::target("amx-tile,amx-bf16")]] void pair_tiles() {
  const TileConfig config = whole_tiles();
  _tile_loadconfig(&config);
  for (std::int64_t i = 0; i < kSteps / 16; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

[[gnu::target("amx-tile,amx-int8")]] void byte_tiles() {
  const TileConfig config = whole_tiles();
  _tile_loadconfig(&config);
  for (std::int64_t i = 0; i < kSteps / 16; ++i) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
}

std::optional<Loop> loop_for(Arithmetic arithmetic) {
  const cpu::Isa isa = cpu::isa();
  constexpr double kTileSteps = static_cast<double>(kSteps / 16) * 4 * 2 * 16 * 16;
  switch (arithmetic) {
    case Arithmetic::f32:
      if (isa >= cpu::Isa::avx512) return loop_of(fused_avx512, 2 * 16);
      return isa >= cpu::Isa::avx2 ? loop_of(fused_avx2, 2 * 8) : loop_of(plain_sse, 2 * 4);
    case Arithmetic::int8:
      if (isa >= cpu::Isa::avx512) return loop_of(bytes_avx512, 2 * 64);
      return isa >= cpu::Isa::avx2 ? std::optional(loop_of(bytes_avx2, 2 * 32)) : std::nullopt;
    case Arithmetic::bf16:
      if (isa < cpu::Isa::avx512 || !cpu::has_avx512_bf16()) return std::nullopt;
      return loop_of(pairs_avx512, 2 * 32);
    case Arithmetic::bf16_tile:
      if (isa < cpu::Isa::amx) return std::nullopt;
      return Loop{pair_tiles, kTileSteps * 32};
    case Arithmetic::int8_tile:
      break;
  }
  if (isa < cpu::Isa::amx) return std::nullopt;
  return Loop{byte_tiles, kTileSteps * 64};
}

#else

constexpr int kLanes = 4;

/// What the compiler makes of it: vectors of four, fused, on Arm.
void plain_sums() {
  float sums[kSums * kLanes];
  std::fill(std::begin(sums), std::end(sums), 0.5f);
  for (std::int64_t i = 0; i < kSteps; ++i) {
    for (float& sum : sums) sum = __builtin_fmaf(sum, 0.5f, 0.5f);
    __asm__ volatile("" : : "r"(sums) : "memory");
  }
}

std::optional<Loop> loop_for(Arithmetic arithmetic) {
  if (arithmetic != Arithmetic::f32) return std::nullopt;
  return loop_of(plain_sums, 2 * kLanes);
}

#endif

}  // namespace

namespace {

using Offsets = std::span<const std::int64_t>;

/// Rows [begin, end), of a size known to the compiler. The next ones are fetched meanwhile.
template <std::size_t kBytes>
void copy_rows(std::byte* table, Offsets offsets, std::byte* packed, bool back, std::int64_t begin,
               std::int64_t end) {
  constexpr std::int64_t kAhead = std::clamp<std::int64_t>(4096 / kBytes, 1, 16);
  for (std::int64_t i = begin; i < end; ++i) {
    std::byte* row = table + offsets[static_cast<std::size_t>(i)];
    if (i + kAhead < end) {
      const std::byte* next = table + offsets[static_cast<std::size_t>(i + kAhead)];
      for (std::size_t at = 0; at < std::min<std::size_t>(kBytes, 256); at += 64) {
        __builtin_prefetch(next + at);
      }
    }
    std::byte* other = packed + i * static_cast<std::int64_t>(kBytes);
    std::memcpy(back ? row : other, back ? other : row, kBytes);
  }
}

}  // namespace

double row_seconds(Team& team, const std::byte* from, Offsets offsets, std::size_t bytes,
                   std::byte* to, bool back) {
  const auto copy = [&]() -> decltype(&copy_rows<64>) {
    switch (bytes) {
      case 4:
        return copy_rows<4>;
      case 64:
        return copy_rows<64>;
      case 256:
        return copy_rows<256>;
      case 1024:
        return copy_rows<1024>;
      case 4096:
        return copy_rows<4096>;
      default:
        throw std::runtime_error("rows of another size");
    }
  }();
  const auto count = static_cast<std::int64_t>(offsets.size());
  return seconds([&] {
    team.parallel_for(count, std::max<std::int64_t>(1, 65536 / static_cast<std::int64_t>(bytes)),
                      [&](std::int64_t begin, std::int64_t end) {
                        copy(const_cast<std::byte*>(from), offsets, to, back, begin, end);
                      });
  });
}

double sort_seconds(std::span<const float> values) {
  std::vector<float> copy(values.begin(), values.end());
  const double taken = seconds([&] { std::sort(copy.begin(), copy.end()); });
  sink = static_cast<std::uint64_t>(copy.front());
  return taken;
}

double read_seconds(Team& team, std::span<const std::byte> bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data());
  const auto lines = static_cast<std::int64_t>(bytes.size()) / (8 * kWordsOfLine);
  return seconds([&] {
    team.parallel_for(lines, kLinesAtOnce,
                      [&](std::int64_t begin, std::int64_t end) { read_lines(words, begin, end); });
  });
}

double copy_seconds(Team& team, std::span<const std::byte> from, std::byte* to) {
  const auto count = static_cast<std::int64_t>(from.size());
  const std::int64_t part = count / team.size() + 64;  // each thread its own, at once
  return seconds([&] {
    team.parallel_for(count, part, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
    });
  });
}

std::optional<double> arithmetic_rate(Team& team, Arithmetic arithmetic) {
  const std::optional<Loop> loop = loop_for(arithmetic);
  if (!loop) return std::nullopt;
  const int chunks = 8 * team.size();
  const double taken = seconds(
      [&] { team.parallel_for(chunks, 1, [&](std::int64_t, std::int64_t) { loop->run(); }); });
  return loop->operations * chunks / taken;
}

const char* name_of(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::f32:
      return "f32";
    case Arithmetic::bf16:
      return "bf16";
    case Arithmetic::int8:
      return "int8";
    case Arithmetic::bf16_tile:
      return "bf16 tiles";
    case Arithmetic::int8_tile:
      break;
  }
  return "int8 tiles";
}

}  // namespace heddle::bench
