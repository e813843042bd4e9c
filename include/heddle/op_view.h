// Ops: leaves and views. What structs of ops have in common is said in op.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "heddle/buffer.h"
#include "heddle/ref.h"
#include "heddle/tensor.h"

namespace heddle {

/// How a value is transformed, where that does not follow from how it was computed; what it holds
/// is known to heddle/transforms.h only.
struct TransformRules;

// ---- Leaves: values that no kernel makes. No inputs.

/// A value known when the graph is built, held contiguously at the start of `data` in host memory.
struct Constant {
  static constexpr std::string_view kName = "constant";
  TensorSpec spec;
  Ref<Buffer> data;
  bool operator==(const Constant&) const = default;
  void fields(auto&& f) const { f("spec", spec); }
};

/// A weight: bound by name, unchanged between runs, and so free to be repacked.
struct Parameter {
  static constexpr std::string_view kName = "parameter";
  std::string name;
  TensorSpec spec;
  bool operator==(const Parameter&) const = default;
  void fields(auto&& f) const { f("name", name), f("spec", spec); }
};

/// What a caller gives for each run, by name. `extent`, if not empty, names an i32 scalar input:
/// only that many leading rows (axis 0) count in the run, and nothing need be computed for the
/// rest.
struct Input {
  static constexpr std::string_view kName = "input";
  std::string name;
  TensorSpec spec;
  std::string extent;
  bool operator==(const Input&) const = default;
  void fields(auto&& f) const { f("name", name), f("spec", spec), f("extent", extent); }
};

/// The version of a state that a run begins with. The bound state may have more rows (axis 0) than
/// `spec`.
struct StateRef {
  static constexpr std::string_view kName = "state";
  std::string name;
  TensorSpec spec;
  bool operator==(const StateRef&) const = default;
  void fields(auto&& f) const { f("name", name), f("spec", spec); }
};

// ---- Views: another look at the same bytes where strides allow, a copy where they do not.

struct Reshape {  // x -> x as `shape`
  static constexpr std::string_view kName = "reshape";
  Shape shape;
  bool operator==(const Reshape&) const = default;
  void fields(auto&& f) const { f("shape", shape); }
};

struct Transpose {  // x -> output axis i is input axis axes[i]
  static constexpr std::string_view kName = "transpose";
  Dims axes;
  bool operator==(const Transpose&) const = default;
  void fields(auto&& f) const { f("axes", axes); }
};

/// x -> x[start:stop:step] on every axis. With step > 0, 0 <= start <= stop <= extent; with step <
/// 0, -1 <= stop <= start < extent, and a stop of -1 is before the first.
struct Slice {
  static constexpr std::string_view kName = "slice";
  Dims start, stop, step;
  bool operator==(const Slice&) const = default;
  void fields(auto&& f) const { f("start", start), f("stop", stop), f("step", step); }
};

struct Broadcast {  // x -> x repeated to `shape`, by NumPy's rule
  static constexpr std::string_view kName = "broadcast";
  Shape shape;
  bool operator==(const Broadcast&) const = default;
  void fields(auto&& f) const { f("shape", shape); }
};

struct Squeeze {  // x -> x without `axes`, each of extent 1
  static constexpr std::string_view kName = "squeeze";
  Dims axes;
  bool operator==(const Squeeze&) const = default;
  void fields(auto&& f) const { f("axes", axes); }
};

struct ExpandDims {  // x -> x with new axes of extent 1 at `axes` of the result
  static constexpr std::string_view kName = "expand_dims";
  Dims axes;
  bool operator==(const ExpandDims&) const = default;
  void fields(auto&& f) const { f("axes", axes); }
};

/// x0 ... x[values-1], then any number of dependencies -> x0 ... x[values-1], no sooner than all
/// inputs. Lazy evaluation only: in a graph, whose order is fixed, its outputs are its inputs. With
/// `rules`, transforms take the values for functions of the dependencies and go by the rules.
struct Depends {
  static constexpr std::string_view kName = "depends";
  std::int64_t values = 0;
  std::shared_ptr<const TransformRules> rules = nullptr;
  bool operator==(const Depends&) const = default;
  void fields(auto&& f) const { f("values", values); }
};

/// x -> element (i, j, ...) is the row-major element offset + i*strides[0] + j*strides[1] + ... of
/// x, which has one there for every index; of no block type.
struct AsStrided {
  static constexpr std::string_view kName = "as_strided";
  Shape shape;
  Dims strides;  // in elements, of either sign
  std::int64_t offset = 0;
  bool operator==(const AsStrided&) const = default;
  void fields(auto&& f) const { f("shape", shape), f("strides", strides), f("offset", offset); }
};

}  // namespace heddle
