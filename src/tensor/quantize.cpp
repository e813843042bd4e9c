#include "tensor/quantize.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "heddle/half.h"
#include "tensor/quantize_blocks.h"

namespace heddle {

namespace {

template <class Block, int kElements>
void encode_blocks(const float* src, void* dst, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    require(std::isfinite(src[i]), ErrorCode::invalid_argument,
            "quantize: element {} is {}; block types hold finite values only", i, src[i]);
  }
  auto* bytes = static_cast<unsigned char*>(dst);
  for (std::int64_t i = 0; i < n / kElements; ++i) {
    Block block{};
    quantize_detail::encode_block(src + i * kElements, block);
    std::memcpy(bytes + i * sizeof(Block), &block, sizeof(Block));
  }
}

template <class Half>
void encode_halves(const float* src, void* dst, std::int64_t n) {
  auto* bytes = static_cast<unsigned char*>(dst);
  for (std::int64_t i = 0; i < n; ++i) {
    const Half value(src[i]);
    std::memcpy(bytes + i * sizeof(Half), &value, sizeof(Half));
  }
}

}  // namespace

void quantize_row(DType dtype, const float* src, void* dst, std::int64_t n) {
  const std::size_t bytes = row_bytes(dtype, n);  // refuses partial blocks
  if (n == 0) return;
  switch (dtype) {
    case DType::f32:
      std::memcpy(dst, src, bytes);
      return;
    case DType::f16:
      return encode_halves<f16>(src, dst, n);
    case DType::bf16:
      return encode_halves<bf16>(src, dst, n);
    case DType::q4_0:
      return encode_blocks<BlockQ4_0, kSmallBlock>(src, dst, n);
    case DType::q4_1:
      return encode_blocks<BlockQ4_1, kSmallBlock>(src, dst, n);
    case DType::q5_0:
      return encode_blocks<BlockQ5_0, kSmallBlock>(src, dst, n);
    case DType::q5_1:
      return encode_blocks<BlockQ5_1, kSmallBlock>(src, dst, n);
    case DType::q8_0:
      return encode_blocks<BlockQ8_0, kSmallBlock>(src, dst, n);
    case DType::q2_K:
      return encode_blocks<BlockQ2K, kSuperBlock>(src, dst, n);
    case DType::q3_K:
      return encode_blocks<BlockQ3K, kSuperBlock>(src, dst, n);
    case DType::q4_K:
      return encode_blocks<BlockQ4K, kSuperBlock>(src, dst, n);
    case DType::q5_K:
      return encode_blocks<BlockQ5K, kSuperBlock>(src, dst, n);
    case DType::q6_K:
      return encode_blocks<BlockQ6K, kSuperBlock>(src, dst, n);
    case DType::iq4_nl:
      return encode_blocks<BlockIq4Nl, kSmallBlock>(src, dst, n);
    case DType::iq4_xs:
      return encode_blocks<BlockIq4Xs, kSuperBlock>(src, dst, n);
    default:
      fail(ErrorCode::invalid_argument, "quantize: {} is neither a block type nor f16, bf16 or f32",
           to_string(dtype));
  }
}

}  // namespace heddle
