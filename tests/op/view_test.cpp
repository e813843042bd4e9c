#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "heddle/error.h"
#include "heddle/op.h"
#include "support/specs.h"

namespace heddle {
namespace {

using Index = std::vector<std::int64_t>;

/// Calls f with every index of a shape, in row-major order.
template <class F>
void for_each_index(const Shape& shape, const F& f) {
  const std::int64_t count = elements(shape);
  Index index(shape.size());
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0;) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    f(index, i);
  }
}

std::int64_t address(const Index& index, const Dims& strides, std::int64_t offset = 0) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), offset);
}

std::int64_t flat_index(const Index& index, const Shape& shape) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

Index unflatten(std::int64_t flat, const Shape& shape) {
  Index index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return index;
}

/// The input's index that an output index shows, said by the op alone.
Index source_index(const Op& op, const Index& out, const Shape& in_shape, const Shape& out_shape) {
  Index in(in_shape.size());
  if (std::get_if<Reshape>(&op)) return unflatten(flat_index(out, out_shape), in_shape);
  if (const auto* o = std::get_if<Transpose>(&op)) {
    for (std::size_t i = 0; i < out.size(); ++i) in[o->axes[i]] = out[i];
  } else if (const auto* slice = std::get_if<Slice>(&op)) {
    for (std::size_t i = 0; i < out.size(); ++i) in[i] = slice->start[i] + out[i] * slice->step[i];
  } else if (std::get_if<Broadcast>(&op)) {
    const std::size_t lead = out.size() - in.size();
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = in_shape[i] == 1 ? 0 : out[lead + i];
  } else {  // squeeze and expand_dims: the indices other than those of extent 1 agree
    return unflatten(flat_index(out, out_shape), in_shape);
  }
  return in;
}

/// That the view's strides reach what the op says, for every element.
void check_view(const Op& op, const OperandSpec& input) {
  const Shape out = infer(op, std::span(&input.spec, 1))[0].shape;
  const std::optional<ViewOf> view = view_of(op, input);
  if (!view) {
    RC_ASSERT(std::holds_alternative<Reshape>(op));  // only these may need a copy
    RC_ASSERT(!is_contiguous(input));
    return;
  }
  const auto item = static_cast<std::int64_t>(item_size(input.spec.dtype));
  RC_ASSERT(view->offset_bytes % item == 0);
  for_each_index(out, [&](const Index& index, std::int64_t) {
    const Index from = source_index(op, index, input.spec.shape, out);
    RC_ASSERT(address(index, view->layout.strides, view->offset_bytes / item) ==
              address(from, input.layout.strides));
  });
}

int pick(int low, int high) {
  return *rc::gen::inRange(low, high + 1);
}

/// A tensor of random shape, held with random order and gaps (and some axes repeated).
OperandSpec random_operand() {
  const int rank = pick(0, 5);
  OperandSpec operand{{DType::f16, {}}, {}};
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  const bool shuffled = pick(0, 1);
  for (int i = 0; i < rank; ++i) {
    operand.spec.shape.push_back(pick(pick(0, 9) ? 1 : 0, 4));
    if (shuffled)
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(pick(0, i))]);
  }
  operand.layout.strides = Dims(static_cast<std::size_t>(rank), 0);
  std::int64_t stride = 1;
  const bool gaps = pick(0, 1);
  for (int i = rank; i-- > 0;) {
    const auto axis = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
    const bool repeated = gaps && pick(0, 6) == 0;
    operand.layout.strides[axis] = repeated ? 0 : stride;
    if (!repeated)
      stride *= std::max<std::int64_t>(operand.spec.shape[axis], 1) + (gaps && pick(0, 2) == 0);
  }
  return operand;
}

/// A random factorisation of `count`, with ones strewn in.
Shape random_shape_of(std::int64_t count) {
  Shape shape;
  if (count == 0) return {pick(0, 3), 0, 2};
  while (count > 1 && shape.size() < 6) {
    std::int64_t factor = pick(2, 6);
    if (count % factor != 0) factor = pick(0, 3) ? std::int64_t{1} : count;
    shape.insert(static_cast<std::size_t>(pick(0, static_cast<int>(shape.size()))), factor);
    count /= factor;
  }
  if (count > 1) shape.push_back(count);
  return shape;
}

RC_GTEST_PROP(View, ReshapeShowsTheSameElements, ()) {
  const OperandSpec input = random_operand();
  check_view(Reshape{random_shape_of(elements(input.spec.shape))}, input);
}

RC_GTEST_PROP(View, ReshapeOfContiguousNeverCopies, ()) {
  const OperandSpec input = OperandSpec::contiguous(random_operand().spec);
  const Shape shape = random_shape_of(elements(input.spec.shape));
  const std::optional<ViewOf> view = view_of(Reshape{shape}, input);
  RC_ASSERT(view.has_value());
  RC_ASSERT(is_contiguous({{DType::f16, shape}, view->layout}));
}

RC_GTEST_PROP(View, ReshapeCopiesOnlyWhereNoStridesWould, ()) {
  // Wherever strides exist they are fixed by the elements one step away from the first along each
  // axis; so they can be found by looking, and a refusal means that they must fail somewhere.
  const OperandSpec input = random_operand();
  const Shape shape = random_shape_of(elements(input.spec.shape));
  RC_PRE(elements(shape) > 0);
  const auto where = [&](const Index& out) {
    return address(unflatten(flat_index(out, shape), input.spec.shape), input.layout.strides);
  };
  Dims strides(shape.size(), 0);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    Index step(shape.size());
    step[d] = shape[d] > 1;
    strides[d] = where(step);
  }
  bool expressible = true;
  for_each_index(shape, [&](const Index& index, std::int64_t) {
    expressible = expressible && address(index, strides) == where(index);
  });
  RC_ASSERT(view_of(Reshape{shape}, input).has_value() == expressible);
}

RC_GTEST_PROP(View, Transpose, ()) {
  const OperandSpec input = random_operand();
  Dims axes;
  for (std::size_t i = 0; i < input.spec.shape.size(); ++i) {
    axes.insert(static_cast<std::size_t>(pick(0, static_cast<int>(i))),
                static_cast<std::int64_t>(i));
  }
  check_view(Transpose{axes}, input);
}

RC_GTEST_PROP(View, Slice, ()) {
  const OperandSpec input = random_operand();
  heddle::Slice op;
  for (const std::int64_t extent : input.spec.shape) {
    op.start.push_back(pick(0, static_cast<int>(extent)));
    op.stop.push_back(pick(static_cast<int>(op.start.back()), static_cast<int>(extent)));
    op.step.push_back(pick(1, 3));
  }
  check_view(op, input);
}

RC_GTEST_PROP(View, Broadcast, ()) {
  const OperandSpec input = random_operand();
  Shape shape = input.spec.shape;
  for (std::int64_t& extent : shape) {
    if (extent == 1) extent = pick(0, 3);
  }
  for (int i = pick(0, 2); i-- > 0;) shape.insert(0, pick(1, 3));
  check_view(heddle::Broadcast{shape}, input);
}

RC_GTEST_PROP(View, SqueezeAndExpandDims, ()) {
  const OperandSpec input = random_operand();
  Dims ones, added;
  for (std::size_t i = 0; i < input.spec.shape.size(); ++i) {
    if (input.spec.shape[i] == 1 && pick(0, 2)) ones.push_back(static_cast<std::int64_t>(i));
    if (added.size() < 3 && pick(0, 2) == 0) added.push_back(static_cast<std::int64_t>(i));
  }
  check_view(Squeeze{ones}, input);
  check_view(ExpandDims{added}, input);
}

TEST(View, OffsetsOfBlocksAreWholeBlocks) {
  const OperandSpec input = OperandSpec::contiguous(spec("q4_0[6, 96]"));
  const auto view = view_of(Slice{{2, 32}, {6, 96}, {3, 1}}, input);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->offset_bytes, (2 * 3 + 1) * 18);  // blocks of 32 elements take 18 bytes
  EXPECT_EQ(view->layout.strides, (Dims{3 * 96, 1}));
}

TEST(View, BlocksReshapeAndTransposeAroundTheirAxis) {
  const OperandSpec input = OperandSpec::contiguous(spec("q8_0[6, 64]"));
  EXPECT_EQ(view_of(Reshape{{2, 3, 2, 32}}, input)->layout.strides, (Dims{192, 64, 32, 1}));
  const OperandSpec heads{spec("q8_0[2, 3, 64]"), {LayoutKind::strided, {192, 64, 1}}};
  EXPECT_EQ(view_of(Transpose{{1, 0, 2}}, heads)->layout.strides, (Dims{64, 192, 1}));
}

TEST(View, EmptySlicesStayWithinTheMemory) {
  const OperandSpec input = OperandSpec::contiguous(spec("f32[4, 5]"));
  EXPECT_EQ(view_of(Slice{{4, 5}, {4, 5}, {1, 1}}, input)->offset_bytes, 0);
}

TEST(View, PackedLayoutsHaveNone) {
  const OperandSpec packed{spec("f32[32, 8]"), Layout::packed(LayoutKind::panel16)};
  EXPECT_FALSE(view_of(Reshape{{8, 32}}, packed));
  EXPECT_FALSE(view_of(Transpose{{1, 0}}, packed));
}

TEST(View, BadViewsThrow) {
  const OperandSpec input = OperandSpec::contiguous(spec("f32[4, 5]"));
  EXPECT_THROW(view_of(Reshape{{21}}, input), Error);
  EXPECT_THROW(view_of(Contiguous{}, input), Error);
}

}  // namespace
}  // namespace heddle
