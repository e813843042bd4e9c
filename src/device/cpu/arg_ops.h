// Where the extreme of a line of floats is, vectorised.
#pragma once

#include <cstdint>

namespace heddle::cpu {

/// The first of the largest or smallest of n > 0 elements; the first NaN where there is one.
/// Meanwhile as many from `next` on, if that is not null, are fetched.
using FindExtreme = std::int64_t (*)(const float* x, const float* next, std::int64_t n);

struct ArgOps {
  FindExtreme largest = nullptr, smallest = nullptr;
};

/// With the instructions that isa() allows; of nulls where it has no vectors.
const ArgOps& arg_ops();

}  // namespace heddle::cpu
