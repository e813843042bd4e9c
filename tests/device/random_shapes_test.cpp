// Element-wise functions, reductions, softmax and scans on operands of random shape that lie in
// memory in any way: permuted, with gaps (huge ones among them), backwards, broadcast.
#include <gtest/gtest-spi.h>
#include <rapidcheck.h>

#include <numeric>

#include "device/on_device.h"
#include "device/tolerances.h"

namespace heddle::test {
namespace {

class RandomShapes : public OnDevice {};
HEDDLE_ON_DEVICES(RandomShapes);

constexpr std::int64_t kMostElements = 3000, kMostSpanned = std::int64_t{1} << 20;

template <class T>
T one_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}
std::int64_t below(std::int64_t limit) {
  return *rc::gen::inRange<std::int64_t>(0, limit);
}
template <class Kind>
Kind kind_up_to(Kind last) {
  return static_cast<Kind>(below(static_cast<std::int64_t>(last) + 1));
}
DType any_dtype() {
  return *rc::gen::elementOf(std::vector<DType>(std::begin(kPlain), std::end(kPlain)));
}

Shape any_shape(std::size_t least_rank) {
  const auto rank = least_rank + static_cast<std::size_t>(below(5));
  Shape shape;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto extent = one_of<std::int64_t>({1, 2, 3, 1, 7, 17, 40, 600, 0});
    shape.push_back(count * extent > kMostElements ? 1 : extent);
    count *= std::max<std::int64_t>(1, shape.back());
  }
  return shape;
}

/// Axes in any order, each with a gap behind it or not, forwards or backwards, or all one element.
OperandSpec any_layout(DType dtype, const Shape& shape) {
  OperandSpec operand = OperandSpec::contiguous({dtype, shape});
  if (shape.empty() || below(4) == 0) return operand;
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
  }
  std::int64_t stride = one_of<std::int64_t>({1, 1, 1, 2});
  for (const std::size_t axis : order) {
    const bool stretched = below(8) == 0;
    operand.layout.strides[axis] = stretched ? 0 : below(3) == 0 ? -stride : stride;
    if (stretched) continue;
    stride *= std::max<std::int64_t>(1, shape[axis]);
    const std::int64_t gap = one_of<std::int64_t>({1, 1, 2, 3, 1031});
    if (stride * gap * 40 < kMostSpanned) stride *= gap;
  }
  return operand;
}

/// A shape that broadcasts to `shape`.
Shape any_part(const Shape& shape) {
  Shape part = shape;
  for (std::int64_t& extent : part) {
    if (below(4) == 0) extent = 1;
  }
  while (!part.empty() && below(6) == 0) part.erase(0);
  return part;
}

bool is_defined(const Op& op, const std::vector<TensorSpec>& specs) {
  try {
    return !infer(op, specs).empty();
  } catch (const Error&) {
    return false;
  }
}

/// The failures of `body`, which are not the test's.
template <class Body>
std::string failures_of(const Body& body) {
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    body();
  }
  std::string text;
  for (int i = 0; i < results.size(); ++i) text += results.GetTestPartResult(i).message();
  return text;
}

void expect_agreement(const Op& op, const std::vector<OperandSpec>& operands, Fill fill,
                      Tolerance tolerance) {
  std::vector<TensorSpec> specs;
  for (const OperandSpec& operand : operands) specs.push_back(operand.spec);
  RC_PRE(is_defined(op, specs));
  Random random(static_cast<std::uint64_t>(below(1000)));
  std::vector<Tensor> inputs;
  for (const OperandSpec& operand : operands) {
    inputs.push_back(random_tensor(operand, random, fill));
  }
  const std::string failures = failures_of([&] { expect_on_device(op, inputs, tolerance); });
  // Shrinking would repeat a device's work for minutes: the first case is told as it is.
  if (!failures.empty()) ADD_FAILURE() << failures;
}

/// Some hundred cases; where pipelines take long to compile, few.
template <class Property>
void check(const char* what, const Property& property) {
  int left = subject().sampled ? 12 : 400;
  EXPECT_TRUE(rc::check(what, [&] {
    if (left-- > 0 && !testing::Test::HasFailure()) property();
  }));
}

TEST_P(RandomShapes, Unary) {
  check("unary", [] {
    const UnaryKind kind = kind_up_to(UnaryKind::imag);
    const DType dtype = any_dtype();
    expect_agreement(Unary{kind}, {any_layout(dtype, any_shape(0))}, elementwise_fill(dtype),
                     unary_tolerance(kind, dtype));
  });
}

TEST_P(RandomShapes, Binary) {
  check("binary", [] {
    const BinaryKind kind = kind_up_to(BinaryKind::right_shift);
    const DType dtype = any_dtype();
    const Shape shape = any_shape(0);
    expect_agreement(Binary{kind},
                     {any_layout(dtype, any_part(shape)), any_layout(dtype, any_part(shape))},
                     elementwise_fill(dtype), binary_tolerance(kind, dtype));
  });
}

TEST_P(RandomShapes, Compare) {
  check("compare", [] {
    const CompareKind kind = kind_up_to(CompareKind::greater_equal);
    const DType dtype = any_dtype();
    const Shape shape = any_shape(0);
    expect_agreement(Compare{kind},
                     {any_layout(dtype, any_part(shape)), any_layout(dtype, any_part(shape))},
                     {-3, 3, dtype != DType::complex64}, {});
  });
}

TEST_P(RandomShapes, Select) {
  check("select", [] {
    const DType dtype = any_dtype();
    const Shape shape = any_shape(0);
    expect_agreement(Select{},
                     {any_layout(DType::bool_, any_part(shape)), any_layout(dtype, any_part(shape)),
                      any_layout(dtype, any_part(shape))},
                     {-9, 9, true}, {});
  });
}

TEST_P(RandomShapes, Reduce) {
  check("reduce", [] {
    const ReduceKind kind = kind_up_to(ReduceKind::any);
    const DType dtype = any_dtype();
    const Shape shape = any_shape(0);
    Dims axes;
    std::int64_t count = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (below(2) == 0) continue;
      axes.push_back(static_cast<std::int64_t>(i));
      count *= shape[i];
    }
    expect_agreement(Reduce{kind, axes, below(2) == 0}, {any_layout(dtype, shape)},
                     reduce_fill(dtype, kind), reduce_tolerance(dtype, kind, count, 2));
  });
}

TEST_P(RandomShapes, Softmax) {
  check("softmax", [] {
    const DType dtype = one_of({DType::f16, DType::bf16, DType::f32, DType::f64});
    const bool half = dtype == DType::f16 || dtype == DType::bf16;
    expect_agreement(Softmax{}, {any_layout(dtype, any_shape(1))}, {-8, 8},
                     {half ? 0.51 : 16, 1e-37});
  });
}

TEST_P(RandomShapes, Scan) {
  check("scan", [] {
    const ScanKind kind = kind_up_to(ScanKind::logaddexp);
    const DType dtype = any_dtype();
    const Shape shape = any_shape(1);
    const std::int64_t axis = below(static_cast<std::int64_t>(shape.size()));
    const bool exact = kind == ScanKind::max || kind == ScanKind::min;
    Fill fill{-2, 2, exact && dtype != DType::complex64};
    if (kind == ScanKind::prod) fill = {0.99, 1.01};
    if (kind == ScanKind::prod && dtype == DType::complex64) fill = {0.69, 0.72};
    if (is_integer(dtype)) fill = {-90, 90, true};
    expect_agreement(Scan{kind, axis, below(2) == 0, below(2) == 0},
                     {OperandSpec::contiguous({dtype, shape})}, fill,
                     scan_tolerance(dtype, kind, shape[axis], 2));
  });
}

}  // namespace
}  // namespace heddle::test
