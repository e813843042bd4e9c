// Windows over spatial axes: convolution, im2col, pooling, resizing.
#include <cmath>
#include <limits>
#include <optional>

#include "support/reference.h"

namespace heddle::test {

namespace {

/// [N, spatial..., C] apart.
Shape spatial_of(const Shape& shape) {
  return Shape(std::span(shape.begin() + 1, shape.size() - 2));
}
Dims joined(std::int64_t first, const Dims& spatial, std::int64_t last) {
  Dims index{first};
  for (const std::int64_t i : spatial) index.push_back(i);
  index.push_back(last);
  return index;
}

/// Where tap `tap` of the window of output `o` reads along each axis; nothing if it reads a zero.
std::optional<Dims> read_at(const Windows& w, const Shape& extents, const Dims& o,
                            const Dims& tap) {
  Dims at;
  for (std::size_t i = 0; i < o.size(); ++i) {
    const std::int64_t p = o[i] * w.stride[i] + tap[i] * w.kernel_dilation[i] - w.padding_low[i];
    if (p < 0 || p % w.input_dilation[i] != 0) return std::nullopt;
    if (p / w.input_dilation[i] >= extents[i]) return std::nullopt;
    at.push_back(p / w.input_dilation[i]);
  }
  return at;
}

Values conv(const Conv& op, const Values& x, const Values& w) {
  const TensorSpec specs[] = {x.spec, w.spec};
  Values out(infer(op, specs)[0]);
  const Shape taps = spatial_of(w.spec.shape), extents = spatial_of(x.spec.shape);
  const std::int64_t depth = w.spec.shape.back(), per_group = w.spec.shape[0] / op.groups;
  std::size_t next = 0;
  for_each_index(out.spec.shape, [&](const Dims& index) {
    const Dims o = spatial_of(index);
    Number sum = 0;
    for_each_index(taps, [&](const Dims& tap) {
      const std::optional<Dims> at = read_at(op.windows, extents, o, tap);
      if (!at) return;
      Dims weight_tap = tap;
      for (std::size_t i = 0; op.flip && i < tap.size(); ++i) {
        weight_tap[i] = taps[i] - 1 - tap[i];
      }
      for (std::int64_t c = 0; c < depth; ++c) {
        const std::int64_t channel = index.back() / per_group * depth + c;
        sum += x.real[flat_index(x.spec.shape, joined(index[0], *at, channel))] *
               w.real[flat_index(w.spec.shape, joined(index.back(), weight_tap, c))];
      }
    });
    out.real[next++] = sum;
  });
  return out;
}

Values im2col(const Im2col& op, const Values& x) {
  Values out(infer(op, std::span(&x.spec, 1))[0]);
  const Shape extents = spatial_of(x.spec.shape);
  const std::int64_t channels = x.spec.shape.back();
  Shape positions = out.spec.shape;
  positions[positions.size() - 1] = 1;
  std::size_t next = 0;
  for_each_index(positions, [&](const Dims& index) {
    for_each_index(op.window, [&](const Dims& tap) {
      const std::optional<Dims> at = read_at(op.windows, extents, spatial_of(index), tap);
      for (std::int64_t c = 0; c < channels; ++c, ++next) {
        if (!at) continue;
        const std::size_t from = flat_index(x.spec.shape, joined(index[0], *at, c));
        out.real[next] = x.real[from];
        if (!out.imaginary.empty()) out.imaginary[next] = x.imaginary[from];
      }
    });
  });
  return out;
}

Values pool(const Pool& op, const Values& x) {
  Values out(infer(op, std::span(&x.spec, 1))[0]);
  const Shape extents = spatial_of(x.spec.shape);
  const Dims ones(extents.size(), 1);
  const auto& [window, stride, low, high] = *op.windows;
  const Windows windows{stride, low, high, ones, ones};
  std::size_t next = 0;
  for_each_index(out.spec.shape, [&](const Dims& index) {
    Number sum = 0, most = 0;
    std::int64_t held = 0;
    for_each_index(window, [&](const Dims& tap) {
      const std::optional<Dims> at = read_at(windows, extents, spatial_of(index), tap);
      if (!at) return;
      const Number v = x.real[flat_index(x.spec.shape, joined(index[0], *at, index.back()))];
      if (held == 0 || v > most || std::isnan(v)) most = std::isnan(most) && held > 0 ? most : v;
      sum += v;
      ++held;
    });
    const std::int64_t divisor = op.count_padding ? elements(window) : held;
    out.real[next++] = op.kind == PoolKind::max ? most : sum / static_cast<Number>(divisor);
  });
  return out;
}

/// Where output `o` of `size` stands along an axis of `extent` elements.
Number place(const Resize& op, std::int64_t o, std::int64_t extent, std::int64_t size) {
  const auto at = static_cast<Number>(o), from = static_cast<Number>(extent),
             to = static_cast<Number>(size);
  if (op.align_corners) return size == 1 ? Number{0} : at * (from - 1) / (to - 1);
  const Number s = (at + Number{0.5}) * from / to - Number{0.5};
  return std::fmin(std::fmax(s, 0), from - 1);
}

Values resize(const Resize& op, const Values& x) {
  Values out(infer(op, std::span(&x.spec, 1))[0]);
  const Shape extents = spatial_of(x.spec.shape);
  std::size_t next = 0;
  for_each_index(out.spec.shape, [&](const Dims& index) {
    const Dims o = spatial_of(index);
    const auto element = [&](const Dims& at) {
      return flat_index(x.spec.shape, joined(index[0], at, index.back()));
    };
    // A little is added so that a place that is whole, or halfway, is not missed by rounding.
    constexpr Number kTiny = 1e-12L;
    Dims low(o.size(), 0), nearest = low;
    std::vector<Number> fraction(o.size());
    for (std::size_t i = 0; i < o.size(); ++i) {
      const Number s = place(op, o[i], extents[i], op.size[i]);
      low[i] = static_cast<std::int64_t>(std::floor(s + kTiny));
      fraction[i] = s - static_cast<Number>(low[i]);
      nearest[i] = static_cast<std::int64_t>(std::floor(s + Number{0.5} + kTiny));
    }
    if (op.kind == ResizeKind::nearest) {
      out.real[next] = x.real[element(nearest)];
      if (!out.imaginary.empty()) out.imaginary[next] = x.imaginary[element(nearest)];
      ++next;
      return;
    }
    Number sum = 0;
    for_each_index(Shape(o.size(), 2), [&](const Dims& corner) {
      Number weight = 1;
      Dims at = low;
      for (std::size_t i = 0; i < at.size(); ++i) {
        at[i] = std::min(low[i] + corner[i], extents[i] - 1);
        weight *= corner[i] == 1 ? fraction[i] : 1 - fraction[i];
      }
      sum += weight * x.real[element(at)];
    });
    out.real[next++] = sum;
  });
  return out;
}

}  // namespace

std::vector<Values> reference_spatial(const Op& op, const std::vector<Values>& in) {
  if (const auto* o = std::get_if<Conv>(&op)) return {conv(*o, in[0], in[1])};
  if (const auto* o = std::get_if<Im2col>(&op)) return {im2col(*o, in[0])};
  if (const auto* o = std::get_if<Pool>(&op)) return {pool(*o, in[0])};
  if (const auto* o = std::get_if<Resize>(&op)) return {resize(*o, in[0])};
  return {};
}

}  // namespace heddle::test
