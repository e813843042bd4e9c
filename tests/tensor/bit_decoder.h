// A second decoder of GGUF's block types, for tests: it reads single bits at the positions that the
// format's description gives, works in double, and shares nothing with the library.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "heddle/dtype.h"

namespace heddle::test {

class BitDecoder {
 public:
  BitDecoder(DType dtype, const unsigned char* block) : dtype_(dtype), block_(block) {}

  /// The exact value of element `i` of the block.
  double operator()(int i) const {
    switch (dtype_) {
      case DType::q4_0:
        return half(0) * (small_nibble(2, i) - 8);
      case DType::q4_1:
        return half(0) * small_nibble(4, i) + half(2);
      case DType::q5_0:
        return half(0) * (small_nibble(6, i) + 16 * fifth_bit(2, i) - 16);
      case DType::q5_1:
        return half(0) * (small_nibble(8, i) + 16 * fifth_bit(4, i)) + half(2);
      case DType::q8_0:
        return half(0) * signed_byte(2 + i);
      case DType::q2_K:
        return q2_k(i);
      case DType::q3_K:
        return q3_k(i);
      case DType::q4_K:
        return affine_k(i, bits(16 + nibble_byte(i), nibble_bit(i), 4));
      case DType::q5_K:
        return affine_k(
            i, bits(48 + nibble_byte(i), nibble_bit(i), 4) + 16 * bits(16 + i % 32, i / 32, 1));
      case DType::q6_K:
        return q6_k(i);
      case DType::iq4_nl:
        return half(0) * codebook(small_nibble(2, i));
      case DType::iq4_xs:
        return iq4_xs(i);
      default:
        throw std::logic_error("not a block type");
    }
  }

 private:
  // `count` bits of byte `byte`, from bit `first` up.
  int bits(int byte, int first, int count) const {
    int value = 0;
    for (int b = 0; b < count; ++b) {
      if (block_[byte] & (1 << (first + b))) value += 1 << b;
    }
    return value;
  }

  int signed_byte(int byte) const {
    const int value = block_[byte];
    return value < 128 ? value : value - 256;
  }

  double half(int byte) const {
    const int fraction = bits(byte, 0, 8) + 256 * bits(byte + 1, 0, 2);
    const int exponent = bits(byte + 1, 2, 5);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return bits(byte + 1, 7, 1) ? -magnitude : magnitude;
  }

  static double codebook(int code) {
    static constexpr double kValues[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
    return kValues[code];
  }

  // 32-element blocks: elements 0..15 are low nibbles, 16..31 high ones.
  int small_nibble(int qs, int i) const { return bits(qs + i % 16, i < 16 ? 0 : 4, 4); }
  int fifth_bit(int qh, int i) const { return bits(qh + i / 8, i % 8, 1); }

  // q4_K and q5_K: 32 low nibbles, then the 32 high ones of the same bytes, four times.
  static int nibble_byte(int i) { return i / 64 * 32 + i % 32; }
  static int nibble_bit(int i) { return i % 64 < 32 ? 0 : 4; }

  double affine_k(int i, int code) const {
    const int s = i / 32;
    constexpr int kScales = 4;
    int scale;
    int min;
    if (s < 4) {
      scale = bits(kScales + s, 0, 6);
      min = bits(kScales + 4 + s, 0, 6);
    } else {
      scale = bits(kScales + 8 + (s - 4), 0, 4) + 16 * bits(kScales + (s - 4), 6, 2);
      min = bits(kScales + 8 + (s - 4), 4, 4) + 16 * bits(kScales + 4 + (s - 4), 6, 2);
    }
    return half(0) * scale * code - half(2) * min;
  }

  double q2_k(int i) const {
    const int code = bits(16 + i / 128 * 32 + i % 32, 2 * (i / 32 % 4), 2);
    return half(80) * bits(i / 16, 0, 4) * code - half(82) * bits(i / 16, 4, 4);
  }

  double q3_k(int i) const {
    const int code =
        bits(32 + i / 128 * 32 + i % 32, 2 * (i / 32 % 4), 2) + 4 * bits(i % 32, i / 32, 1);
    const int s = i / 16;
    const int low = s < 8 ? bits(96 + s, 0, 4) : bits(96 + s - 8, 4, 4);
    const int scale = low + 16 * bits(104 + s % 4, 2 * (s / 4), 2) - 32;
    return half(108) * scale * (code - 4);
  }

  double q6_k(int i) const {
    const int h = i / 128;
    const int r = i % 128;
    const int low = bits(64 * h + r % 64, r < 64 ? 0 : 4, 4);
    const int high = bits(128 + 32 * h + r % 32, r / 32 * 2, 2);
    return half(208) * signed_byte(192 + i / 16) * (low + 16 * high - 32);
  }

  double iq4_xs(int i) const {
    const int s = i / 32;
    const int low = bits(4 + s / 2, s % 2 * 4, 4);
    const int high = bits(2 + s / 4, s % 4 * 2, 2);
    const int code = bits(8 + 16 * s + i % 16, i % 32 < 16 ? 0 : 4, 4);
    return half(0) * (low + 16 * high - 32) * codebook(code);
  }

  DType dtype_;
  const unsigned char* block_;
};

}  // namespace heddle::test
