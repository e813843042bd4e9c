// Ops computed the obvious way, in double, one element at a time: what lowered forms are held
// against. Rounding of dtypes is left out, but for casts to integers and bool.
#pragma once

#include <span>
#include <vector>

#include "heddle/op.h"

namespace heddle {

struct Reference {
  TensorSpec spec;
  std::vector<double> values;  // row-major
};

/// The outputs of an op.
std::vector<Reference> reference(const Op& op, std::span<const Reference> inputs);

/// The same by way of `lower`: every step that has a simpler form is computed through it.
std::vector<Reference> reference_lowered(const Op& op, std::span<const Reference> inputs);

}  // namespace heddle
