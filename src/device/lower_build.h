// What the rules of lowering are written with: a builder that infers as it goes.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "device/lower.h"

namespace heddle {

class LoweredBuilder {
 public:
  using Value = LoweredStep::Source;

  explicit LoweredBuilder(std::span<const TensorSpec> inputs)
      : inputs_(inputs.begin(), inputs.end()) {}

  static Value input(std::size_t index) { return {true, index, 0}; }
  std::size_t input_count() const { return inputs_.size(); }

  const TensorSpec& spec(const Value& value) const {
    return value.from_input ? inputs_[value.index] : specs_[value.index][value.output];
  }
  const Shape& shape(const Value& value) const { return spec(value).shape; }
  DType dtype(const Value& value) const { return spec(value).dtype; }

  /// Adds an op; its first output.
  Value add(Op op, std::vector<Value> sources);

  /// A value of shape [1].
  Value scalar(double value, DType dtype) { return add(Arange{value, 0, 1, dtype}, {}); }
  Value unary(UnaryKind kind, Value x) { return add(Unary{kind}, {x}); }
  Value binary(BinaryKind kind, Value a, Value b) { return add(Binary{kind}, {a, b}); }
  /// These give `x` itself where nothing would change.
  Value cast(Value x, DType dtype);
  Value reshape(Value x, const Shape& shape);
  Value contiguous(Value x) { return add(Contiguous{}, {x}); }
  /// x[begin:end:step] of one axis.
  Value slice(Value x, std::size_t axis, std::int64_t begin, std::int64_t end,
              std::int64_t step = 1);
  /// Reduced over the last axis, which stays as one of extent 1.
  Value reduce_last(ReduceKind kind, Value x);

  Lowered finish(std::initializer_list<Value> outputs) {
    lowered_.outputs.assign(outputs.begin(), outputs.end());
    return std::move(lowered_);
  }
  Lowered finish(std::vector<Value> outputs) {
    lowered_.outputs = std::move(outputs);
    return std::move(lowered_);
  }

 private:
  std::vector<TensorSpec> inputs_;
  std::vector<std::vector<TensorSpec>> specs_;  // of each step's outputs
  Lowered lowered_;
};

/// The type that a floating `dtype` is computed in: halves in f32.
inline DType compute_dtype(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

// The rules, by family; each gives nothing where it has no simpler form. Overloads for ops without
// a rule are not declared.
using MaybeLowered = std::optional<Lowered>;
using LowerInputs = std::span<const TensorSpec>;

// lower_math.cpp
MaybeLowered lower_op(const Unary&, LowerInputs);
MaybeLowered lower_op(const Binary&, LowerInputs);
MaybeLowered lower_op(const Compare&, LowerInputs);
MaybeLowered lower_op(const Select&, LowerInputs);
MaybeLowered lower_op(const GatedMultiply&, LowerInputs);
MaybeLowered lower_op(const Reduce&, LowerInputs);
MaybeLowered lower_op(const Softmax&, LowerInputs);
MaybeLowered lower_op(const CausalSoftmax&, LowerInputs);
MaybeLowered lower_op(const RmsNorm&, LowerInputs);
MaybeLowered lower_op(const AddRmsNorm&, LowerInputs);
MaybeLowered lower_op(const LayerNorm&, LowerInputs);
MaybeLowered lower_op(const Matmul&, LowerInputs);
MaybeLowered lower_op(const Linear&, LowerInputs);

// lower_rows.cpp
MaybeLowered lower_op(const Cast&, LowerInputs);
MaybeLowered lower_op(const SliceUpdate&, LowerInputs);
MaybeLowered lower_op(const GatherRows&, LowerInputs);
MaybeLowered lower_op(const WriteRows&, LowerInputs);
MaybeLowered lower_op(const Rope&, LowerInputs);
MaybeLowered lower_op(const RopeTable&, LowerInputs);
MaybeLowered lower_op(const RopeWriteRows&, LowerInputs);
MaybeLowered lower_op(const NormRope&, LowerInputs);
MaybeLowered lower_op(const NormRopeWriteRows&, LowerInputs);

// lower_spatial.cpp
MaybeLowered lower_op(const Pad&, LowerInputs);
MaybeLowered lower_op(const Conv&, LowerInputs);
MaybeLowered lower_op(const ChannelNorm&, LowerInputs);
MaybeLowered lower_op(const GroupNorm&, LowerInputs);

// lower_attention.cpp
MaybeLowered lower_op(const Attention&, LowerInputs);
MaybeLowered lower_op(const Attend&, LowerInputs);

}  // namespace heddle
