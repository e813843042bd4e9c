#define HEDDLE_SIMD avx512
#include "device/cpu/products_simd.h"
#include "device/cpu/rounded_simd.h"

namespace heddle::cpu::HEDDLE_SIMD {

namespace {

constexpr Products converting() {
  Products products = kProducts;
  products.panels[static_cast<int>(Stored::f16)] = panels_along_depth<StoredF16>;
  return products;
}

}  // namespace

const Products kConvertingProducts = converting();

}  // namespace heddle::cpu::HEDDLE_SIMD
