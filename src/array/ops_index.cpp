// Choice and replacement by indices.
#include <algorithm>
#include <limits>
#include <optional>

#include "array/ops_common.h"

namespace heddle {

namespace {

bool wraps(DType dtype) {
  return info(dtype).kind == DTypeKind::signed_int;
}

void require_plain(const char* function, const Array& a) {
  require(!is_block(a.dtype()), ErrorCode::invalid_argument,
          "{}: {} is of a block type; cast it to a plain type first", function, a.spec());
}

/// `axes` counted from the front.
Dims normal_axes(const Dims& axes, const Array& a, const char* function) {
  Dims normal;
  for (const std::int64_t axis : axes) {
    const std::size_t at = normalize_axis(axis, a.ndim(), function);
    require(std::ranges::find(normal, static_cast<std::int64_t>(at)) == normal.end(),
            ErrorCode::invalid_argument, "{}: axes {} name one axis twice", function, axes);
    normal.push_back(static_cast<std::int64_t>(at));
  }
  return normal;
}

Array flat(const Array& a) {
  return reshape(a, {a.size()});
}

}  // namespace

// ---- Take

namespace {

Array take_rows(const Array& a, const Array& indices, std::size_t at) {
  require(a.shape()[at] > 0 || indices.size() == 0, ErrorCode::invalid_argument,
          "take: there is nothing along axis {} of {} for indices {}", at, a.spec(),
          indices.spec());
  const DType dtype = is_block(a.dtype()) ? DType::f32 : a.dtype();
  const Array table = at == 0 ? a : moveaxis(a, static_cast<int>(at), 0);
  Array rows = heddle::apply(GatherRows{dtype, wraps(indices.dtype())}, {table, indices});
  if (at == 0) return rows;
  // From [indices..., before..., after...] to [before..., indices..., after...].
  Dims axes;
  for (std::size_t i = 0; i < rows.ndim(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  std::rotate(axes.begin(), axes.begin() + indices.ndim(), axes.begin() + indices.ndim() + at);
  return transpose(rows, axes);
}

std::int64_t wrapped(std::int64_t index, std::int64_t extent, const Array& a) {
  require(-extent <= index && index < extent, ErrorCode::invalid_argument,
          "take: index {} is outside [{}, {}) of {}", index, -extent, extent, a.spec());
  return index < 0 ? index + extent : index;
}

}  // namespace

Array take(const Arg& a, const Arg& indices, int axis) {
  return within("take", a, [&]() -> Array {
    return take_rows(a, indices, normalize_axis(axis, a.ndim(), "take"));
  });
}

Array take(const Arg& a, int index, int axis) {
  return within("take", a, [&]() -> Array {
    const std::size_t at = normalize_axis(axis, a.ndim(), "take");
    if (is_block(a.dtype())) return take_rows(a, Array(index), at);
    Dims start(a.ndim(), 0), stop = a.shape();
    start[at] = wrapped(index, a.shape()[at], a);
    stop[at] = start[at] + 1;
    return squeeze(slice(a, start, stop), Dims{static_cast<std::int64_t>(at)});
  });
}

Array take(const Arg& a, const Arg& indices) {
  return within("take", a, [&]() -> Array {
    require_plain("take", a);
    require(a.size() > 0 || indices.size() == 0, ErrorCode::invalid_argument,
            "take: there is nothing in {} for indices {}", a.spec(), indices.spec());
    return take_rows(flat(a), indices, 0);
  });
}

Array take(const Arg& a, int index) {
  return within("take", a, [&]() -> Array {
    require_plain("take", a);
    std::int64_t left = wrapped(index, a.size(), a);
    Dims start(a.ndim(), 0), stop(a.ndim(), 0);
    for (std::size_t i = a.ndim(); i-- > 0;) {
      start[i] = left % a.shape()[i];
      stop[i] = start[i] + 1;
      left /= a.shape()[i];
    }
    return reshape(slice(a, start, stop), {});
  });
}

// ---- Along an axis

namespace {

/// `a` and indices, as the ops want them: of the same extents but along `axis`.
struct Aligned {
  Array a, indices;
  std::int64_t axis;
};

Aligned align(const char* function, const Array& a, const Array& indices, int axis) {
  const std::size_t at = normalize_axis(axis, a.ndim(), function);
  require(indices.ndim() == a.ndim(), ErrorCode::invalid_argument,
          "{}: indices {} and {} differ in rank", function, indices.spec(), a.spec());
  Shape shape = a.shape();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t other = indices.shape()[i];
    require(i == at || shape[i] == other || shape[i] == 1 || other == 1,
            ErrorCode::invalid_argument, "{}: indices {} and {} do not broadcast beside axis {}",
            function, indices.spec(), a.spec(), at);
    if (i != at && shape[i] == 1) shape[i] = other;
  }
  Shape chosen = shape;
  chosen[at] = indices.shape()[at];
  return {broadcast_to(a, shape), broadcast_to(indices, chosen), static_cast<std::int64_t>(at)};
}

Array update_axis(const char* function, const Arg& a, const Arg& indices, const Arg& values,
                  int axis, ScatterKind kind) {
  return within(function, a, [&]() -> Array {
    const Aligned aligned = align(function, a, indices, axis);
    require(aligned.a.shape() == a.shape(), ErrorCode::invalid_argument,
            "{}: indices {} reach beyond {}", function, indices.spec(), a.spec());
    require_plain(function, a);
    const Array updates = broadcast_to(astype(values, a.dtype()), aligned.indices.shape());
    return heddle::apply(ScatterAxis{aligned.axis, kind}, {aligned.a, aligned.indices, updates});
  });
}

}  // namespace

Array take_along_axis(const Arg& a, const Arg& indices, int axis) {
  return within("take_along_axis", a, [&]() -> Array {
    const Aligned aligned = align("take_along_axis", a, indices, axis);
    return heddle::apply(GatherAxis{aligned.axis}, {aligned.a, aligned.indices});
  });
}

Array put_along_axis(const Arg& a, const Arg& indices, const Arg& values, int axis) {
  return update_axis("put_along_axis", a, indices, values, axis, ScatterKind::none);
}
Array scatter_add_axis(const Arg& a, const Arg& indices, const Arg& values, int axis) {
  return update_axis("scatter_add_axis", a, indices, values, axis, ScatterKind::sum);
}
Array scatter_axis(const Arg& a, const Arg& indices, const Arg& values, int axis,
                   ScatterKind kind) {
  return update_axis("scatter_axis", a, indices, values, axis, kind);
}

// ---- Slices at indices

namespace {

std::string specs_of(const std::vector<Array>& arrays) {
  std::string text;
  for (const Array& a : arrays) text += (text.empty() ? "" : ", ") + to_string(a.spec());
  return text;
}

/// x, and the indices broadcast against each other.
std::vector<Array> with_indices(const char* function, const Array& a,
                                const std::vector<Array>& indices, const Dims& axes) {
  require(indices.size() == axes.size(), ErrorCode::invalid_argument,
          "{}: {} arrays of indices for axes {} of {}", function, indices.size(), axes, a.spec());
  Shape shape;
  for (const Array& index : indices) {
    try {
      shape = broadcast_shapes(shape, index.shape());
    } catch (const Error&) {
      fail(ErrorCode::invalid_argument, "{}: indices {} do not broadcast to the {} of others",
           function, index.spec(), shape);
    }
  }
  require(shape.size() + a.ndim() <= kMaxRank, ErrorCode::invalid_argument,
          "{}: indices {} and slices of {} make {} dimensions; at most {} are supported", function,
          specs_of(indices), a.spec(), shape.size() + a.ndim(), kMaxRank);
  std::vector<Array> inputs{a};
  for (const Array& index : indices) inputs.push_back(broadcast_to(index, shape));
  return inputs;
}

const char* scatter_name(ScatterKind kind) {
  switch (kind) {
    case ScatterKind::sum:
      return "scatter_add";
    case ScatterKind::prod:
      return "scatter_prod";
    case ScatterKind::max:
      return "scatter_max";
    case ScatterKind::min:
      return "scatter_min";
    case ScatterKind::none:
      break;
  }
  return "scatter";
}

Array scatter_slices(ScatterKind kind, const Arg& a, const std::vector<Array>& indices,
                     const Arg& updates, const Dims& axes) {
  const char* function = scatter_name(kind);
  return within(function, a, [&]() -> Array {
    const Dims normal = normal_axes(axes, a, function);
    require_plain(function, a);
    std::vector<Array> inputs = with_indices(function, a, indices, normal);
    const Shape at = indices.empty() ? Shape{} : inputs[1].shape();
    bool fits = updates.ndim() == at.size() + a.ndim();
    for (std::size_t i = 0; fits && i < at.size(); ++i) fits = updates.shape()[i] == at[i];
    require(fits, ErrorCode::invalid_argument,
            "{}: updates {} must be of {}, as indices {} are, and then a slice of {}", function,
            updates.spec(), at, specs_of(indices), a.spec());
    inputs.push_back(astype(updates, a.dtype()));
    return heddle::apply(Scatter{kind, normal}, std::move(inputs));
  });
}

}  // namespace

Array gather(const Arg& a, const std::vector<Array>& indices, const Dims& axes,
             const Shape& slice_sizes) {
  return within("gather", a, [&]() -> Array {
    const Dims normal = normal_axes(axes, a, "gather");
    return heddle::apply(Gather{normal, slice_sizes}, with_indices("gather", a, indices, normal));
  });
}
Array gather(const Arg& a, const Arg& indices, int axis, const Shape& slice_sizes) {
  return gather(a, std::vector<Array>{indices.array()}, Dims{axis}, slice_sizes);
}

Array scatter(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
              const Dims& axes) {
  return scatter_slices(ScatterKind::none, a, indices, updates, axes);
}
Array scatter(const Arg& a, const Arg& indices, const Arg& updates, int axis) {
  return scatter_slices(ScatterKind::none, a, {indices.array()}, updates, {axis});
}
Array scatter_add(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
                  const Dims& axes) {
  return scatter_slices(ScatterKind::sum, a, indices, updates, axes);
}
Array scatter_add(const Arg& a, const Arg& indices, const Arg& updates, int axis) {
  return scatter_slices(ScatterKind::sum, a, {indices.array()}, updates, {axis});
}
Array scatter_prod(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
                   const Dims& axes) {
  return scatter_slices(ScatterKind::prod, a, indices, updates, axes);
}
Array scatter_prod(const Arg& a, const Arg& indices, const Arg& updates, int axis) {
  return scatter_slices(ScatterKind::prod, a, {indices.array()}, updates, {axis});
}
Array scatter_max(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
                  const Dims& axes) {
  return scatter_slices(ScatterKind::max, a, indices, updates, axes);
}
Array scatter_max(const Arg& a, const Arg& indices, const Arg& updates, int axis) {
  return scatter_slices(ScatterKind::max, a, {indices.array()}, updates, {axis});
}
Array scatter_min(const Arg& a, const std::vector<Array>& indices, const Arg& updates,
                  const Dims& axes) {
  return scatter_slices(ScatterKind::min, a, indices, updates, axes);
}
Array scatter_min(const Arg& a, const Arg& indices, const Arg& updates, int axis) {
  return scatter_slices(ScatterKind::min, a, {indices.array()}, updates, {axis});
}

// ---- By a mask

namespace {

/// The axes of `a` behind those that the mask has.
Shape axes_behind_mask(const Array& a, const Array& mask) {
  require(mask.dtype() == DType::bool_, ErrorCode::invalid_argument,
          "masked_scatter: the mask is {}; it must be bool", mask.spec());
  bool fits = mask.ndim() <= a.ndim();
  for (std::size_t i = 0; fits && i < mask.ndim(); ++i) fits = mask.shape()[i] == a.shape()[i];
  require(fits, ErrorCode::invalid_argument,
          "masked_scatter: the mask {} has not the leading axes of {}", mask.spec(), a.spec());
  return Shape(std::span(a.shape().begin(), a.shape().end()).subspan(mask.ndim()));
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    const std::int64_t extent = from[from.size() - i];
    if (extent != 1 && extent != to[to.size() - i]) return false;
  }
  return true;
}

/// `src`, for each of the mask's places, if it is alike for all: of fewer axes, or with N = 1.
std::optional<Array> source_of_all(const Array& src, const Shape& row) {
  if (src.ndim() <= row.size()) return src;
  if (src.ndim() == row.size() + 1 && src.shape()[0] == 1) return squeeze(src, Dims{0});
  return std::nullopt;
}

/// What is put in, as rows [N, row...].
Array source_rows(const Array& src, const Shape& row) {
  Shape shape = row;
  if (src.ndim() == row.size() + 1) {
    shape.insert(0, src.shape()[0]);
    return broadcast_to(src, shape);
  }
  const std::int64_t whole = src.size() / elements(row);
  shape.insert(0, whole);
  return reshape(slice(flat(src), {0}, {whole * elements(row)}), shape);
}

/// For each place of the mask, in order, which of `rows` rows goes there; 0 where none does.
Array row_numbers(const Array& mask, std::int64_t rows) {
  const bool small = mask.size() < std::numeric_limits<std::int32_t>::max();
  const Array places = flat(mask);
  const Array count = cumsum(small ? places : astype(places, DType::i64), 0);
  // Of no rows every number is too large, so that what is true fails.
  const Array number = rows > 0 ? subtract(count, Array(1)) : count;
  return where(places, number, Array(0));
}

}  // namespace

Array masked_scatter(const Arg& a, const Arg& mask, const Arg& src) {
  return within("masked_scatter", a, [&]() -> Array {
    require_plain("masked_scatter", a);
    require_plain("masked_scatter", src);
    const Shape row = axes_behind_mask(a, mask);
    Shape stretched = mask.shape();
    for (std::size_t i = 0; i < row.size(); ++i) stretched.push_back(1);
    const Array places = broadcast_to(reshape(mask, stretched), a.shape());
    const Array values = astype(src, a.dtype());
    const std::optional<Array> same = source_of_all(values, row);
    const bool rows_fit =
        values.ndim() != row.size() + 1 ||
        broadcasts_to(Shape(std::span(values.shape().begin() + 1, row.size())), row);
    require(same ? broadcasts_to(same->shape(), row) : rows_fit, ErrorCode::invalid_argument,
            "masked_scatter: src {} does not fit the {} that the mask {} leaves of {}", src.spec(),
            row, mask.spec(), a.spec());
    if (same) return where(places, broadcast_to(*same, a.shape()), a);
    if (a.size() == 0) return a;
    Array rows = source_rows(values, row);
    const Array numbers = row_numbers(mask, rows.shape()[0]);
    if (rows.shape()[0] == 0) {
      Shape one = row;
      one.insert(0, 1);
      rows = zeros(one, a.dtype());
    }
    return where(places, reshape(take(rows, numbers, 0), a.shape()), a);
  });
}

// ---- One slice

namespace {

/// An index for each axis that the slice's start is given on.
std::vector<Array> starts(const char* function, const Array& a, const Array& start,
                          const Dims& axes) {
  require(start.ndim() <= 1 && start.size() == static_cast<std::int64_t>(axes.size()),
          ErrorCode::invalid_argument, "{}: start {} does not fit axes {} of {}", function,
          start.spec(), axes, a.spec());
  require(is_integer(start.dtype()), ErrorCode::invalid_argument,
          "{}: start is {}; it must be integers", function, start.spec());
  if (start.ndim() == 0) return {start};
  std::vector<Array> each;
  for (std::int64_t i = 0; i < start.size(); ++i) {
    each.push_back(reshape(slice(start, {i}, {i + 1}), {}));
  }
  return each;
}

using Combine = Array (*)(const Arg&, const Arg&);

Array combine_slice(const char* function, Combine combine, const Arg& src, const Arg& update,
                    const Dims& start, const Dims& stop, const Dims& strides) {
  return within(function, src, [&]() -> Array {
    require_plain(function, src);
    const Array part = slice(src, start, stop, strides);
    const Array with = broadcast_to(astype(update, src.dtype()), part.shape());
    return slice_update(src, combine(part, with), start, stop, strides);
  });
}

Dims ones_like_bounds(const Dims& start) {
  return Dims(start.size(), 1);
}

}  // namespace

template <std::same_as<Array> A>
Array slice(const Arg& a, const A& start, const Dims& axes, const Shape& slice_size) {
  return within("slice", a, [&]() -> Array {
    const Dims normal = normal_axes(axes, a, "slice");
    std::vector<Array> inputs = starts("slice", a, start, normal);
    inputs.insert(inputs.begin(), a);
    return heddle::apply(Gather{normal, slice_size}, std::move(inputs));
  });
}
template Array slice<Array>(const Arg&, const Array&, const Dims&, const Shape&);

template <std::same_as<Array> A>
Array slice_update(const Arg& src, const Arg& update, const A& start, const Dims& axes) {
  return within("slice_update", src, [&]() -> Array {
    const Dims normal = normal_axes(axes, src, "slice_update");
    require_plain("slice_update", src);
    require(update.ndim() <= src.ndim(), ErrorCode::invalid_argument,
            "slice_update: the update {} has more axes than {}", update.spec(), src.spec());
    const std::size_t missing = src.ndim() - update.ndim();
    Shape shape = src.shape();
    for (std::size_t i = missing; i < src.ndim(); ++i) shape[i] = update.shape()[i - missing];
    for (const std::int64_t axis : normal) {
      if (static_cast<std::size_t>(axis) < missing) shape[axis] = 1;
    }
    std::vector<Array> inputs = starts("slice_update", src, start, normal);
    inputs.insert(inputs.begin(), src);
    inputs.push_back(broadcast_to(astype(update, src.dtype()), shape));
    return heddle::apply(Scatter{ScatterKind::none, normal}, std::move(inputs));
  });
}
template Array slice_update<Array>(const Arg&, const Arg&, const Array&, const Dims&);

Array slice_update_add(const Arg& src, const Arg& update, const Dims& start, const Dims& stop) {
  return slice_update_add(src, update, start, stop, ones_like_bounds(start));
}
Array slice_update_add(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                       const Dims& strides) {
  return combine_slice("slice_update_add", add, src, update, start, stop, strides);
}
Array slice_update_prod(const Arg& src, const Arg& update, const Dims& start, const Dims& stop) {
  return slice_update_prod(src, update, start, stop, ones_like_bounds(start));
}
Array slice_update_prod(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                        const Dims& strides) {
  return combine_slice("slice_update_prod", multiply, src, update, start, stop, strides);
}
Array slice_update_max(const Arg& src, const Arg& update, const Dims& start, const Dims& stop) {
  return slice_update_max(src, update, start, stop, ones_like_bounds(start));
}
Array slice_update_max(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                       const Dims& strides) {
  return combine_slice("slice_update_max", maximum, src, update, start, stop, strides);
}
Array slice_update_min(const Arg& src, const Arg& update, const Dims& start, const Dims& stop) {
  return slice_update_min(src, update, start, stop, ones_like_bounds(start));
}
Array slice_update_min(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                       const Dims& strides) {
  return combine_slice("slice_update_min", minimum, src, update, start, stop, strides);
}

}  // namespace heddle
