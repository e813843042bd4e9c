// Scans, index reductions and top k along every axis.
#include <array>
#include <cmath>
#include <cstring>

#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

constexpr ScanKind kScans[] = {ScanKind::sum, ScanKind::prod, ScanKind::max, ScanKind::min,
                               ScanKind::logaddexp};

bool defined(ScanKind kind, DType dtype) {
  if (kind == ScanKind::logaddexp) return is_floating(dtype);
  return dtype != DType::complex64 || kind == ScanKind::sum || kind == ScanKind::prod;
}

Tolerance tolerance_for(ScanKind kind, DType dtype) {
  const bool exact = kind == ScanKind::max || kind == ScanKind::min;
  if (exact) return {};
  if (dtype == DType::f64) return {64, 1e-13};
  if (dtype == DType::complex64) return {4, 1e-5};
  return {0.51, 1e-12};  // rounded once
}

void check(ScanKind kind, const OperandSpec& x, std::int64_t axis, Random& random) {
  if (!defined(kind, x.spec.dtype)) return;
  const bool exact = kind == ScanKind::max || kind == ScanKind::min;
  Fill fill{-2, 2, exact};
  if (kind == ScanKind::prod && !is_integer(x.spec.dtype)) fill = {0.8, 1.2};
  if (kind == ScanKind::prod && x.spec.dtype == DType::complex64) fill = {0.6, 0.8};
  if (is_integer(x.spec.dtype)) fill = {-90, 90, true};
  for (const bool reverse : {false, true}) {
    for (const bool exclusive : {false, true}) {
      expect_on_cpu(Scan{kind, axis, reverse, exclusive}, {random_tensor(x, random, fill)},
                    tolerance_for(kind, x.spec.dtype));
    }
  }
}

TEST(Scan, EveryKindDtypeAndAxis) {
  at_every_level([] {
    Random random(1);
    for (const ScanKind kind : kScans) {
      for (const DType dtype : kPlain) {
        for (const std::int64_t axis : {0, 1, 2}) {
          check(kind, OperandSpec::contiguous({dtype, {3, 5, 35}}), axis, random);
        }
        check(kind, OperandSpec::contiguous({dtype, {7, 130}}), 0, random);
      }
    }
  });
}

TEST(Scan, EdgesAndLongLines) {
  Random random(2);
  for (const ScanKind kind : kScans) {
    for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::i8, DType::bool_}) {
      for (const std::int64_t n : {0, 1, 511, 512, 513, 1025}) {
        check(kind, OperandSpec::contiguous({dtype, {n}}), 0, random);
        check(kind, OperandSpec::contiguous({dtype, {2, n}}), 1, random);
        check(kind, OperandSpec::contiguous({dtype, {n, 2}}), 0, random);
      }
      check(kind, OperandSpec::contiguous({dtype, {0, 4}}), 1, random);
      check(kind, OperandSpec::contiguous({dtype, {4, 0}}), 0, random);
    }
    for (const DType dtype : {DType::bf16, DType::f32, DType::i32}) {  // in chunks
      check(kind, OperandSpec::contiguous({dtype, {40000}}), 0, random);
      check(kind, OperandSpec::contiguous({dtype, {2, 33000, 2}}), 1, random);
    }
  }
}

TEST(Scan, NanAndInfinitiesStay) {
  const Tensor x = tensor_of(DType::f32, {2, 4}, {1, NAN, 2, 3, -INFINITY, -INFINITY, 5, INFINITY});
  for (const ScanKind kind : kScans) {
    for (const bool reverse : {false, true}) {
      expect_on_cpu(Scan{kind, 1, reverse, false}, {x}, {1, 0});
      expect_on_cpu(Scan{kind, 1, reverse, true}, {x}, {1, 0});
    }
  }
}

TEST(Scan, RowsAlone) {
  Random random(3);
  for (const ScanKind kind : kScans) {
    for (const DType dtype : kFloatLike) {
      expect_rows_alone(cpu_device(), Scan{kind, 1},
                        {random_tensor(dtype, {5, 600, 3}, random, {0.5, 1.5})});
      expect_rows_alone(cpu_device(), Scan{kind, 2, true},
                        {random_tensor(dtype, {5, 2, 70}, random, {0.5, 1.5})});
    }
    expect_rows_alone(cpu_device(), Scan{kind, 1}, {random_tensor(DType::f32, {3, 33000}, random)});
  }
}

TEST(Scan, OtherLayoutsAreRefusedAndNamed) {
  Random random(4);
  const Tensor x = random_tensor(arranged(DType::f32, {3, 4}, Arrangement::transposed), random);
  EXPECT_NE(run_op(cpu_device(), Scan{}, {x}).refused.find("scan: operand 0 must be contiguous"),
            std::string::npos);
}

// ---- ArgReduce

TEST(ArgReduce, EveryKindDtypeAndAxis) {
  Random random(5);
  for (const ArgReduceKind kind : {ArgReduceKind::max, ArgReduceKind::min}) {
    for (const DType dtype : kPlain) {
      if (dtype == DType::complex64) continue;
      for (const std::int64_t axis : {0, 1, 2}) {
        for (const bool keepdims : {false, true}) {
          // Few different values, so that there are equals.
          expect_on_cpu(ArgReduce{kind, axis, keepdims},
                        {random_tensor(dtype, {3, 5, 130}, random, {-3, 3, true})});
        }
      }
      for (const std::int64_t n : {1, 2, 511, 512, 513, 1300}) {
        expect_on_cpu(ArgReduce{kind, 0}, {random_tensor(dtype, {n}, random)});
        expect_on_cpu(ArgReduce{kind, 0}, {random_tensor(dtype, {n, 3}, random)});
      }
      expect_on_cpu(ArgReduce{kind, 1}, {random_tensor(dtype, {0, 3}, random)});
      expect_on_cpu(ArgReduce{kind, 0}, {random_tensor(dtype, {0, 0}, random)});
    }
  }
}

TEST(ArgReduce, TheFirstOfEqualsAndTheFirstNanWin) {
  const std::pair<std::vector<double>, std::array<std::uint32_t, 2>> cases[] = {
      {{1, 3, 3, 1}, {1, 0}},
      {{-0.0, 0.0, 0.0, -0.0}, {0, 0}},
      {{1, NAN, 5, NAN}, {1, 1}},
      {{NAN, -INFINITY, INFINITY, NAN}, {0, 0}},
      {{-INFINITY, -INFINITY, -INFINITY, -INFINITY}, {0, 0}},
  };
  for (const DType dtype : kFloats) {
    for (const auto& [values, want] : cases) {
      const Tensor x = tensor_of(dtype, {4}, values);
      for (const auto kind : {ArgReduceKind::max, ArgReduceKind::min}) {
        const Ran ran = run_op(cpu_device(), ArgReduce{kind, 0}, {x});
        std::uint32_t got;
        std::memcpy(&got, ran.outputs.at(0).bytes.data(), sizeof got);
        EXPECT_EQ(got, want[static_cast<std::size_t>(kind)]) << to_string(dtype);
      }
    }
  }
}

TEST(ArgReduce, RowsAlone) {
  Random random(6);
  expect_rows_alone(cpu_device(), ArgReduce{ArgReduceKind::max, 1},
                    {random_tensor(DType::f16, {5, 600, 3}, random)});
  expect_rows_alone(cpu_device(), ArgReduce{ArgReduceKind::min, 2, true},
                    {random_tensor(DType::i32, {5, 2, 70}, random)});
}

// ---- TopK

TEST(TopK, EveryDtypeAndCount) {
  Random random(7);
  for (const DType dtype : kPlain) {
    if (dtype == DType::complex64) continue;
    for (const std::int64_t n : {1, 2, 33, 513, 1300}) {
      for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, n / 3, n}) {
        expect_on_cpu(TopK{k}, {random_tensor(dtype, {2, 3, n}, random, {-9, 9, true})});
      }
    }
    expect_on_cpu(TopK{0}, {random_tensor(dtype, {2, 0}, random)});
    expect_on_cpu(TopK{2}, {random_tensor(dtype, {0, 3}, random)});
    expect_on_cpu(TopK{2}, {random_tensor(dtype, {3}, random)});
  }
}

TEST(TopK, NansFirstAndEqualsInOrder) {
  const Tensor x = tensor_of(DType::f32, {8}, {1, NAN, 2, 2, -0.0, 0.0, NAN, INFINITY});
  const Ran ran = run_op(cpu_device(), TopK{8}, {x});
  const Values indices = decode(ran.outputs.at(1).operand, ran.outputs.at(1).bytes.data());
  EXPECT_EQ(indices.real, (std::vector<Number>{1, 6, 7, 2, 3, 0, 4, 5}));
}

TEST(TopK, RowsAlone) {
  Random random(8);
  expect_rows_alone(cpu_device(), TopK{7}, {random_tensor(DType::bf16, {5, 2, 700}, random)});
}

}  // namespace
}  // namespace heddle::test
