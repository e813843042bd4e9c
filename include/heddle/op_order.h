// Ops that put elements in order, and that find places in what is ordered.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle {

enum class SortKind : std::uint8_t { sort, argsort, partition, argpartition };
std::string_view to_string(SortKind kind) noexcept;

/// x (bool, integer or floating) -> like x, each line along `axis` in ascending order; the arg
/// forms give the u32 indices of the elements instead. NaN is larger than all numbers, and equals
/// (NaNs; -0 and 0) stay in the order of their indices. Partitions only promise that element `kth`
/// is where sorting would put it, what is before it not larger, what is behind it not smaller.
struct Sort {
  static constexpr std::string_view kName = "sort";
  SortKind kind = SortKind::sort;
  std::int64_t axis = 0;
  std::int64_t kth = 0;  // of partitions; 0 otherwise
  bool operator==(const Sort&) const = default;
  void fields(auto&& f) const { f("kind", kind), f("axis", axis), f("kth", kth); }
};

/// sorted [n] in ascending order, values of the same dtype -> u32 of values' shape: how many
/// elements of `sorted` are smaller than the value, or with `right` not larger: where it can be
/// inserted before or behind its equals. NaN is larger than all numbers.
struct SearchSorted {
  static constexpr std::string_view kName = "search_sorted";
  bool right = false;
  bool operator==(const SearchSorted&) const = default;
  void fields(auto&& f) const { f("right", right); }
};

}  // namespace heddle
