// Walking strided operands in row-major order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/strides.h"
#include "heddle/tensor.h"

namespace heddle::cpu {

/// The elements of an operand in row-major order of a shape, with axes merged where strides allow:
/// a contiguous operand has at most one axis, of stride 1.
struct Walk {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> extents{}, strides{};
  std::int64_t count = 1;
  std::int64_t first = 0;  // element (0, 0, ...), from the lowest on: see first_element

  bool dense() const noexcept { return rank == 0 || (rank == 1 && strides[0] == 1) || count <= 1; }
  bool uniform() const noexcept { return count <= 1 || (rank == 1 && strides[0] == 0); }
};

Walk make_walk(const Shape& shape, const Dims& strides);

/// Where element `flat` of the walk is, in elements from the lowest on.
std::int64_t offset_of(const Walk& walk, std::int64_t flat);

/// Copies elements [begin, begin + n) of the walk, each of `item` bytes, to `dst`.
void gather(const Walk& walk, std::size_t item, const std::byte* base, std::int64_t begin,
            std::int64_t n, std::byte* dst);

/// Copies `n` items of a plain dtype from `src` on to elements [begin, begin + n) of the walk.
void scatter(const Walk& walk, std::size_t item, const std::byte* src, std::int64_t begin,
             std::int64_t n, std::byte* base);

}  // namespace heddle::cpu
