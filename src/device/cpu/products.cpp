#include "device/cpu/products.h"

#include "device/cpu/pair_products.h"

namespace heddle::cpu {

namespace {

struct Ones {
  float values[kMostPanelRows] = {};
  constexpr Ones() {
    for (float& value : values) value = 1.0f;
  }
};
constexpr Ones kOnesTable;

}  // namespace

const float* const kOnes = kOnesTable.values;

const Products& products(Isa level) {
#if defined(__x86_64__)
  if (level >= Isa::avx512) {
    return converts_beside_products() ? avx512::kConvertingProducts : avx512::kProducts;
  }
  if (level >= Isa::avx2) return avx2::kProducts;
#elif defined(__aarch64__)
  if (level >= Isa::neon) return neon::kProducts;
#else
  static_cast<void>(level);
#endif
  return portable::kProducts;
}

const RoundedProducts& rounded_products(Isa level) {
#if defined(__x86_64__)
  if (level >= Isa::amx) return amx::kRoundedProducts;
  if (level == Isa::avx512 && has_avx512_bf16()) return avx512_bf16::kRoundedProducts;
  if (level == Isa::avx512) return avx512::kRoundedProducts;
  if (level >= Isa::avx2) return avx2::kRoundedProducts;
#elif defined(__aarch64__)
  if (level >= Isa::neon) return neon::kRoundedProducts;
#else
  static_cast<void>(level);
#endif
  return portable::kRoundedProducts;
}

const PairProducts* pair_products(Isa level) {
#if defined(__x86_64__)
  if (level == Isa::avx512 && has_avx512_bf16()) return &avx512_bf16::kPairProducts;
#else
  static_cast<void>(level);
#endif
  return nullptr;
}

}  // namespace heddle::cpu
