// Over spatial axes: convolution, windows, pooling, resizing.
#include <limits>

#include "array/ops_common.h"

namespace heddle {

namespace {

std::size_t spatial_axes(const char* function, const Array& x) {
  require(x.ndim() >= 3 && x.ndim() <= 5, ErrorCode::invalid_argument,
          "{}: {} is not [N, spatial..., C] with 1 to 3 spatial axes", function, x.spec());
  return x.ndim() - 2;
}

/// One entry for each axis: `missing` where none is given, and one for all.
Dims for_axes(const Dims& given, std::size_t axes, std::int64_t missing) {
  if (given.empty()) return Dims(axes, missing);
  return given.size() == 1 ? Dims(axes, given[0]) : given;
}

Dims dims_of(int value) {
  return {value};
}
Dims dims_of(const std::pair<int, int>& values) {
  return {values.first, values.second};
}
Dims dims_of(const std::tuple<int, int, int>& values) {
  return {std::get<0>(values), std::get<1>(values), std::get<2>(values)};
}

void check_rank(const char* function, const Array& input, std::size_t axes) {
  require(input.ndim() == axes + 2, ErrorCode::invalid_argument,
          "{}: the input is {}; it must have {} dimensions, channels last", function, input.spec(),
          axes + 2);
}

Array convolve(const Array& input, const Array& weight, const Conv& op) {
  require(!is_block(input.dtype()) && !is_block(weight.dtype()), ErrorCode::invalid_argument,
          "{} and {}: cast block types to a plain type first", input.spec(), weight.spec());
  const DType dtype = promote_types(input.dtype(), weight.dtype());
  return heddle::apply(op, {astype(input, dtype), astype(weight, dtype)});
}

template <class Entries>
Array conv(const char* function, const Arg& input, const Arg& weight, const Entries& stride,
           const Entries& padding, const Entries& dilation, int groups) {
  return within(function, input, [&]() -> Array {
    const Dims ends = dims_of(padding);
    check_rank(function, input, ends.size());
    const Windows windows{dims_of(stride), ends, ends, dims_of(dilation), Dims(ends.size(), 1)};
    return convolve(input, weight, {windows, groups, false});
  });
}

template <class Entries>
Array conv_transpose(const char* function, const Arg& input, const Arg& weight,
                     const Entries& stride, const Entries& padding, const Entries& dilation,
                     const Entries& output_padding, int groups) {
  return within(function, input, [&]() -> Array {
    const Dims ends = dims_of(padding), more = dims_of(output_padding);
    const Dims steps = dims_of(dilation);
    check_rank(function, input, ends.size());
    require(weight.ndim() == input.ndim(), ErrorCode::invalid_argument,
            "{}: the weights are {}; for {} they must have {} dimensions", function, weight.spec(),
            input.spec(), input.ndim());
    Windows windows{Dims(ends.size(), 1), {}, {}, steps, dims_of(stride)};
    for (std::size_t i = 0; i < ends.size(); ++i) {
      require(more[i] >= 0, ErrorCode::invalid_argument, "{}: output padding {} is negative",
              function, more);
      std::int64_t reach;
      const bool overflow = __builtin_mul_overflow(weight.shape()[i + 1] - 1, steps[i], &reach);
      require(!overflow && reach <= std::numeric_limits<std::int32_t>::max(),
              ErrorCode::invalid_argument, "{}: dilations {} of {} reach too far", function, steps,
              weight.spec());
      windows.padding_low.push_back(reach - ends[i]);
      windows.padding_high.push_back(reach - ends[i] + more[i]);
    }
    return convolve(input, weight, {windows, groups, true});
  });
}

}  // namespace

Array conv_general(const Arg& input, const Arg& weight, const Dims& stride, const Dims& padding_lo,
                   const Dims& padding_hi, const Dims& kernel_dilation, const Dims& input_dilation,
                   int groups, bool flip) {
  return within("conv_general", input, [&]() -> Array {
    const std::size_t axes = spatial_axes("conv_general", input);
    const Windows windows{for_axes(stride, axes, 1), for_axes(padding_lo, axes, 0),
                          for_axes(padding_hi, axes, 0), for_axes(kernel_dilation, axes, 1),
                          for_axes(input_dilation, axes, 1)};
    return convolve(input, weight, {windows, groups, flip});
  });
}

Array conv_general(const Arg& input, const Arg& weight, const Dims& stride, const Dims& padding,
                   const Dims& kernel_dilation, const Dims& input_dilation, int groups, bool flip) {
  return conv_general(input, weight, stride, padding, padding, kernel_dilation, input_dilation,
                      groups, flip);
}

Array conv1d(const Arg& input, const Arg& weight, int stride, int padding, int dilation,
             int groups) {
  return conv("conv1d", input, weight, stride, padding, dilation, groups);
}

Array conv2d(const Arg& input, const Arg& weight, const std::pair<int, int>& stride,
             const std::pair<int, int>& padding, const std::pair<int, int>& dilation, int groups) {
  return conv("conv2d", input, weight, stride, padding, dilation, groups);
}

Array conv3d(const Arg& input, const Arg& weight, const std::tuple<int, int, int>& stride,
             const std::tuple<int, int, int>& padding, const std::tuple<int, int, int>& dilation,
             int groups) {
  return conv("conv3d", input, weight, stride, padding, dilation, groups);
}

Array conv_transpose1d(const Arg& input, const Arg& weight, int stride, int padding, int dilation,
                       int output_padding, int groups) {
  return conv_transpose("conv_transpose1d", input, weight, stride, padding, dilation,
                        output_padding, groups);
}

Array conv_transpose2d(const Arg& input, const Arg& weight, const std::pair<int, int>& stride,
                       const std::pair<int, int>& padding, const std::pair<int, int>& dilation,
                       const std::pair<int, int>& output_padding, int groups) {
  return conv_transpose("conv_transpose2d", input, weight, stride, padding, dilation,
                        output_padding, groups);
}

Array conv_transpose3d(const Arg& input, const Arg& weight, const std::tuple<int, int, int>& stride,
                       const std::tuple<int, int, int>& padding,
                       const std::tuple<int, int, int>& dilation,
                       const std::tuple<int, int, int>& output_padding, int groups) {
  return conv_transpose("conv_transpose3d", input, weight, stride, padding, dilation,
                        output_padding, groups);
}

Array im2col(const Arg& a, const Dims& window, const Dims& stride, const Dims& padding,
             const Dims& dilation) {
  return within("im2col", a, [&]() -> Array {
    const std::size_t axes = spatial_axes("im2col", a);
    const Dims ends = for_axes(padding, axes, 0);
    const Windows windows{for_axes(stride, axes, 1), ends, ends, for_axes(dilation, axes, 1),
                          Dims(axes, 1)};
    return heddle::apply(Im2col{for_axes(window, axes, 1), windows}, {a});
  });
}

namespace {

Array pool(const char* function, PoolKind kind, const Array& a, const Dims& window,
           const Dims& stride, const Dims& padding, bool count_padding) {
  const std::size_t axes = spatial_axes(function, a);
  const Dims extents = for_axes(window, axes, 1);
  const Dims ends = for_axes(padding, axes, 0);
  const Dims steps = stride.empty() ? extents : for_axes(stride, axes, 1);
  return heddle::apply(Pool{kind, PoolWindows{extents, steps, ends, ends}, count_padding}, {a});
}

}  // namespace

Array max_pool(const Arg& a, const Dims& window, const Dims& stride, const Dims& padding) {
  return within("max_pool", a, [&]() -> Array {
    return pool("max_pool", PoolKind::max, a, window, stride, padding, true);
  });
}

Array mean_pool(const Arg& a, const Dims& window, const Dims& stride, const Dims& padding,
                bool count_padding) {
  return within("mean_pool", a, [&]() -> Array {
    return pool("mean_pool", PoolKind::mean, astype(a, at_least_float(a.dtype())), window, stride,
                padding, count_padding);
  });
}

Array resize(const Arg& a, const Dims& size, ResizeKind kind, bool align_corners) {
  return within("resize", a, [&]() -> Array {
    const std::size_t axes = spatial_axes("resize", a);
    const Array x = kind == ResizeKind::linear ? astype(a, at_least_float(a.dtype())) : a.array();
    return heddle::apply(Resize{kind, for_axes(size, axes, 1), align_corners}, {x});
  });
}

}  // namespace heddle
