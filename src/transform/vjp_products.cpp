// Products of matrices backwards: products with the other factor, transposed.
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

Array transposed(const Array& a) {
  return swapaxes(a, -1, -2);
}

/// [rows, last axis]
Array as_rows(const Array& a) {
  const Shape& shape = a.shape();
  return reshape(a, {elements(Shape(std::span(shape.begin(), shape.end() - 1))), shape.back()});
}

Array as_float(const Array& weight) {
  return is_block(weight.dtype()) ? dequantize(weight) : astype(weight, DType::f32);
}

}  // namespace

namespace {

/// One matrix for all of a batch has one product of all rows as its cotangent, which a batch of
/// them would take a sum over. What was transposed has one that is so too: then it lies as that
/// which was transposed does.
Array to_shared_matrix(const Array& x, const Array& matrix, const Array& g) {
  const Array rows = as_rows(conjugate(x)), g_rows = as_rows(g);
  if (std::holds_alternative<Transpose>(matrix.node()->op())) {
    return transposed(matmul(transposed(g_rows), rows));
  }
  return matmul(transposed(rows), g_rows);
}

}  // namespace

InputCotangents vjp_rule(const Matmul&, const Backward& b) {
  const Array g = b.g();
  const Array &x = b.in[0], &matrix = b.in[1];
  const Array to_matrix = matrix.ndim() == 2
                              ? to_shared_matrix(x, matrix, g)
                              : sum_to(matmul(transposed(conjugate(x)), g), matrix.shape());
  return {sum_to(matmul(g, transposed(conjugate(matrix))), x.shape()), to_matrix};
}

InputCotangents vjp_rule(const Linear&, const Backward& b) {
  InputCotangents found(b.in.size());
  const Array& x = b.in[0];
  for (std::size_t i = 1; i < b.in.size(); ++i) {
    const std::optional<Array>& g = b.cotangents[i - 1];
    if (!g) continue;
    if (b.wanted[0]) {
      const Array part = matmul(*g, as_float(b.in[i]));
      found[0] = found[0] ? add(*found[0], part) : part;
    }
    if (b.wanted[i]) {
      found[i] = astype(matmul(transposed(as_rows(*g)), as_rows(x)), b.in[i].dtype());
    }
  }
  return found;
}

InputCotangents vjp_rule(const GroupedLinear&, const Backward& b) {
  const Array &x = b.in[0], &weights = b.in[1], &experts = b.in[2];
  const Array g = b.g();
  InputCotangents found(3);
  if (b.wanted[0]) found[0] = grouped_linear(g, transposed(as_float(weights)), experts);
  if (b.wanted[1]) {
    const std::int64_t count = weights.shape()[0], tokens = x.shape()[0];
    const Array numbers =
        reshape(heddle::apply(Arange{0, 1, count, DType::i32}, {}), {count, 1, 1});
    const Array chosen = numbers == reshape(experts, {1, tokens, 1});
    const Array apart = where(chosen, expand_dims(g, 0), scalar(0, g.dtype()));
    found[1] = astype(matmul(transposed(apart), x), weights.dtype());
  }
  return found;
}

InputCotangents vjp_rule(const GatherMatmul&, const Backward& b) {
  const ArraysFunction parts = [](const std::vector<Array>& in) {
    return std::vector<Array>{matmul(take(in[0], in[2], 0), take(in[1], in[3], 0))};
  };
  return vjp_of_parts(parts, b);
}

/// As products of all of a and b, in which what lies outside of a segment counts as 0.
InputCotangents vjp_rule(const SegmentedMatmul&, const Backward& b) {
  const ArraysFunction parts = [](const std::vector<Array>& in) {
    const Array &a = in[0], &segments = in[2];
    const Array k = heddle::apply(Arange{0, 1, a.shape(1), DType::u32}, {});
    const auto bound = [&](int which) { return expand_dims(take(segments, which, -1), -1); };
    const Array inside = logical_and(k >= bound(0), k < bound(1));
    const Array kept = where(expand_dims(inside, -2), a, zeros_like(a));
    return std::vector<Array>{matmul(kept, in[1])};
  };
  return vjp_of_parts(parts, b);
}

InputCotangents vjp_rule(const GroupMatmul& op, const Backward& b) {
  const ArraysFunction parts = [&](const std::vector<Array>& in) {
    const std::size_t matrices = op.format.mode == QuantMode::affine ? 3 : 2;
    Array x = astype(in[0], DType::f32);
    Array w =
        heddle::apply(GroupDequantize{op.format, DType::f32},
                      {in.begin() + 1, in.begin() + 1 + static_cast<std::ptrdiff_t>(matrices)});
    if (op.gathers) {
      x = take(x, in[1 + matrices], 0);
      w = take(w, in[2 + matrices], 0);
    }
    return std::vector<Array>{astype(matmul(x, op.transpose ? transposed(w) : w), in[0].dtype())};
  };
  return vjp_of_parts(parts, b);
}

/// By scales and biases: codes are whole numbers, and have no derivative.
InputCotangents vjp_rule(const GroupDequantize& op, const Backward& b) {
  InputCotangents found(b.in.size());
  if (op.format.mode != QuantMode::affine) return found;
  const Array &scales = b.in[1], &biases = b.in[2];
  const Array codes = heddle::apply(GroupDequantize{op.format, DType::f32},
                                    {b.in[0], ones_like(scales), zeros_like(biases)});
  Shape by_group = scales.shape();
  by_group.push_back(op.format.group_size);
  const Array g = reshape(astype(b.g(), DType::f32), by_group);
  found[1] = astype(sum(g * reshape(codes, by_group), -1), scales.dtype());
  found[2] = astype(sum(g, -1), biases.dtype());
  return found;
}

}  // namespace heddle
