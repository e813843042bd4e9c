// reduce over every kind, dtype and set of axes, and softmax.
#include <cmath>

#include "device/cpu_levels.h"
#include "device/tolerances.h"

namespace heddle::test {
namespace {

constexpr ReduceKind kKinds[] = {ReduceKind::sum, ReduceKind::mean, ReduceKind::max,
                                 ReduceKind::min, ReduceKind::prod, ReduceKind::all,
                                 ReduceKind::any};

std::int64_t reduced_count(const Shape& shape, const Dims& axes) {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= shape[static_cast<std::size_t>(axis)];
  return count;
}

void check(ReduceKind kind, const OperandSpec& x, const Dims& axes, bool keepdims, Random& random) {
  const DType dtype = x.spec.dtype;
  const Op op = Reduce{kind, axes, keepdims};
  const bool complex_order =
      dtype == DType::complex64 && (kind == ReduceKind::max || kind == ReduceKind::min);
  if (complex_order) return;
  expect_on_cpu(op, {random_tensor(x, random, reduce_fill(dtype, kind))},
                reduce_tolerance(dtype, kind, reduced_count(x.spec.shape, axes), 2));
}

TEST(Reduce, EveryKindDtypeAndArrangement) {
  at_every_level([] {
    Random random(1);
    const Dims axes[] = {{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}, {}};
    for (const ReduceKind kind : kKinds) {
      for (const DType dtype : kPlain) {
        for (const Arrangement arrangement : kAllArrangements) {
          for (const Dims& reduced : axes) {
            check(kind, arranged(dtype, {5, 3, 35}, arrangement), reduced, reduced.size() == 2,
                  random);
          }
        }
      }
    }
  });
}

TEST(Reduce, LongAndEdgeRows) {
  at_every_level([] {
    Random random(2);
    for (const ReduceKind kind : kKinds) {
      for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8}) {
        for (const std::int64_t n : {1, 31, 32, 33, 511, 512, 513, 1025}) {
          check(kind, arranged(dtype, {3, n}, Arrangement::contiguous), {1}, false, random);
          check(kind, arranged(dtype, {n, 3}, Arrangement::contiguous), {0}, false, random);
        }
      }
      check(kind, arranged(DType::f32, {}, Arrangement::contiguous), {}, false, random);
      check(kind, arranged(DType::f32, {2, 1, 130}, Arrangement::contiguous), {1}, true, random);
    }
    check(ReduceKind::sum, arranged(DType::f32, {2, 70000}, Arrangement::contiguous), {1}, false,
          random);
    check(ReduceKind::sum, arranged(DType::f32, {3000, 150}, Arrangement::contiguous), {0}, false,
          random);
    check(ReduceKind::mean, arranged(DType::f32, {700, 9, 70}, Arrangement::contiguous), {0, 2},
          false, random);
    for (const std::int64_t rows : {2, 33, 65, 129, 700}) {  // more columns than a tile has
      check(ReduceKind::sum, arranged(DType::f32, {rows, 1100}, Arrangement::contiguous), {0},
            false, random);
      check(ReduceKind::max, arranged(DType::bf16, {rows, 1100}, Arrangement::contiguous), {0},
            false, random);
      check(ReduceKind::prod, arranged(DType::f64, {rows, 1100}, Arrangement::contiguous), {0},
            false, random);
    }
  });
}

TEST(Reduce, ColumnsOfRowsBackwards) {
  Random random(7);
  for (const ReduceKind kind : kKinds) {
    const OperandSpec rows{{DType::f32, {300, 70}}, {LayoutKind::strided, {-70, 1}}};
    check(kind, rows, {0}, false, random);
    const OperandSpec planes{{DType::f32, {4, 30, 70}}, {LayoutKind::strided, {-2100, -70, 1}}};
    check(kind, planes, {1}, false, random);
  }
}

TEST(Reduce, OfNothing) {
  Random random(3);
  for (const DType dtype : kPlain) {
    for (const ReduceKind kind :
         {ReduceKind::sum, ReduceKind::prod, ReduceKind::all, ReduceKind::any}) {
      expect_on_cpu(Reduce{kind, {0}, false}, {random_tensor(dtype, {0, 3}, random)});
      expect_on_cpu(Reduce{kind, {1}, true}, {random_tensor(dtype, {3, 0}, random)});
      expect_on_cpu(Reduce{kind, {1}, true}, {random_tensor(dtype, {0, 3}, random)});
    }
  }
}

TEST(Reduce, BitsDoNotDependOnTheLayout) {
  at_every_level([] {
    Random random(4);
    for (const DType dtype : {DType::f32, DType::f16}) {
      for (const std::int64_t count : {7, 300}) {  // narrow columns, and wide ones
        const Tensor rows = random_tensor(dtype, {count, 1500}, random);
        Tensor columns{OperandSpec::contiguous({dtype, {1500, count}}), rows.bytes};
        columns.operand.layout.strides = {1, 1500};
        const Ran first = run_op(cpu_device(), Contiguous{}, {columns});
        for (const ReduceKind kind : kKinds) {
          const Ran a = run_op(cpu_device(), Reduce{kind, {1}, false}, {rows});
          const Ran b = run_op(cpu_device(), Reduce{kind, {0}, false}, {columns});
          const Ran c = run_op(cpu_device(), Reduce{kind, {0}, false}, first.outputs);
          EXPECT_TRUE(a.outputs[0].bytes == b.outputs[0].bytes) << to_string(kind);
          EXPECT_TRUE(a.outputs[0].bytes == c.outputs[0].bytes) << to_string(kind);
        }
      }
    }
  });
}

TEST(Reduce, RowsAlone) {
  at_every_level([] {
    Random random(5);
    for (const ReduceKind kind : kKinds) {
      for (const DType dtype : kFloatLike) {
        for (const std::int64_t width : {1, 17, 600}) {
          const Tensor x = random_tensor(dtype, {5, width, 3}, random);
          expect_rows_alone(cpu_device(), Reduce{kind, {1}, false}, {x});
          expect_rows_alone(cpu_device(), Reduce{kind, {1, 2}, true}, {x});
        }
      }
    }
  });
}

TEST(Reduce, ANanAnywhereInALongRow) {
  static constexpr std::int64_t kPlaces[] = {0,   1,   15,   16,   17,   300, 511,
                                             512, 513, 1000, 1023, 1024, 1099};
  static constexpr std::int64_t kRows = std::size(kPlaces), kWidth = 1100;
  at_every_level([] {
    Random random(8);
    for (const DType dtype : {DType::f32, DType::f16, DType::f64}) {
      std::vector<double> values(static_cast<std::size_t>((kRows + 1) * kWidth));
      for (double& value : values) value = static_cast<double>(random() % 64) - 32;
      for (std::int64_t i = 0; i < kRows; ++i) {
        values[static_cast<std::size_t>(i * kWidth + kPlaces[i])] = NAN;
      }
      const Tensor rows = tensor_of(dtype, {kRows + 1, kWidth}, values);
      Tensor columns{OperandSpec::contiguous({dtype, {kWidth, kRows + 1}}), rows.bytes};
      columns.operand.layout.strides = {1, kWidth};
      for (const ReduceKind kind : {ReduceKind::max, ReduceKind::min}) {
        expect_on_cpu(Reduce{kind, {1}, false}, {rows});
        expect_on_cpu(Reduce{kind, {0}, false}, {columns});
      }
      for (const ArgReduceKind kind : {ArgReduceKind::max, ArgReduceKind::min}) {
        expect_on_cpu(ArgReduce{kind, 1, false}, {rows});
      }
    }
  });
}

// ---- Softmax

TEST(Softmax, EveryDtypeAndArrangement) {
  at_every_level([] {
    Random random(6);
    for (const DType dtype : kFloats) {
      const bool half = dtype == DType::f16 || dtype == DType::bf16;
      const Tolerance tolerance{half ? 0.51 : 16, 1e-37};
      for (const std::int64_t n : {1, 2, 15, 16, 17, 33, 512, 513, 1500}) {
        expect_on_cpu(Softmax{}, {random_tensor(dtype, {3, n}, random, {-8, 8})}, tolerance);
      }
      for (const Shape& shape : {Shape{0}, Shape{2, 0}, Shape{0, 3}, Shape{5}}) {
        expect_on_cpu(Softmax{}, {random_tensor(dtype, shape, random)}, tolerance);
      }
      for (const Arrangement arrangement : kAllArrangements) {
        expect_on_cpu(Softmax{},
                      {random_tensor(arranged(dtype, {4, 3, 35}, arrangement), random, {-8, 8})},
                      tolerance);
      }
    }
  });
}

TEST(Softmax, MaskedRowsAreZerosAndNanSpreads) {
  at_every_level([] {
    for (const DType dtype : kFloats) {
      const Tensor x = tensor_of(dtype, {4, 3},
                                 {-INFINITY, -INFINITY, -INFINITY,  //
                                  -INFINITY, 1, 2,                  //
                                  NAN, 1, -INFINITY,                //
                                  300, -300, 299});
      expect_on_cpu(Softmax{}, {x}, {dtype == DType::f32 || dtype == DType::f64 ? 4.0 : 0.51, 0});
    }
  });
}

TEST(Softmax, RowsAlone) {
  at_every_level([] {
    Random random(7);
    for (const DType dtype : kFloats) {
      for (const std::int64_t width : {1, 13, 700}) {
        expect_rows_alone(cpu_device(), Softmax{}, {random_tensor(dtype, {6, 2, width}, random)});
      }
    }
  });
}

}  // namespace
}  // namespace heddle::test
