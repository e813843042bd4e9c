// Convolution through oneDNN.
#pragma once

#include <optional>

#include "device/cpu/kernel.h"

namespace heddle::cpu {

/// The convolution through oneDNN, where it serves; else nothing. `workspace_bytes` is what Run
/// needs.
struct LibraryConv {
  Run run;
  std::size_t workspace_bytes = 0;
};
std::optional<LibraryConv> library_conv(const Conv& op, const TensorSpec& x, const TensorSpec& w,
                                        const TensorSpec& out);

}  // namespace heddle::cpu
