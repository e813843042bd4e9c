// Ops that put elements in order, and that find places in what is ordered.
//
// The order: NaN is larger than all numbers, and NaNs are equal; so are -0 and 0. Complex numbers
// are ordered by their real, then by their imaginary parts, those with a NaN behind all others: as
// in NumPy, first those whose imaginary part alone is NaN, by their real parts, then those whose
// real part alone is, by their imaginary parts.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle {

enum class SortKind : std::uint8_t { sort, argsort };
std::string_view to_string(SortKind kind) noexcept;

/// x [..., n] of a plain dtype -> like x, each row in ascending order (real -0 before 0, and real
/// NaNs without their sign, so that the bytes do not depend on how it is done); argsort gives the
/// u32 indices of the elements instead, equals in the order of their indices.
struct Sort {
  static constexpr std::string_view kName = "sort";
  SortKind kind = SortKind::sort;
  bool operator==(const Sort&) const = default;
  void fields(auto&& f) const { f("kind", kind); }
};

/// sorted [n] in ascending order, values of the same plain dtype -> u32 of values' shape: how many
/// elements of `sorted` are smaller than the value, or with `right` not larger: where it can be
/// inserted before or behind its equals. What is not sorted gives some number in [0, n].
struct SearchSorted {
  static constexpr std::string_view kName = "search_sorted";
  bool right = false;
  bool operator==(const SearchSorted&) const = default;
  void fields(auto&& f) const { f("right", right); }
};

}  // namespace heddle
