// Slices at indices; sorting and searching.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/reference.h"

namespace heddle::test {

namespace {

using Complex = std::complex<Number>;

Complex value(const Values& x, std::size_t i) {
  return {x.real[i], x.imaginary.empty() ? 0 : x.imaginary[i]};
}
void set(Values& x, std::size_t i, Complex v) {
  x.real[i] = v.real();
  if (!x.imaginary.empty()) x.imaginary[i] = v.imag();
}

std::vector<TensorSpec> specs_of(const std::vector<Values>& values) {
  std::vector<TensorSpec> specs;
  for (const Values& v : values) specs.push_back(v.spec);
  return specs;
}

// ---- Slices

/// Which element of x the element `within` of the slice at indices number `at` is.
std::size_t element_of_slice(const std::vector<Values>& in, const Dims& axes, std::size_t at,
                             Dims within) {
  const Shape& shape = in[0].spec.shape;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    Number index = in[1 + a].real.at(at);
    if (index < 0) index += static_cast<Number>(shape[axes[a]]);
    within[axes[a]] += static_cast<std::int64_t>(index);
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (within[i] < 0 || within[i] >= shape[i]) throw std::out_of_range("slice");
  }
  return flat_index(shape, within);
}

Values gather(const Gather& op, const std::vector<Values>& in) {
  Values out(infer(op, specs_of(in))[0]);
  const std::size_t slices = op.axes.empty() ? 1 : in[1].real.size();
  std::size_t next = 0;
  for (std::size_t at = 0; at < slices; ++at) {
    for_each_index(op.slice_sizes, [&](const Dims& within) {
      set(out, next++, value(in[0], element_of_slice(in, op.axes, at, within)));
    });
  }
  return out;
}

Values scatter(const Scatter& op, const std::vector<Values>& in) {
  Values out = in[0];
  const Values& updates = in.back();
  const std::size_t rank = out.spec.shape.size(), all = updates.spec.shape.size();
  Shape slice;
  for (std::size_t i = all - rank; i < all; ++i) slice.push_back(updates.spec.shape[i]);
  const std::size_t slices = op.axes.empty() ? 1 : in[1].real.size();
  std::size_t next = 0;
  for (std::size_t at = 0; at < slices; ++at) {
    for_each_index(slice, [&](const Dims& within) {
      const std::size_t to = element_of_slice(in, op.axes, at, within);
      const Complex update = value(updates, next++);
      const bool replaces = op.kind == ScatterKind::none;
      set(out, to,
          replaces
              ? update
              : reference_combine(combining_kind(op.kind), out.spec.dtype, value(out, to), update));
    });
  }
  return out;
}

// ---- Order

/// 0 for numbers; what has a NaN stands behind.
int nan_class(Complex v) {
  return (std::isnan(v.imag()) ? 1 : 0) + (std::isnan(v.real()) ? 2 : 0);
}

bool stands_before(Complex a, Complex b) {
  if (nan_class(a) != nan_class(b)) return nan_class(a) < nan_class(b);
  if (!std::isnan(a.real()) && a.real() != b.real()) return a.real() < b.real();
  return !std::isnan(a.imag()) && a.imag() < b.imag();
}

Values sort(const Sort& op, const Values& x) {
  Values out(infer(op, std::span(&x.spec, 1))[0]);
  const auto length = static_cast<std::size_t>(x.spec.shape.back());
  std::vector<std::size_t> order(length);
  for (std::size_t first = 0; first < x.real.size(); first += length) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
      return stands_before(value(x, first + i), value(x, first + j));
    });
    for (std::size_t i = 0; i < length; ++i) {
      if (op.kind == SortKind::argsort) {
        out.real[first + i] = static_cast<Number>(order[i]);
      } else {
        set(out, first + i, value(x, first + order[i]));
      }
    }
  }
  return out;
}

Values search_sorted(const SearchSorted& op, const Values& sorted, const Values& values) {
  Values out({DType::u32, values.spec.shape});
  for (std::size_t i = 0; i < values.real.size(); ++i) {
    const Complex v = value(values, i);
    Number before = 0;
    for (std::size_t j = 0; j < sorted.real.size(); ++j) {
      const Complex s = value(sorted, j);
      before += stands_before(s, v) || (op.right && !stands_before(v, s)) ? 1 : 0;
    }
    out.real[i] = before;
  }
  return out;
}

}  // namespace

std::vector<Values> reference_order(const Op& op, const std::vector<Values>& in) {
  if (const auto* o = std::get_if<Gather>(&op)) return {gather(*o, in)};
  if (const auto* o = std::get_if<Scatter>(&op)) return {scatter(*o, in)};
  if (const auto* o = std::get_if<Sort>(&op)) return {sort(*o, in[0])};
  if (const auto* o = std::get_if<SearchSorted>(&op)) return {search_sorted(*o, in[0], in[1])};
  return {};
}

}  // namespace heddle::test
