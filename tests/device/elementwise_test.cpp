// Unary, binary, compare, select and gated_multiply: every kind, dtype and arrangement.
#include "device/on_device.h"
#include "device/tolerances.h"

namespace heddle::test {
namespace {

class Elementwise : public OnDevice {};
HEDDLE_ON_DEVICES(Elementwise);

constexpr int kUnaryKinds = static_cast<int>(UnaryKind::imag) + 1;
constexpr int kBinaryKinds = static_cast<int>(BinaryKind::right_shift) + 1;
constexpr int kCompareKinds = static_cast<int>(CompareKind::greater_equal) + 1;

/// Whether inference lets the op have operands of these dtypes.
bool is_defined(const Op& op, std::vector<TensorSpec> specs) {
  try {
    return !infer(op, specs).empty();
  } catch (const Error&) {
    return false;
  }
}

/// f32 and the half types; or where cases are sampled one of these.
std::vector<DType> float_likes() {
  std::vector<DType> dtypes = sample(std::vector{DType::f16, DType::bf16});
  dtypes.push_back(DType::f32);
  return dtypes;
}
/// The other plain dtypes; or where cases are sampled f64 and one more.
std::vector<DType> other_dtypes() {
  std::vector<DType> dtypes(std::begin(kIntegers), std::end(kIntegers));
  dtypes.push_back(DType::bool_);
  dtypes.push_back(DType::complex64);
  dtypes = sample(dtypes);
  dtypes.push_back(DType::f64);
  return dtypes;
}

const Shape kShapes[] = {{}, {0}, {1}, {3, 0, 2}, {7}, {16}, {33}, {65}, {3, 5, 19}, {513}, {1030}};

void check_unary(UnaryKind kind, DType dtype, Random& random) {
  const Op op = Unary{kind};
  if (!is_defined(op, {{dtype, {1}}})) return;
  const Tolerance tolerance = unary_tolerance(kind, dtype);
  for (const Shape& shape : sample(kShapes)) {
    expect_on_device(op, {random_tensor(dtype, shape, random, elementwise_fill(dtype))}, tolerance);
  }
  for (const Arrangement arrangement : sample(kAllArrangements)) {
    const OperandSpec x = arranged(dtype, {5, 3, 37}, arrangement);
    expect_on_device(op, {random_tensor(x, random, elementwise_fill(dtype))}, tolerance);
  }
}

TEST_P(Elementwise, UnaryFloats) {
  at_every_level_on_device([] {
    Random random(1);
    for (int kind = 0; kind < kUnaryKinds; ++kind) {
      for (const DType dtype : float_likes())
        check_unary(static_cast<UnaryKind>(kind), dtype, random);
    }
  });
}

TEST_P(Elementwise, UnaryOthers) {
  Random random(2);
  for (int kind = 0; kind < kUnaryKinds; ++kind) {
    for (const DType dtype : other_dtypes())
      check_unary(static_cast<UnaryKind>(kind), dtype, random);
  }
}

struct Pair {
  Shape a, b;
};
const Pair kPairs[] = {{{}, {}},      {{5, 33}, {5, 33}},  {{5, 33}, {33}},     {{5, 1}, {1, 33}},
                       {{}, {5, 33}}, {{2, 1, 4}, {3, 1}}, {{0}, {1}},          {{2, 0, 3}, {1, 3}},
                       {{1030}, {1}}, {{3, 700}, {3, 1}},  {{700, 3}, {700, 3}}};

void check_pair(const Op& op, DType dtype, Random& random, Tolerance tolerance) {
  if (!is_defined(op, {{dtype, {1}}, {dtype, {1}}})) return;
  const Fill fill = elementwise_fill(dtype);
  for (const auto& [a, b] : sample(kPairs)) {
    expect_on_device(op,
                     {random_tensor(dtype, a, random, fill), random_tensor(dtype, b, random, fill)},
                     tolerance);
  }
  for (const Arrangement arrangement : sample(kAllArrangements)) {
    const OperandSpec a = arranged(dtype, {4, 3, 37}, arrangement);
    const OperandSpec b = arranged(dtype, {3, 37}, arrangement);
    expect_on_device(op, {random_tensor(a, random, fill), random_tensor(b, random, fill)},
                     tolerance);
  }
}

TEST_P(Elementwise, BinaryFloats) {
  at_every_level_on_device([] {
    Random random(3);
    for (int k = 0; k < kBinaryKinds; ++k) {
      const auto kind = static_cast<BinaryKind>(k);
      for (const DType dtype : float_likes()) {
        check_pair(Binary{kind}, dtype, random, binary_tolerance(kind, dtype));
      }
    }
  });
}

TEST_P(Elementwise, BinaryOthers) {
  Random random(4);
  for (int k = 0; k < kBinaryKinds; ++k) {
    const auto kind = static_cast<BinaryKind>(k);
    for (const DType dtype : other_dtypes()) {
      check_pair(Binary{kind}, dtype, random, binary_tolerance(kind, dtype));
    }
  }
}

TEST_P(Elementwise, Compare) {
  Random random(5);
  for (int kind = 0; kind < kCompareKinds; ++kind) {
    for (const DType dtype : sample(kPlain, 4)) {
      const Compare op{static_cast<CompareKind>(kind)};
      check_pair(op, dtype, random, {});
      if (!is_defined(op, {{dtype, {1}}, {dtype, {1}}})) continue;
      const auto x = random_tensor(dtype, {4, 37}, random, elementwise_fill(dtype));
      expect_on_device(op, {x, x}, {});  // random floats are hardly ever equal
    }
  }
}

TEST_P(Elementwise, SelectMovesBits) {
  Random random(6);
  for (const DType dtype : kPlain) {
    for (const Arrangement arrangement : sample(kAllArrangements)) {
      const OperandSpec condition = arranged(DType::bool_, {4, 1, 37}, arrangement);
      const OperandSpec a = arranged(dtype, {4, 3, 37}, arrangement);
      const OperandSpec b = arranged(dtype, {3, 1}, arrangement);
      expect_on_device(Select{},
                       {random_tensor(condition, random), random_tensor(a, random, {-9, 9, true}),
                        random_tensor(b, random, {-9, 9, true})});
    }
    expect_on_device(Select{},
                     {random_tensor(DType::bool_, {}, random), random_tensor(dtype, {0}, random),
                      random_tensor(dtype, {1}, random)});
  }
}

TEST_P(Elementwise, GatedMultiply) {
  at_every_level_on_device([] {
    Random random(7);
    for (const UnaryKind act :
         {UnaryKind::silu, UnaryKind::gelu, UnaryKind::gelu_tanh, UnaryKind::relu}) {
      for (const DType dtype : kFloats) {
        for (const Shape& shape : sample(kShapes)) {
          expect_on_device(
              GatedMultiply{act},
              {random_tensor(dtype, shape, random), random_tensor(dtype, shape, random)},
              unary_tolerance(act, dtype));
        }
        for (const Arrangement arrangement : sample(kAllArrangements)) {
          const OperandSpec x = arranged(dtype, {5, 3, 37}, arrangement);
          expect_on_device(GatedMultiply{act}, {random_tensor(x, random), random_tensor(x, random)},
                           unary_tolerance(act, dtype));
        }
      }
    }
  });
}

TEST_P(Elementwise, BigIsSharedOut) {
  Random random(8);
  const Shape shape{301, 517};
  expect_on_device(Unary{UnaryKind::silu}, {random_tensor(DType::f16, shape, random)}, {0.51, 0});
  expect_on_device(Binary{BinaryKind::add},
                   {random_tensor(DType::f32, shape, random),
                    random_tensor(arranged(DType::f32, shape, Arrangement::transposed), random)});
}

TEST_P(Elementwise, RowsAlone) {
  at_every_level_on_device([] {
    Random random(9);
    for (const DType dtype : kFloatLike) {
      for (const std::int64_t width : sample(std::vector<std::int64_t>{1, 5, 16, 67, 1100})) {
        const Tensor x = random_tensor(dtype, {6, width}, random);
        const Tensor y = random_tensor(arranged(dtype, {6, width}, Arrangement::sliced), random);
        expect_rows_alone_on_device(Unary{UnaryKind::gelu}, {x});
        expect_rows_alone_on_device(GatedMultiply{UnaryKind::silu}, {x, y});
        expect_rows_alone_on_device(Binary{BinaryKind::multiply},
                                    {y, random_tensor(dtype, {width}, random)});
      }
    }
  });
}

TEST_P(Elementwise, RefusesPackedOperands) {
  const OperandSpec packed{{DType::f32, {16, 4}}, Layout::packed(LayoutKind::panel16)};
  const OperandSpec out = OperandSpec::contiguous(packed.spec);
  const Prepared prepared =
      device().prepare(Unary{UnaryKind::exp}, std::vector{packed}, std::vector{out});
  EXPECT_FALSE(prepared);
  EXPECT_NE(prepared.reason.find("panel16"), std::string::npos) << prepared.reason;
}

}  // namespace
}  // namespace heddle::test
