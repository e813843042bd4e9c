// Functions that read and write by indices.
//
// Indices are integers of any dtype, in [-extent, extent) of the axis they are for; negative ones
// count from the end. Others fail when evaluated. Several updates of one element are applied in the
// order of the indices; the last stays where they replace. What updates works in the memory of its
// first argument when that was the only handle.
#pragma once

#include <concepts>
#include <vector>

#include "heddle/array.h"

namespace heddle {

/// Elements of `a` along `axis` at `indices`, whose axes take the place of `axis`; or of all
/// elements in row-major order. Rows of block-quantised tables (axis 0) come out as f32. A number
/// in place of indices must be within the extent at the call, and drops the axis.
Array take(const Arg& a, const Arg& indices, int axis);
Array take(const Arg& a, int index, int axis);
Array take(const Arg& a, const Arg& indices);
Array take(const Arg& a, int index);

// ---- Chosen along an axis. `indices` has a's rank and broadcasts against a's other axes.
Array take_along_axis(const Arg& a, const Arg& indices, int axis);
/// `a` with values, which are cast to a's dtype and broadcast to the indices' shape, put or added
/// at the indices.
Array put_along_axis(const Arg& a, const Arg& indices, const Arg& values, int axis);
Array scatter_add_axis(const Arg& a, const Arg& indices, const Arg& values, int axis);
/// The same for every kind of ScatterAxis.
Array scatter_axis(const Arg& a, const Arg& indices, const Arg& values, int axis, ScatterKind kind);

// ---- Slices at indices. There is an array of indices for each of `axes`; they broadcast against
// each other to some [I...].
/// [I..., slice_sizes...]: the slice of `a` of `slice_sizes` (an entry for each axis of `a`) that
/// begins at each index; at 0 on other axes.
Array gather(const Arg& a, const std::vector<Array>& indices, const Dims& axes,
             const Shape& slice_sizes);
Array gather(const Arg& a, const Arg& indices, int axis, const Shape& slice_sizes);
/// `a` with slices replaced by, or combined with, `updates` [I..., slice...], cast to a's dtype. A
/// slice has as many axes as `a`.
Array scatter(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
              const Dims& axes);
Array scatter(const Arg& a, const Arg& indices, const Arg& updates, int axis);
Array scatter_add(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
                  const Dims& axes);
Array scatter_add(const Arg& a, const Arg& indices, const Arg& updates, int axis);
Array scatter_prod(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
                   const Dims& axes);
Array scatter_prod(const Arg& a, const Arg& indices, const Arg& updates, int axis);
Array scatter_max(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
                  const Dims& axes);
Array scatter_max(const Arg& a, const Arg& indices, const Arg& updates, int axis);
Array scatter_min(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
                  const Dims& axes);
Array scatter_min(const Arg& a, const Arg& indices, const Arg& updates, int axis);
/// `a` with the elements where the boolean `mask` is true replaced by those of `src`, cast to a's
/// dtype, in row-major order. The mask has a's leading axes, and holds for all others. `src` is
/// [N, ...], where ... broadcasts to those other axes, or of more axes and read as that; what is
/// too much is left, too few fail when evaluated. With fewer axes or with N = 1 it goes everywhere.
Array masked_scatter(const Arg& a, const Arg& mask, const Arg& src);

// ---- One slice, of stride 1, that begins at `start`: an array of an integer for each of `axes`
// (for one, a scalar will do); at 0 on other axes. Templates, so that lists in braces are bounds.
template <std::same_as<Array> A>
Array slice(const Arg& a, const A& start, const Dims& axes, const Shape& slice_size);
/// `src` with the slice replaced by `update`, which is cast to src's dtype. Where update has fewer
/// axes than src, the slice is all of src's first ones, or one index of those that are in `axes`.
template <std::same_as<Array> A>
Array slice_update(const Arg& src, const Arg& update, const A& start, const Dims& axes);

/// `src` with src[start:stop:strides], as slice_update reads it, combined with `update`.
Array slice_update_add(const Arg& src, const Arg& update, const Dims& start, const Dims& stop);
Array slice_update_add(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                       const Dims& strides);
Array slice_update_prod(const Arg& src, const Arg& update, const Dims& start, const Dims& stop);
Array slice_update_prod(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                        const Dims& strides);
Array slice_update_max(const Arg& src, const Arg& update, const Dims& start, const Dims& stop);
Array slice_update_max(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                       const Dims& strides);
Array slice_update_min(const Arg& src, const Arg& update, const Dims& start, const Dims& stop);
Array slice_update_min(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                       const Dims& strides);

}  // namespace heddle
