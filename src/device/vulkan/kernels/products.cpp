#include "device/vulkan/kernels/products.h"

#include "base/settings.h"

namespace heddle::vulkan {

ProductForm product_form(const Limits& limits, std::int64_t rows) {
  (void)limits, (void)rows;
  return ProductForm::scalar;
}

}  // namespace heddle::vulkan
