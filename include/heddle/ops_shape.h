// Functions that make arrays, change their shape and move elements. Negative axes count from the
// end.
#pragma once

#include <concepts>
#include <cstdint>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "heddle/array.h"

namespace heddle {

// ---- Creation
/// start, start + step, ... before `stop`. Without a dtype, numbers with a fraction give f32, whole
/// ones i32, which must hold them.
Array arange(double start, double stop, double step, DType dtype,
             std::source_location where = std::source_location::current());
Array arange(double start, double stop, double step,
             std::source_location where = std::source_location::current());
Array arange(double start, double stop, DType dtype,
             std::source_location where = std::source_location::current());
Array arange(double start, double stop,
             std::source_location where = std::source_location::current());
Array arange(double stop, DType dtype,
             std::source_location where = std::source_location::current());
Array arange(double stop, std::source_location where = std::source_location::current());
template <std::integral A, std::integral B, std::integral C>
Array arange(A start, B stop, C step,
             std::source_location where = std::source_location::current()) {
  return arange(static_cast<double>(start), static_cast<double>(stop), static_cast<double>(step),
                DType::i32, where);
}
template <std::integral A, std::integral B>
Array arange(A start, B stop, std::source_location where = std::source_location::current()) {
  return arange(start, stop, 1, where);
}
template <std::integral A>
Array arange(A stop, std::source_location where = std::source_location::current()) {
  return arange(0, stop, 1, where);
}
/// `num` numbers from `start` to `stop`, both included, at equal distances.
Array linspace(double start, double stop, int num = 50, DType dtype = DType::f32,
               std::source_location where = std::source_location::current());
Array full(const Shape& shape, const Arg& value);
Array full(const Shape& shape, const Arg& value, DType dtype);
/// `value` in a's shape, and in a's dtype if no other is given.
Array full_like(const Arg& a, const Arg& value);
Array full_like(const Arg& a, const Arg& value, DType dtype);
Array zeros(const Shape& shape, DType dtype = DType::f32,
            std::source_location where = std::source_location::current());
Array ones(const Shape& shape, DType dtype = DType::f32,
           std::source_location where = std::source_location::current());
Array zeros_like(const Arg& a);
Array ones_like(const Arg& a);
/// [n, m] (or [n, n]) with ones on the diagonal `k`, which lies that far above the main one.
Array eye(int n, int m, int k = 0, DType dtype = DType::f32,
          std::source_location where = std::source_location::current());
Array eye(int n, DType dtype = DType::f32,
          std::source_location where = std::source_location::current());
Array identity(int n, DType dtype = DType::f32,
               std::source_location where = std::source_location::current());
/// [n, m] (or [n, n]) with ones on the diagonal `k` and below it.
Array tri(int n, int m, int k = 0, DType dtype = DType::f32,
          std::source_location where = std::source_location::current());
Array tri(int n, DType dtype = DType::f32,
          std::source_location where = std::source_location::current());
/// Matrices with zeros above the diagonal `k`, or below it.
Array tril(const Arg& a, int k = 0);
Array triu(const Arg& a, int k = 0);

// ---- Shape
/// One extent may be -1.
Array reshape(const Arg& a, const Shape& shape);
Array flatten(const Arg& a, int start_axis = 0, int end_axis = -1);
/// `axis` split into axes of `shape`, one extent of which may be -1.
Array unflatten(const Arg& a, int axis, const Shape& shape);
Array transpose(const Arg& a);
Array transpose(const Arg& a, const Dims& axes);
Array swapaxes(const Arg& a, int axis1, int axis2);
Array moveaxis(const Arg& a, int source, int destination);
Array moveaxis(const Arg& a, const Dims& source, const Dims& destination);
Array squeeze(const Arg& a);
Array squeeze(const Arg& a, const Dims& axes);
Array squeeze(const Arg& a, int axis);
Array expand_dims(const Arg& a, const Dims& axes);
Array expand_dims(const Arg& a, int axis);
/// At least so many axes: [n] becomes [1, n] and [1, n, 1], [m, n] becomes [m, n, 1].
Array atleast_1d(const Arg& a);
Array atleast_2d(const Arg& a);
Array atleast_3d(const Arg& a);
std::vector<Array> atleast_1d(const std::vector<Array>& arrays,
                              std::source_location where = std::source_location::current());
std::vector<Array> atleast_2d(const std::vector<Array>& arrays,
                              std::source_location where = std::source_location::current());
std::vector<Array> atleast_3d(const std::vector<Array>& arrays,
                              std::source_location where = std::source_location::current());
Array broadcast_to(const Arg& a, const Shape& shape);
std::vector<Array> broadcast_arrays(const std::vector<Array>& inputs,
                                    std::source_location where = std::source_location::current());
/// The coordinates of a grid, one array for each axis of it, from vectors (or scalars) of
/// coordinates; with `sparse`, arrays that broadcast to them. The first two axes are swapped with
/// `indexing` "xy", but not with "ij".
std::vector<Array> meshgrid(const std::vector<Array>& arrays, bool sparse = false,
                            const std::string& indexing = "xy",
                            std::source_location where = std::source_location::current());
/// The product of a's extents along `axes` (or, `inverted`, one over it), as a scalar.
Array number_of_elements(const Arg& a, const Dims& axes, bool inverted, DType dtype = DType::i32);

// ---- Parts
/// a[start:stop:strides]; negative bounds count from the end and are clamped, as in Python. A
/// negative stride walks backwards; a stop below -extent then includes element 0.
Array slice(const Arg& a, const Dims& start, const Dims& stop);
Array slice(const Arg& a, const Dims& start, const Dims& stop, const Dims& strides);
/// Element (i, j, ...) is element offset + i*strides[0] + j*strides[1] + ... of `a`, flattened; all
/// must be there. Strides may be negative or 0.
Array as_strided(const Arg& a, const Shape& shape, const Dims& strides, std::int64_t offset);
std::vector<Array> split(const Arg& a, int num_splits, int axis = 0);
/// a[:indices[0]], a[indices[0]:indices[1]], ... along `axis`.
std::vector<Array> split(const Arg& a, const std::vector<std::int64_t>& indices, int axis = 0);
/// One array for each element along `axis`.
std::vector<Array> unstack(const Arg& a, int axis = 0);
/// Of each matrix that axis1 and axis2 span, the diagonal that lies `offset` above the main one, as
/// the last axis.
Array diagonal(const Arg& a, int offset = 0, int axis1 = 0, int axis2 = 1);
/// The diagonal `k` of a matrix, or of a vector the matrix with that diagonal and zeros.
Array diag(const Arg& a, int k = 0);
/// The sum of `diagonal`.
Array trace(const Arg& a, int offset, int axis1, int axis2, DType dtype);
Array trace(const Arg& a, int offset = 0, int axis1 = 0, int axis2 = 1);

// ---- Movement
Array contiguous(const Arg& a);
/// Where column-major order would do too; it is row-major all the same.
Array contiguous(const Arg& a, bool allow_col_major);
Array copy(const Arg& a);
/// `inputs`, which come into being only after all of `dependencies` have: what those needed and
/// nobody holds is free again before what reads the results takes memory. Errors of dependencies
/// are errors of the results, but for those of work that is still in flight on a device. In a
/// graph, whose order is that of building, just `inputs`.
std::vector<Array> depends(const std::vector<Array>& inputs, const std::vector<Array>& dependencies,
                           std::source_location where = std::source_location::current());
Array concatenate(const std::vector<Array>& arrays, int axis = 0,
                  std::source_location where = std::source_location::current());
Array stack(const std::vector<Array>& arrays, int axis = 0,
            std::source_location where = std::source_location::current());
/// Each element `repeats` times; without an axis, of the flattened array.
Array repeat(const Arg& a, int repeats);
Array repeat(const Arg& a, int repeats, int axis);
/// The whole repeated reps[i] times along axis i, where the last of `reps` is for the last axis.
Array tile(const Arg& a, const Dims& reps);
/// Elements moved `shift` further along axes, those that leave at one end coming in at the other;
/// without axes, in the flattened array. Several shifts are added up, or go with one axis each.
Array roll(const Arg& a, int shift);
Array roll(const Arg& a, const Dims& shift);
Array roll(const Arg& a, int shift, int axis);
Array roll(const Arg& a, int shift, const Dims& axes);
Array roll(const Arg& a, const Dims& shift, int axis);
Array roll(const Arg& a, const Dims& shift, const Dims& axes);
/// `low_pad_size[i]` elements before and `high_pad_size[i]` behind on axis axes[i]; `mode` is
/// "constant" (pad_value, cast to a's dtype) or "edge" (the nearest element).
Array pad(const Arg& a, const Dims& axes, const Shape& low_pad_size, const Shape& high_pad_size,
          const Arg& pad_value = Array(0), const std::string& mode = "constant");
/// (before, behind) for each axis.
Array pad(const Arg& a, const std::vector<std::pair<int, int>>& pad_width,
          const Arg& pad_value = Array(0), const std::string& mode = "constant");
/// The same on every axis.
Array pad(const Arg& a, const std::pair<int, int>& pad_width, const Arg& pad_value = Array(0),
          const std::string& mode = "constant");
Array pad(const Arg& a, int pad_width, const Arg& pad_value = Array(0),
          const std::string& mode = "constant");
/// Axes backwards: all of them, or those named.
Array flip(const Arg& a);
Array flip(const Arg& a, int axis);
Array flip(const Arg& a, const Dims& axes);

// ---- Types
Array astype(const Arg& a, DType dtype);
/// The bytes of `a` as another dtype; the last axis scales by the ratio of item sizes, and must
/// come out whole. A scalar only becomes what is as large. Neither to nor from block types; only
/// bool becomes bool.
Array view(const Arg& a, DType dtype);

}  // namespace heddle
