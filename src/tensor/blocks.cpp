#include "tensor/blocks.h"

#include <cstring>

#include "base/check.h"
#include "heddle/half.h"

namespace heddle {

namespace {

// Products of an f16 scale, a sub-block scale and a code are exact in float (11 + 6 + 7 bits at
// most) except q6_K's, where only the last multiplication rounds; so the order of operations below
// rounds once.

int low_nibble(std::uint8_t byte) {
  return byte & 15;
}
int high_nibble(std::uint8_t byte) {
  return byte >> 4;
}
float scale_of(std::uint16_t bits) {
  return f16_bits_to_f32(bits);
}

void decode(const BlockQ4_0& block, float* y) {
  const float d = scale_of(block.d);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(low_nibble(block.qs[j]) - 8);
    y[j + 16] = d * static_cast<float>(high_nibble(block.qs[j]) - 8);
  }
}

void decode(const BlockQ4_1& block, float* y) {
  const float d = scale_of(block.d);
  const float m = scale_of(block.m);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(low_nibble(block.qs[j])) + m;
    y[j + 16] = d * static_cast<float>(high_nibble(block.qs[j])) + m;
  }
}

template <class Block>
int five_bit_code(const Block& block, int i) {
  const std::uint8_t byte = block.qs[i % 16];
  const int low = i < 16 ? low_nibble(byte) : high_nibble(byte);
  return low | (block.qh[i / 8] >> (i % 8) & 1) << 4;
}

void decode(const BlockQ5_0& block, float* y) {
  const float d = scale_of(block.d);
  for (int i = 0; i < kSmallBlock; ++i) {
    y[i] = d * static_cast<float>(five_bit_code(block, i) - 16);
  }
}

void decode(const BlockQ5_1& block, float* y) {
  const float d = scale_of(block.d);
  const float m = scale_of(block.m);
  for (int i = 0; i < kSmallBlock; ++i) {
    y[i] = d * static_cast<float>(five_bit_code(block, i)) + m;
  }
}

void decode(const BlockQ8_0& block, float* y) {
  const float d = scale_of(block.d);
  for (int i = 0; i < kSmallBlock; ++i) y[i] = d * static_cast<float>(block.qs[i]);
}

// The two-bit code of element i in q2_K's and q3_K's order.
int two_bit_code(const std::uint8_t (&qs)[64], int i) {
  const int half = i / 128;
  const int quarter = i % 128 / 32;
  return qs[32 * half + i % 32] >> (2 * quarter) & 3;
}

void decode(const BlockQ2K& block, float* y) {
  const float d = scale_of(block.d);
  const float dmin = scale_of(block.dmin);
  for (int i = 0; i < kSuperBlock; ++i) {
    const std::uint8_t scales = block.scales[i / 16];
    const float scale = d * static_cast<float>(low_nibble(scales));
    const float min = dmin * static_cast<float>(high_nibble(scales));
    y[i] = scale * static_cast<float>(two_bit_code(block.qs, i)) - min;
  }
}

void decode(const BlockQ3K& block, float* y) {
  const float d = scale_of(block.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int high = block.hmask[i % 32] >> (i / 32) & 1;
    const int code = two_bit_code(block.qs, i) | high << 2;
    y[i] = d * static_cast<float>(q3k_scale(block.scales, i / 16)) * static_cast<float>(code - 4);
  }
}

void decode(const BlockQ4K& block, float* y) {
  const float d = scale_of(block.d);
  const float dmin = scale_of(block.dmin);
  for (int s = 0; s < 8; ++s) {
    const ScaleMin sub = k_scale_min(block.scales, s);
    const float scale = d * static_cast<float>(sub.scale);
    const float min = dmin * static_cast<float>(sub.min);
    const std::uint8_t* qs = block.qs + 32 * (s / 2);
    for (int l = 0; l < 32; ++l) {
      const int code = s % 2 == 0 ? low_nibble(qs[l]) : high_nibble(qs[l]);
      y[32 * s + l] = scale * static_cast<float>(code) - min;
    }
  }
}

void decode(const BlockQ5K& block, float* y) {
  const float d = scale_of(block.d);
  const float dmin = scale_of(block.dmin);
  for (int s = 0; s < 8; ++s) {
    const ScaleMin sub = k_scale_min(block.scales, s);
    const float scale = d * static_cast<float>(sub.scale);
    const float min = dmin * static_cast<float>(sub.min);
    const std::uint8_t* qs = block.qs + 32 * (s / 2);
    for (int l = 0; l < 32; ++l) {
      const int low = s % 2 == 0 ? low_nibble(qs[l]) : high_nibble(qs[l]);
      const int code = low | (block.qh[l] >> s & 1) << 4;
      y[32 * s + l] = scale * static_cast<float>(code) - min;
    }
  }
}

void decode(const BlockQ6K& block, float* y) {
  const float d = scale_of(block.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;
    const int l = i % 32;
    const std::uint8_t byte = block.ql[64 * half + 32 * (quarter % 2) + l];
    const int low = quarter < 2 ? low_nibble(byte) : high_nibble(byte);
    const int high = block.qh[32 * half + l] >> (2 * quarter) & 3;
    const int code = low | high << 4;
    y[i] = d * static_cast<float>(block.scales[i / 16]) * static_cast<float>(code - 32);
  }
}

void decode_iq4(float scale, const std::uint8_t* qs, float* y) {
  for (int j = 0; j < 16; ++j) {
    y[j] = scale * static_cast<float>(kIq4Codebook[low_nibble(qs[j])]);
    y[j + 16] = scale * static_cast<float>(kIq4Codebook[high_nibble(qs[j])]);
  }
}

void decode(const BlockIq4Nl& block, float* y) {
  decode_iq4(scale_of(block.d), block.qs, y);
}

void decode(const BlockIq4Xs& block, float* y) {
  const float d = scale_of(block.d);
  for (int s = 0; s < 8; ++s) {
    const float scale = d * static_cast<float>(iq4xs_scale(block, s));
    decode_iq4(scale, block.qs + 16 * s, y + 32 * s);
  }
}

template <class Block, int kElements>
void decode_blocks(const void* src, float* dst, std::int64_t n) {
  const auto* bytes = static_cast<const unsigned char*>(src);
  for (std::int64_t i = 0; i < n / kElements; ++i) {
    Block block;  // a copy, since `src` need not be aligned
    std::memcpy(&block, bytes + i * sizeof(Block), sizeof(Block));
    decode(block, dst + i * kElements);
  }
}

template <class Half>
void decode_halves(const void* src, float* dst, std::int64_t n) {
  const auto* bytes = static_cast<const unsigned char*>(src);
  for (std::int64_t i = 0; i < n; ++i) {
    Half value;
    std::memcpy(&value, bytes + i * sizeof(Half), sizeof(Half));
    dst[i] = static_cast<float>(value);
  }
}

}  // namespace

void dequantize_row(DType dtype, const void* src, float* dst, std::int64_t n) {
  const std::size_t bytes = row_bytes(dtype, n);  // refuses partial blocks
  if (n == 0) return;
  switch (dtype) {
    case DType::f32:
      std::memcpy(dst, src, bytes);
      return;
    case DType::f16:
      return decode_halves<f16>(src, dst, n);
    case DType::bf16:
      return decode_halves<bf16>(src, dst, n);
    case DType::q4_0:
      return decode_blocks<BlockQ4_0, kSmallBlock>(src, dst, n);
    case DType::q4_1:
      return decode_blocks<BlockQ4_1, kSmallBlock>(src, dst, n);
    case DType::q5_0:
      return decode_blocks<BlockQ5_0, kSmallBlock>(src, dst, n);
    case DType::q5_1:
      return decode_blocks<BlockQ5_1, kSmallBlock>(src, dst, n);
    case DType::q8_0:
      return decode_blocks<BlockQ8_0, kSmallBlock>(src, dst, n);
    case DType::q2_K:
      return decode_blocks<BlockQ2K, kSuperBlock>(src, dst, n);
    case DType::q3_K:
      return decode_blocks<BlockQ3K, kSuperBlock>(src, dst, n);
    case DType::q4_K:
      return decode_blocks<BlockQ4K, kSuperBlock>(src, dst, n);
    case DType::q5_K:
      return decode_blocks<BlockQ5K, kSuperBlock>(src, dst, n);
    case DType::q6_K:
      return decode_blocks<BlockQ6K, kSuperBlock>(src, dst, n);
    case DType::iq4_nl:
      return decode_blocks<BlockIq4Nl, kSmallBlock>(src, dst, n);
    case DType::iq4_xs:
      return decode_blocks<BlockIq4Xs, kSuperBlock>(src, dst, n);
    default:
      fail(ErrorCode::invalid_argument,
           "dequantize: {} is neither a block type nor f16, bf16 or f32", to_string(dtype));
  }
}

}  // namespace heddle
