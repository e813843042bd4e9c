// The forms of Vulkan's matrix products, for tests that try each.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "device/vulkan/kernels/products.h"
#include "device/vulkan/vulkan_device.h"
#include "support/conformance.h"

namespace heddle::test {

using vulkan::ProductForm;
inline constexpr ProductForm kForms[] = {ProductForm::vector, ProductForm::tiled,
                                         ProductForm::scalar};
inline const char* name(ProductForm form) {
  constexpr const char* kNames[] = {"vector", "tiled", "scalar"};
  return kNames[static_cast<int>(form)];
}

/// Calls `f` with all products in each form in turn.
template <class F>
void in_every_form(const F& f) {
  for (const ProductForm form : kForms) {
    SCOPED_TRACE(name(form));
    vulkan::force_product_form(form);
    f();
  }
  vulkan::force_product_form(std::nullopt);
}

/// Expects the outputs to be the same bits in every form and between inaccessible pages, and gives
/// them.
inline std::vector<Tensor> expect_forms_agree(Device& device, const Op& op,
                                              const std::vector<Tensor>& inputs) {
  std::vector<Tensor> first;
  in_every_form([&] {
    for (const std::optional<Flush> flush :
         {std::optional<Flush>(), std::optional(Flush::front), std::optional(Flush::back)}) {
      const Ran ran = run_op(device, op, inputs, {.guarded = flush});
      ASSERT_EQ(ran.refused, "");
      if (first.empty()) first = ran.outputs;
      for (std::size_t i = 0; i < first.size(); ++i) {
        EXPECT_EQ(ran.outputs[i].bytes, first[i].bytes)
            << "output " << i << " differs from the first form's";
      }
    }
  });
  return first;
}

/// The length of the difference of two results, as a share of the second's.
inline double relative_error(const Values& got, const Values& want) {
  Number error = 0, norm = 0;
  for (std::size_t i = 0; i < want.real.size(); ++i) {
    error += (got.real[i] - want.real[i]) * (got.real[i] - want.real[i]);
    norm += want.real[i] * want.real[i];
  }
  return static_cast<double>(std::sqrt(error / norm));
}

}  // namespace heddle::test
