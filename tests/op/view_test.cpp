#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
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

/// Elements from the operand's lowest byte to its first element, found by looking at every element.
std::int64_t first_of(const Shape& shape, const Dims& strides) {
  std::int64_t lowest = 0;
  for_each_index(shape, [&](const Index& index, std::int64_t) {
    lowest = std::min(lowest, address(index, strides));
  });
  return -lowest;
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
  } else if (const auto* strided = std::get_if<AsStrided>(&op)) {
    return unflatten(address(out, strided->strides, strided->offset), in_shape);
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
    // Only these may need a copy.
    RC_ASSERT(std::holds_alternative<Reshape>(op) || std::holds_alternative<AsStrided>(op));
    RC_ASSERT(!is_contiguous(input));
    return;
  }
  const auto item = static_cast<std::int64_t>(item_size(input.spec.dtype));
  RC_ASSERT(view->offset_bytes % item == 0);
  RC_ASSERT(view->offset_bytes >= 0);
  const std::int64_t first = view->offset_bytes / item + first_of(out, view->layout.strides);
  const std::int64_t first_in = first_of(input.spec.shape, input.layout.strides);
  for_each_index(out, [&](const Index& index, std::int64_t) {
    const Index from = source_index(op, index, input.spec.shape, out);
    RC_ASSERT(address(index, view->layout.strides, first) ==
              address(from, input.layout.strides, first_in));
  });
}

int pick(int low, int high) {
  return *rc::gen::inRange(low, high + 1);
}

/// A tensor of random shape, held with random order and gaps (and some axes repeated or backwards).
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
  const bool backwards = pick(0, 1);
  for (int i = rank; i-- > 0;) {
    const auto axis = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
    const bool repeated = gaps && pick(0, 6) == 0;
    operand.layout.strides[axis] = repeated ? 0 : backwards && pick(0, 1) ? -stride : stride;
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
    const int end = static_cast<int>(extent);
    const bool backwards = pick(0, 1);
    op.start.push_back(backwards ? pick(-1, end - 1) : pick(0, end));
    const int start = static_cast<int>(op.start.back());
    op.stop.push_back(backwards ? pick(-1, start) : pick(start, end));
    op.step.push_back(backwards ? -pick(1, 3) : pick(1, 3));
  }
  check_view(op, input);
}

RC_GTEST_PROP(View, AsStrided, ()) {
  const bool contiguous = pick(0, 4);
  OperandSpec input = random_operand();
  if (contiguous) input = OperandSpec::contiguous(input.spec);
  heddle::AsStrided op;
  std::int64_t lowest = 0, highest = 0;
  for (int i = pick(0, 4); i-- > 0;) {
    op.shape.push_back(pick(0, 9) ? pick(1, 3) : 0);
    op.strides.push_back(pick(-4, 4));
    const std::int64_t reach = (op.shape.back() - 1) * op.strides.back();
    (reach < 0 ? lowest : highest) += reach;
  }
  const std::int64_t room = elements(input.spec.shape) - (highest - lowest);
  RC_PRE(elements(op.shape) == 0 || room > 0);
  if (room > 0) op.offset = pick(0, static_cast<int>(room) - 1) - lowest;
  check_view(op, input);
  if (contiguous) RC_ASSERT(view_of(op, input).has_value());
}

TEST(View, SlicesAtTheEndsOfTheNumbers) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const OperandSpec input = OperandSpec::contiguous(spec("f32[5]"));
  for (const std::int64_t step : {kMost, kLeast}) {
    const heddle::Slice op =
        step > 0 ? heddle::Slice{{1}, {5}, {step}} : heddle::Slice{{4}, {-1}, {step}};
    EXPECT_EQ(infer(op, std::span(&input.spec, 1))[0].shape, Shape{1});
    const auto view = view_of(op, input);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->offset_bytes, step > 0 ? 4 : 16);
    EXPECT_EQ(view->layout.strides, Dims{1});
  }
}

// ---- As another dtype

/// The byte that each byte of the operand, row-major, is in memory.
std::vector<std::int64_t> byte_addresses(const OperandSpec& operand, std::int64_t offset) {
  const auto item = static_cast<std::int64_t>(item_size(operand.spec.dtype));
  const std::int64_t first = first_of(operand.spec.shape, operand.layout.strides);
  std::vector<std::int64_t> addresses;
  for_each_index(operand.spec.shape, [&](const Index& index, std::int64_t) {
    const std::int64_t at = offset + address(index, operand.layout.strides, first) * item;
    for (std::int64_t byte = 0; byte < item; ++byte) addresses.push_back(at + byte);
  });
  return addresses;
}

RC_GTEST_PROP(View, ReinterpretedShowsTheSameBytesWhereItCan, ()) {
  const DType types[] = {DType::u8, DType::bool_, DType::f16, DType::f32, DType::complex64};
  OperandSpec input = random_operand();
  input.spec.dtype = types[pick(0, 4)];
  const DType to = types[pick(0, 4)];
  const auto from_size = static_cast<std::int64_t>(item_size(input.spec.dtype));
  const auto to_size = static_cast<std::int64_t>(item_size(to));
  const bool scalar = input.spec.shape.empty();
  const std::int64_t row = scalar ? from_size : input.spec.shape.back() * from_size;
  const bool fits = scalar ? from_size == to_size : row % to_size == 0;
  RC_PRE(fits && (to != DType::bool_ || input.spec.dtype == DType::bool_));
  const std::int64_t offset = pick(0, 12) * from_size;
  const TensorSpec out = infer(Reinterpret{to}, std::span(&input.spec, 1))[0];
  const std::optional<ViewOf> view =
      reinterpreted_view(to, input, static_cast<std::size_t>(offset));
  const std::vector<std::int64_t> bytes = byte_addresses(input, offset);
  if (view) {
    RC_ASSERT(byte_addresses({out, view->layout}, offset + view->offset_bytes) == bytes);
    return;
  }
  // Whatever has none is broken up: an item's bytes are apart, or not at a place for one.
  bool broken = offset % to_size != 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto within = static_cast<std::int64_t>(i) % to_size;
    broken = broken || bytes[i] % to_size != within;
    broken = broken || (within > 0 && bytes[i] != bytes[i - 1] + 1);
    // Nor has the last axis one stride where items fall into parts with gaps between them.
    const bool next_item = from_size > to_size && static_cast<std::int64_t>(i) % row > 0;
    broken = broken || (next_item && bytes[i] != bytes[i - 1] + 1);
  }
  RC_ASSERT(broken);
}

TEST(View, ReinterpretedOfWhatHasNoStrides) {
  const OperandSpec packed{spec("f32[32, 8]"), Layout::packed(LayoutKind::panel16)};
  EXPECT_FALSE(reinterpreted_view(DType::i32, packed, 0));
  EXPECT_THROW(reinterpreted_view(DType::q8_0, OperandSpec::contiguous(spec("f32[32]")), 0), Error);
  EXPECT_THROW(reinterpreted_view(DType::u8, OperandSpec::contiguous(spec("f32[]")), 0), Error);
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

TEST(View, RowsOfBlocksBackwards) {
  const OperandSpec input = OperandSpec::contiguous(spec("q4_0[6, 96]"));
  const auto view = view_of(Slice{{5, 32}, {0, 96}, {-2, 1}}, input);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->offset_bytes, (1 * 3 + 1) * 18);  // row 1 is the lowest
  EXPECT_EQ(view->layout.strides, (Dims{-2 * 96, 1}));
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
