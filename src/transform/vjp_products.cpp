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
  const std::int64_t width = a.shape().back();
  return reshape(a, {width == 0 ? 0 : a.size() / width, width});
}

Array as_float(const Array& weight) {
  return is_block(weight.dtype()) ? dequantize(weight) : astype(weight, DType::f32);
}

}  // namespace

InputCotangents vjp_rule(const Matmul&, const Backward& b) {
  const Array g = b.g();
  return {sum_to(matmul(g, transposed(conjugated(b.in[1]))), b.in[0].shape()),
          sum_to(matmul(transposed(conjugated(b.in[0])), g), b.in[1].shape())};
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

}  // namespace heddle
