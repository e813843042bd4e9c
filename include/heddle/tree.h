// Trees of arrays, as `eval` and its like take them.
//
// A tree is an Array; an optional, a range, a map (its values), a pair or a tuple of trees; or a
// struct whose `leaves() const` returns one: `auto leaves() const { return std::tie(w, b); }`.
#pragma once

#include <optional>
#include <ranges>
#include <tuple>
#include <utility>
#include <vector>

#include "heddle/array.h"

namespace heddle {

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace detail

/// Calls visit(array) for each array of `tree`, in order.
template <class T, class Visit>
void visit_leaves(const T& tree, const Visit& visit) {
  if constexpr (std::is_same_v<T, Array>) {
    visit(tree);
  } else if constexpr (requires { tree.leaves(); }) {
    visit_leaves(tree.leaves(), visit);
  } else if constexpr (detail::is_optional<T>) {
    if (tree) visit_leaves(*tree, visit);
  } else if constexpr (requires { typename T::mapped_type; }) {
    for (const auto& [key, value] : tree) visit_leaves(value, visit);
  } else if constexpr (std::ranges::input_range<const T>) {
    for (const auto& item : tree) visit_leaves(item, visit);
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](const auto&... parts) { (visit_leaves(parts, visit), ...); }, tree);
  } else {
    static_assert(!sizeof(T), "not a tree of arrays: see heddle/tree.h");
  }
}

/// The arrays of `trees`, in order.
template <class... Trees>
std::vector<Array> leaves_of(const Trees&... trees) {
  std::vector<Array> leaves;
  [[maybe_unused]] const auto add = [&](const Array& array) { leaves.push_back(array); };
  (visit_leaves(trees, add), ...);
  return leaves;
}

template <class... Trees>
void eval(const Trees&... trees) {
  eval(std::span<const Array>(leaves_of(trees...)));
}
template <class... Trees>
void async_eval(const Trees&... trees) {
  async_eval(std::span<const Array>(leaves_of(trees...)));
}
template <class... Trees>
void check(const Trees&... trees) {
  check(std::span<const Array>(leaves_of(trees...)));
}
template <class... Trees>
Scheduled schedule(const Trees&... trees) {
  return Scheduled(leaves_of(trees...));
}

}  // namespace heddle
