// Matrix tiles, as AMX has them: what kernels are written against.
//
// `Tiles` is a class of static functions: AmxTiles (tiles_amx.h), or a simulation in tests.
//
//   configure(config), release()
//   zero<T>(), load<T>(from, stride), store<T>(to, stride)     a row each `stride` bytes
//   dot_unsigned<C, A, B>()     sums of bytes: C += A (unsigned) * B (signed), four at a time
//   dot_signed<C, A, B>()       the same with both signed
//   dot_bf16<C, A, B>()         sums of floats: C += A * B of bf16, two at a time
//
// Row k of B holds, for each of its columns, the four bytes (or two bf16) that meet the kth four
// bytes of a row of A: Intel SDM volume 2, TDPBUSD and TDPBF16PS.
#pragma once

#include <cstdint>

#include "device/cpu/simd.h"

namespace heddle::cpu::HEDDLE_SIMD {

inline constexpr int kTiles = 8;
inline constexpr std::int64_t kTileRowsMost = 16, kTileRowBytes = 64;

/// What LDTILECFG reads.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, std::int64_t tile_rows, std::int64_t bytes) {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};

/// Tiles are configured for one kernel's run and gone after it: a library that is called meanwhile
/// may configure its own, and a thread that holds none costs less to switch.
template <class Tiles>
class TileSession {
 public:
  explicit TileSession(const TileConfig& config) { Tiles::configure(config); }
  ~TileSession() { Tiles::release(); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

/// How rows are cut into tiles of as many rows each, of which the last begins where it must to have
/// that many: its first rows were in the one before.
struct TileRows {
  std::int64_t all;
  std::int64_t of_tile() const { return smaller(all, kTileRowsMost); }
  std::int64_t tiles() const { return (all + kTileRowsMost - 1) / kTileRowsMost; }
  std::int64_t begin(std::int64_t tile) const {
    return smaller(tile * kTileRowsMost, all - of_tile());
  }
  /// The first of a tile's rows that is in no other.
  std::int64_t first_new(std::int64_t tile) const { return tile * kTileRowsMost - begin(tile); }
};

}  // namespace heddle::cpu::HEDDLE_SIMD
