// Ops over a batch: rules by family.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "heddle/transforms.h"

namespace heddle {

/// One op for a batch: an input that differs has the batch as its axis 0.
struct Batched {
  std::span<const Array> in;
  std::vector<bool> differs;
  std::int64_t size;  // of the batch; at least 1

  /// Input i with the batch as axis 0, repeated (without a copy) if need be.
  Array all(std::size_t i) const;
  /// With extents of 1 behind the batch, so that the rest of the shape has `rank` axes; what does
  /// not differ stays as it is.
  Array aligned(std::size_t i, std::size_t rank) const;
  /// Input i's rank in one example.
  std::size_t rank(std::size_t i) const { return in[i].ndim() - (differs[i] ? 1 : 0); }
};

/// The op's outputs, with the batch as axis 0. Ops without a rule run example by example.
std::vector<Array> vmap_of(const Op& op, const Batched& batch);

}  // namespace heddle
