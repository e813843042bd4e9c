#include "device/cpu/simulated_tiles.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace heddle::cpu::simulated {

namespace {

constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64;

struct Config {
  std::uint8_t palette, start_row, reserved[14];
  std::uint16_t row_bytes[16];
  std::uint8_t rows[16];
};
static_assert(sizeof(Config) == 64);

struct TileState {
  bool is_configured = false;
  Config config = {};
  std::byte data[kTiles][kMostRows][kMostBytes] = {};
};
thread_local TileState state;

std::atomic<std::int64_t> configured{0}, released{0}, products{0}, until_failure{0};

void refuse(const std::string& why) {
  throw std::logic_error("tiles: " + why);
}

/// What every instruction needs first.
void begin() {
  if (until_failure.load() > 0 && until_failure.fetch_sub(1) == 1) {
    throw std::runtime_error("tiles: made to fail");
  }
}

int rows_of(int tile) {
  if (!state.is_configured) refuse("not configured");
  if (tile < 0 || tile >= kTiles || state.config.rows[tile] == 0) refuse("no such tile");
  return state.config.rows[tile];
}

int bytes_of(int tile) {
  return state.config.row_bytes[tile];
}

template <class T>
T element(int tile, int row, int index) {
  T value;
  std::memcpy(&value, state.data[tile][row] + index * static_cast<int>(sizeof(T)), sizeof value);
  return value;
}

template <class T>
void set_element(int tile, int row, int index, T value) {
  std::memcpy(state.data[tile][row] + index * static_cast<int>(sizeof(T)), &value, sizeof value);
}

void check_product(int sums, int a, int b) {
  begin();
  if (sums == a || sums == b || a == b) refuse("a product needs three tiles");
  const bool fits = rows_of(sums) == rows_of(a) && bytes_of(sums) == bytes_of(b) &&
                    bytes_of(a) == 4 * rows_of(b) && bytes_of(sums) % 4 == 0;
  if (!fits) refuse("the shapes of a product do not fit");
  ++products;
}

/// What rows and bytes the configuration leaves out are zeros after every write.
void clear(int tile) {
  std::memset(state.data[tile], 0, sizeof state.data[tile]);
}

std::int32_t byte_of(int tile, int row, int index, bool is_signed) {
  return is_signed ? element<std::int8_t>(tile, row, index)
                   : element<std::uint8_t>(tile, row, index);
}

float without_subnormals(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

float bf16_of(int tile, int row, int index) {
  const std::uint32_t bits = std::uint32_t{element<std::uint16_t>(tile, row, index)} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return without_subnormals(value);
}

}  // namespace

void configure(const void* config) {
  begin();
  std::memcpy(&state.config, config, sizeof state.config);
  if (state.config.palette != 1 || state.config.start_row != 0) refuse("no such palette");
  for (int tile = 0; tile < 16; ++tile) {
    const int rows = state.config.rows[tile], bytes = state.config.row_bytes[tile];
    if (rows > kMostRows || bytes > kMostBytes || (tile >= kTiles && rows + bytes > 0) ||
        (rows == 0) != (bytes == 0)) {
      refuse("a tile that is too large");
    }
  }
  if (state.is_configured) refuse("configured again before it was released");
  for (int tile = 0; tile < kTiles; ++tile) clear(tile);
  state.is_configured = true;
  ++configured;
}

void release() {
  if (!state.is_configured) refuse("released without having been configured");
  state.is_configured = false;
  ++released;
}

void zero(int tile) {
  begin();
  rows_of(tile);
  clear(tile);
}

void load(int tile, const void* from, std::int64_t stride) {
  begin();
  const int rows = rows_of(tile);
  clear(tile);
  for (int r = 0; r < rows; ++r) {
    std::memcpy(state.data[tile][r], static_cast<const std::byte*>(from) + r * stride,
                static_cast<std::size_t>(bytes_of(tile)));
  }
}

void store(int tile, void* to, std::int64_t stride) {
  begin();
  const int rows = rows_of(tile);
  for (int r = 0; r < rows; ++r) {
    std::memcpy(static_cast<std::byte*>(to) + r * stride, state.data[tile][r],
                static_cast<std::size_t>(bytes_of(tile)));
  }
}

void dot_bytes(int sums, int a, int b, bool a_is_signed) {
  check_product(sums, a, b);
  for (int m = 0; m < rows_of(sums); ++m) {
    for (int n = 0; n < bytes_of(sums) / 4; ++n) {
      auto sum = element<std::int32_t>(sums, m, n);
      for (int k = 0; k < rows_of(b); ++k) {
        for (int i = 0; i < 4; ++i) {
          sum += byte_of(a, m, 4 * k + i, a_is_signed) * byte_of(b, k, 4 * n + i, true);
        }
      }
      set_element(sums, m, n, sum);
    }
  }
}

void dot_bf16(int sums, int a, int b) {
  check_product(sums, a, b);
  const auto fused = [&](int m, int k, int n, int i, float sum) {
    return without_subnormals(
        std::fma(bf16_of(a, m, 2 * k + i), bf16_of(b, k, 2 * n + i), without_subnormals(sum)));
  };
  for (int m = 0; m < rows_of(sums); ++m) {
    for (int n = 0; n < bytes_of(sums) / 4; ++n) {
      float even = 0, odd = 0;
      for (int k = 0; k < rows_of(b); ++k) {
        even = fused(m, k, n, 0, even);
        odd = fused(m, k, n, 1, odd);
      }
      const float old = without_subnormals(element<float>(sums, m, n));
      set_element(sums, m, n, without_subnormals(old + without_subnormals(even + odd)));
    }
  }
}

TileCounts tile_counts() {
  return {configured, released, products};
}

void reset_tile_counts() {
  configured = released = products = 0;
}

void fail_after(std::int64_t n) {
  until_failure = n;
}

#if !defined(__x86_64__)
const QuantPanelLoops* quant_panel_loops() {
  return nullptr;
}
const RoundedProducts* rounded_products() {
  return nullptr;
}
#endif

}  // namespace heddle::cpu::simulated
