// Names for the arrays of a tree (heddle/tree.h): parameters, which of them train, and their files.
//
// A module is a struct whose `leaves` names its parts: arrays, optional ones, other modules, ranges
// and maps of them:
//
//     struct Block {
//       nn::RMSNorm norm;
//       std::vector<nn::Linear> layers;
//       auto leaves() const { return nn::named("norm", norm, "layers", layers); }
//     };
//
// Names are those of the parts on the way, with dots between: "layers.0.weight". A part called ""
// adds nothing to a name, and parts without names count: 0, 1, ...
//
// What is `frozen` belongs to the tree, has a name, and is saved and loaded; but it does not train:
// value_and_grad, optimisers and compile's states do not see it.
//
// Any thread may call any of these; one tree may not be changed by two at once.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/io.h"
#include "heddle/transforms.h"

namespace heddle::nn {

// ---- What `leaves` returns. These refer to the parts, and live no longer than the struct.

template <class... Parts>
struct Named {
  std::array<const char*, sizeof...(Parts)> names;
  std::tuple<Parts...> parts;
  const std::tuple<Parts...>& leaves() const { return parts; }
};

template <class Part>
struct Frozen {
  Part part;
  std::tuple<> leaves() const { return {}; }
};
/// `part`, which does not train.
template <class Part>
Frozen<Part> frozen(Part&& part) {
  return {std::forward<Part>(part)};
}

template <class... Ts>
struct Alternatives {
  const std::variant<Ts...>& value;
  std::tuple<std::span<const Ts>...> leaves() const {
    return {std::span<const Ts>(std::get_if<Ts>(&value), std::holds_alternative<Ts>(value))...};
  }
};
/// The one that is there.
template <class... Ts>
Alternatives<Ts...> alternatives(const std::variant<Ts...>& value) {
  return {value};
}

namespace detail {

// A part in a variable is referred to, one made on the spot (`frozen(part)`) is held.
template <class Pairs, std::size_t... I>
auto named(Pairs pairs, std::index_sequence<I...>) {
  using Parts =
      Named<std::conditional_t<std::is_lvalue_reference_v<std::tuple_element_t<2 * I + 1, Pairs>>,
                               std::tuple_element_t<2 * I + 1, Pairs>,
                               std::remove_reference_t<std::tuple_element_t<2 * I + 1, Pairs>>>...>;
  return Parts{{std::get<2 * I>(pairs)...}, {std::get<2 * I + 1>(std::move(pairs))...}};
}

template <class T>
inline constexpr bool is_named = false;
template <class... Parts>
inline constexpr bool is_named<Named<Parts...>> = true;
template <class T>
inline constexpr bool is_frozen = false;
template <class Part>
inline constexpr bool is_frozen<Frozen<Part>> = true;
template <class T>
inline constexpr bool is_alternatives = false;
template <class... Ts>
inline constexpr bool is_alternatives<Alternatives<Ts...>> = true;

std::string joined(const std::string& name, const std::string& part);

}  // namespace detail

/// named("weight", weight, "bias", bias): parts with their names.
template <class... Pairs>
auto named(Pairs&&... pairs) {
  static_assert(sizeof...(Pairs) % 2 == 0, "named(name, part, name, part, ...)");
  return detail::named(std::forward_as_tuple(std::forward<Pairs>(pairs)...),
                       std::make_index_sequence<sizeof...(Pairs) / 2>());
}

// ---- Parameters

/// Calls visit(name, array, trains) for each array of `tree`, frozen ones included, in the order of
/// visit_leaves.
template <class T, class Visit>
void visit_named_leaves(const T& tree, const Visit& visit, const std::string& name = "",
                        bool trains = true) {
  const auto inner = [&](const auto& part, const std::string& part_name) {
    visit_named_leaves(part, visit, detail::joined(name, part_name), trains);
  };
  if constexpr (std::is_same_v<T, Array>) {
    visit(name, tree, trains);
  } else if constexpr (detail::is_frozen<T>) {
    visit_named_leaves(tree.part, visit, name, false);
  } else if constexpr (detail::is_alternatives<T>) {
    std::visit([&](const auto& one) { inner(one, ""); }, tree.value);
  } else if constexpr (detail::is_named<T>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (inner(std::get<I>(tree.parts), tree.names[I]), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(tree.parts)>>());
  } else if constexpr (requires { tree.visit_names(visit, name, trains); }) {
    tree.visit_names(visit, name, trains);
  } else if constexpr (requires { tree.leaves(); }) {
    inner(tree.leaves(), "");
  } else if constexpr (heddle::detail::is_optional<T>) {
    if (tree) inner(*tree, "");
  } else if constexpr (requires { typename T::mapped_type; }) {
    for (const auto& [key, value] : tree) {
      if constexpr (std::is_arithmetic_v<typename T::key_type>) {
        inner(value, std::to_string(key));
      } else {
        inner(value, std::string(key));
      }
    }
  } else if constexpr (std::ranges::input_range<const T>) {
    std::size_t index = 0;
    for (const auto& item : tree) inner(item, std::to_string(index++));
  } else {
    std::size_t index = 0;
    std::apply([&](const auto&... parts) { (inner(parts, std::to_string(index++)), ...); }, tree);
  }
}

/// One of the arrays of a tree, in it.
struct Parameter {
  std::string name;
  Array* array;
  bool trains;  // floating, and not frozen
};
template <class Tree>
std::vector<Parameter> parameters_in(const Tree& tree) {
  std::vector<Parameter> found;
  visit_named_leaves(tree, [&](const std::string& name, const Array& array, bool trains) {
    // What `leaves` shows of an object that is not const is not const either.
    found.push_back({name, const_cast<Array*>(&array), trains && is_floating(array.dtype())});
  });
  return found;
}

using NamedArrays = std::vector<std::pair<std::string, Array>>;

/// All arrays of `tree` with their names, in its order; or those that train.
template <class Tree>
NamedArrays parameters(const Tree& tree) {
  NamedArrays all;
  visit_named_leaves(tree, [&](const std::string& name, const Array& array, bool) {
    all.emplace_back(name, array);
  });
  return all;
}
template <class Tree>
NamedArrays trainable_parameters(const Tree& tree) {
  NamedArrays all;
  visit_named_leaves(tree, [&](const std::string& name, const Array& array, bool trains) {
    if (trains && is_floating(array.dtype())) all.emplace_back(name, array);
  });
  return all;
}

/// A tree of which only those parameters train whose names `trains` takes (and which do anyway).
/// What holds for trees holds for this one: value_and_grad, optimisers and states see its choice.
template <class Tree>
struct Selected {
  Tree tree;
  std::function<bool(const std::string& name)> trains;

  struct Leaf {
    const Array* array;
    const Array& leaves() const { return *array; }
  };
  std::vector<Leaf> leaves() const {
    std::vector<Leaf> chosen;
    visit_names([&](const std::string&, const Array& array, bool on) {
      if (on) chosen.push_back({&array});
    });
    return chosen;
  }
  template <class Visit>
  void visit_names(const Visit& visit, const std::string& name = "", bool on = true) const {
    const auto choose = [&](const std::string& part, const Array& array, bool part_trains) {
      visit(detail::joined(name, part), array, part_trains && trains(part));
    };
    visit_named_leaves(tree, choose, "", on);
  }
};
template <class Tree>
Selected<Tree> select(Tree tree, std::function<bool(const std::string& name)> trains) {
  return {std::move(tree), std::move(trains)};
}

/// Where the arrays of `trees` are, without frozen ones: what `compile` takes as its state. The
/// trees must outlive the compiled function, and keep their structure.
template <class... Trees>
std::vector<Array*> state_of(Trees&... trees) {
  std::vector<Array*> state;
  (visit_mutable_leaves(trees, [&](Array& leaf) { state.push_back(&leaf); }), ...);
  return state;
}

namespace detail {

void set_dtype(const std::vector<Parameter>& parameters, DType dtype);
void load_parameters(const std::vector<Parameter>& parameters, const ArrayMap& arrays, bool strict);
void load_parameters(const std::vector<Parameter>& parameters, const std::filesystem::path& file,
                     bool strict);

}  // namespace detail

/// Casts the floating arrays of `tree`, frozen ones included. Throws invalid_argument unless
/// `dtype` is floating.
template <class Tree>
void set_dtype(Tree&& tree, DType dtype) {
  detail::set_dtype(parameters_in(tree), dtype);
}

// ---- Files. A checkpoint of several trees is one tree that names them:
//
//     nn::save_parameters(file, nn::named("model", model, "optimizer", optimizer));
//     nn::load_parameters(nn::named("model", model, "optimizer", optimizer), file);

/// Puts the arrays of their names into `tree`. Throws invalid_argument, and changes nothing, where
/// one is of another shape or dtype (nothing is cast: see set_dtype and astype), or, if `strict`,
/// where one is missing or nobody's; the message names them.
template <class Tree>
void load_parameters(Tree&& tree, const ArrayMap& arrays, bool strict = true) {
  detail::load_parameters(parameters_in(tree), arrays, strict);
}
/// The same from a .safetensors or a .gguf file, mapped: see heddle/io.h. Errors name the file.
template <class Tree>
void load_parameters(Tree&& tree, const std::filesystem::path& file, bool strict = true) {
  detail::load_parameters(parameters_in(tree), file, strict);
}

/// Writes arrays to a .safetensors or a .gguf file, whole or not at all: see heddle/io.h. Throws
/// invalid_argument for other names of files, for two arrays of one name, and for what the format
/// cannot hold.
void save_arrays(const std::filesystem::path& file, const NamedArrays& arrays,
                 const std::unordered_map<std::string, std::string>& metadata = {});
/// All parameters; `save_arrays(file, trainable_parameters(tree))` writes those that train.
template <class Tree>
void save_parameters(const std::filesystem::path& file, const Tree& tree,
                     const std::unordered_map<std::string, std::string>& metadata = {}) {
  save_arrays(file, parameters(tree), metadata);
}

}  // namespace heddle::nn
