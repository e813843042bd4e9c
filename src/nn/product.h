// The product that all layers with weights [out, in] are made of.
#pragma once

#include "heddle/array.h"

namespace heddle::nn {

/// x weight^T, of the type in which both meet; for block types f32.
Array product(const Array& x, const Array& weight);

}  // namespace heddle::nn
