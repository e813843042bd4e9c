// Views and copies backwards: the cotangent looked at the other way round.
#include <numeric>

#include "transform/custom.h"
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

Array put_back(const Array& into, const Array& part, const Dims& start, const Dims& stop,
               const Dims& step) {
  return heddle::apply(SliceUpdate{start, stop, step}, {into, part});
}

/// Which element of the flattened operand each element of a strided view is.
Array strided_places(const AsStrided& op, const Array& of) {
  const Array all = heddle::apply(Arange{0, 1, of.size(), DType::i64}, {});
  return heddle::apply(op, {all});
}

}  // namespace

InputCotangents vjp_rule(const Reshape&, const Backward& b) {
  return {reshape(b.g(), b.in[0].shape())};
}

InputCotangents vjp_rule(const Transpose& op, const Backward& b) {
  return {heddle::apply(Transpose{inverse_order(op.axes)}, {b.g()})};
}

InputCotangents vjp_rule(const Slice& op, const Backward& b) {
  return {put_back(zeros_like(b.in[0]), b.g(), op.start, op.stop, op.step)};
}

InputCotangents vjp_rule(const Broadcast&, const Backward& b) {
  return {astype(sum_to(widened(b.g()), b.in[0].shape()), b.in[0].dtype())};
}

InputCotangents vjp_rule(const Squeeze&, const Backward& b) {
  return {reshape(b.g(), b.in[0].shape())};
}

InputCotangents vjp_rule(const ExpandDims&, const Backward& b) {
  return {reshape(b.g(), b.in[0].shape())};
}

InputCotangents vjp_rule(const AsStrided& op, const Backward& b) {
  const Array& x = b.in[0];
  const Array places = reshape(strided_places(op, x), {b.out[0].size()});
  const Array flat =
      scatter_add_axis(zeros({x.size()}, x.dtype()), places, reshape(b.g(), {b.out[0].size()}), 0);
  return {reshape(flat, x.shape())};
}

InputCotangents vjp_rule(const Contiguous&, const Backward& b) {
  return {b.g()};
}

InputCotangents vjp_rule(const Cast&, const Backward& b) {
  if (!is_differentiable(b.out[0].dtype())) return {std::nullopt};
  const bool loses_imaginary =
      b.out[0].dtype() != DType::complex64 || b.in[0].dtype() == DType::complex64;
  const Array g = b.g();
  return {loses_imaginary ? astype(g, b.in[0].dtype())
                          : astype(heddle::apply(Unary{UnaryKind::real}, {g}), b.in[0].dtype())};
}

InputCotangents vjp_rule(const Concatenate& op, const Backward& b) {
  const auto axis = static_cast<std::size_t>(op.axis);
  InputCotangents found;
  std::int64_t from = 0;
  for (const Array& part : b.in) {
    Dims start(part.ndim(), 0), stop = part.shape();
    start[axis] = from;
    from += part.shape()[axis];
    stop[axis] = from;
    found.push_back(slice(b.g(), start, stop));
  }
  return found;
}

InputCotangents vjp_rule(const Depends& op, const Backward& b) {
  const auto values = static_cast<std::size_t>(op.values);
  InputCotangents found(b.in.size());
  if (op.rules && op.rules->stops) return found;
  if (!op.rules || !op.rules->custom.vjp) {
    for (std::size_t i = 0; i < values; ++i) found[i] = b.cotangents[i];
    return found;
  }
  const std::vector<Array> arguments(b.in.begin() + op.values, b.in.end());
  std::vector<Array> cotangents;
  for (std::size_t i = 0; i < values; ++i) cotangents.push_back(b.g(i));
  const std::vector<Array> own =
      op.rules->custom.vjp(arguments, cotangents, {b.out.begin(), b.out.end()});
  check_like("custom_function: vjp", "cotangent", own, arguments, "argument");
  for (std::size_t i = 0; i < own.size(); ++i) found[values + i] = own[i];
  return found;
}

}  // namespace heddle
