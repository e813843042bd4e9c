// What works along an axis: scans, index reductions, top k, gather, scatter and padding.
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
  // Logarithms of up to 16, in float.
  if (kind == ScanKind::logaddexp) return {1, 2e-6};
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
        check(kind, OperandSpec::contiguous({dtype, {3, 1300}}), 0, random);  // in wide bundles
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

/// Numbers of which later ones are now and then far above or below the sum, infinite or huge.
std::vector<double> far_apart(int kind, std::int64_t n, Random& random) {
  std::uniform_real_distribution<float> about(-2, 2);
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = about(random);
    const bool now_and_then = random() % 23 == 0;
    const float jump = now_and_then ? 15 : 0, leap = now_and_then ? 90 : 0;
    const auto step = static_cast<float>(i);
    const float choices[] = {x + jump,     x - leap,      x + leap,
                             step * 3 + x, -step / 8 + x, now_and_then || i < 20 ? -INFINITY : x,
                             2e6f + x,     x + 3e4f,      i == n / 2 ? 1e30f : x};
    values.push_back(static_cast<double>(choices[kind]));
  }
  return values;
}

TEST(Scan, LogSumsOfNumbersFarApart) {
  at_every_level([] {
    Random random(6);
    for (int kind = 0; kind < 9; ++kind) {
      for (const Shape& shape : {Shape{1, 700}, Shape{3, 77}, Shape{77, 45}}) {
        const std::int64_t n = shape[0] * shape[1];
        const std::int64_t axis = shape[0] == 77 ? 0 : 1;
        std::vector<double> values = far_apart(kind, n, random);
        if (axis == 0) {  // along the axis, as they come
          const std::vector<double> lines = values;
          for (std::int64_t i = 0; i < n; ++i) {
            values[static_cast<std::size_t>(i)] =
                lines[static_cast<std::size_t>(i % 45 * 77 + i / 45)];
          }
        }
        const Tensor x = tensor_of(DType::f32, shape, values);
        for (const bool reverse : {false, true}) {
          for (const bool exclusive : {false, true}) {
            expect_on_cpu(Scan{ScanKind::logaddexp, axis, reverse, exclusive}, {x}, {1.3, 2.5e-6});
          }
        }
      }
    }
  });
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

TEST(ArgReduce, InWideBundles) {
  Random random(15);
  for (const DType dtype : {DType::f32, DType::f16, DType::u8}) {
    const Tensor x = random_tensor(dtype, {9, 1300}, random, {-3, 3, true});
    expect_on_cpu(ArgReduce{ArgReduceKind::max, 0, false}, {x});
    expect_on_cpu(ArgReduce{ArgReduceKind::min, 0, true}, {x});
  }
}

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

// ---- Gather and scatter

/// From the front, and of signed types also from the end.
Tensor random_indices(DType dtype, const Shape& shape, std::int64_t limit, Random& random) {
  const auto extent = static_cast<double>(limit);
  const bool negative = info(dtype).kind == DTypeKind::signed_int;
  return random_tensor(dtype, shape, random, {negative ? -extent : 0, extent - 1e-9});
}

TEST(GatherAxis, EveryDtypeIndexAndAxis) {
  Random random(9);
  for (const DType dtype : kPlain) {
    for (const DType index : kIntegers) {
      for (const std::int64_t axis : {0, 1, 2}) {
        for (const std::int64_t count : {0, 1, 9}) {
          Shape shape{4, 5, 70};
          const std::int64_t limit = shape[static_cast<std::size_t>(axis)];
          shape[static_cast<std::size_t>(axis)] = count;
          expect_on_cpu(GatherAxis{axis}, {random_tensor(dtype, {4, 5, 70}, random),
                                           random_indices(index, shape, limit, random)});
        }
      }
    }
    expect_on_cpu(GatherAxis{0}, {random_tensor(dtype, {1000}, random),
                                  random_indices(DType::i32, {1700}, 1000, random)});
    expect_on_cpu(GatherAxis{1}, {random_tensor(dtype, {0, 3}, random),
                                  random_indices(DType::i32, {0, 5}, 3, random)});
  }
}

constexpr ScatterKind kScatters[] = {ScatterKind::none, ScatterKind::sum, ScatterKind::prod,
                                     ScatterKind::max, ScatterKind::min};

TEST(ScatterAxis, EveryKindDtypeAndAxis) {
  Random random(10);
  for (const ScatterKind kind : kScatters) {
    const bool orders = kind == ScatterKind::max || kind == ScatterKind::min;
    for (const DType dtype : kPlain) {
      if (orders && dtype == DType::complex64) continue;
      // Each update is rounded: one of at most eight, of numbers that stay about 10 in size.
      const bool adds = kind == ScatterKind::sum || kind == ScatterKind::prod;
      const bool half = dtype == DType::f16 || dtype == DType::bf16;
      const double epsilon = half ? dtype == DType::f16 ? 0x1p-11 : 0x1p-8 : 0x1p-23;
      const Tolerance tolerance = adds ? Tolerance{4, 100 * epsilon} : Tolerance{};
      const Fill fill{0.7, 1.4, orders || kind == ScatterKind::none};
      for (const std::int64_t axis : {0, 1, 2}) {
        for (const std::int64_t count : {0, 1, 8}) {  // 8 in 5 or fewer: some twice
          Shape shape{4, 5, 5};
          shape[static_cast<std::size_t>(axis)] = count;
          const std::int64_t limit = axis == 0 ? 4 : 5;
          expect_on_cpu(ScatterAxis{axis, kind},
                        {random_tensor(dtype, {4, 5, 5}, random, fill),
                         random_indices(DType::i32, shape, limit, random),
                         random_tensor(dtype, shape, random, fill)},
                        tolerance);
        }
      }
    }
  }
}

TEST(ScatterAxis, ManyLinesAndLongOnes) {
  Random random(11);
  for (const ScatterKind kind : kScatters) {
    for (const DType index : kIntegers) {
      expect_on_cpu(ScatterAxis{0, kind}, {random_tensor(DType::i16, {100, 150}, random, {-9, 9}),
                                           random_indices(index, {7, 150}, 100, random),
                                           random_tensor(DType::i16, {7, 150}, random, {-9, 9})});
      expect_on_cpu(ScatterAxis{1, kind}, {random_tensor(DType::i64, {2, 99}, random, {-9, 9}),
                                           random_indices(index, {2, 1300}, 99, random),
                                           random_tensor(DType::i64, {2, 1300}, random, {-9, 9})});
    }
  }
}

TEST(ScatterAxis, TheLastOfSeveralStays) {
  const Ran ran =
      run_op(cpu_device(), ScatterAxis{0},
             {tensor_of(DType::f32, {3}, {1, 2, 3}), tensor_of(DType::i32, {4}, {1, 1, 0, 1}),
              tensor_of(DType::f32, {4}, {10, 20, 30, 40})});
  const Values out = decode(ran.outputs.at(0).operand, ran.outputs.at(0).bytes.data());
  EXPECT_EQ(out.real, (std::vector<Number>{30, 40, 3}));
}

TEST(AxisIndices, OutOfRangeAreNamed) {
  Random random(12);
  const Tensor x = random_tensor(DType::f32, {5, 4}, random);
  for (const double bad : {-6.0, 5.0, 2e9, -2147483648.0}) {
    const Tensor index = tensor_of(DType::i32, {1, 4}, {0, 4, bad, 1});
    for (const Op& op : {Op(GatherAxis{0}), Op(ScatterAxis{0})}) {
      std::vector<Tensor> inputs{x, index};
      if (std::holds_alternative<ScatterAxis>(op)) {
        inputs.push_back(random_tensor(DType::f32, {1, 4}, random));
      }
      try {
        run_op(cpu_device(), op, inputs);
        ADD_FAILURE() << to_string(op) << " took " << bad;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        const std::string what = error.what();
        EXPECT_NE(what.find("at element 2 is outside [-5, 5)"), std::string::npos) << what;
      }
    }
  }
  const Tensor huge = tensor_of(DType::u64, {1, 4}, {0, 0, 0, 1.8e19});
  EXPECT_THROW(run_op(cpu_device(), GatherAxis{0}, {x, huge}), Error);
}

// Threads share out the places of a line: order and bits must stay.
TEST(ScatterAxis, AFewLongLinesAreShared) {
  Random random(16);
  for (const ScatterKind kind : kScatters) {
    expect_on_cpu(ScatterAxis{0, kind},
                  {random_tensor(DType::f32, {37}, random, {0.9, 1.1}),
                   random_indices(DType::i32, {70000}, 37, random),
                   random_tensor(DType::f32, {70000}, random, {0.99, 1.01})},
                  {4, kind == ScatterKind::prod ? 1e30 : 1});
    expect_on_cpu(ScatterAxis{1, kind},
                  {random_tensor(DType::i32, {1, 5, 3}, random, {-9, 9}),
                   random_indices(DType::i64, {1, 40000, 3}, 5, random),
                   random_tensor(DType::i32, {1, 40000, 3}, random, {-9, 9})});
  }
}

TEST(AxisIndices, RowsAlone) {
  Random random(13);
  const Tensor x = random_tensor(DType::f32, {5, 9, 3}, random);
  const Tensor index = random_indices(DType::i32, {5, 20, 3}, 9, random);
  expect_rows_alone(cpu_device(), GatherAxis{1}, {x, index});
  for (const ScatterKind kind : kScatters) {
    expect_rows_alone(cpu_device(), ScatterAxis{1, kind},
                      {x, index, random_tensor(DType::f32, {5, 20, 3}, random)});
  }
}

// ---- Pad

TEST(Pad, EveryDtypeModeAndArrangement) {
  Random random(14);
  for (const DType dtype : kPlain) {
    const Tensor value = random_tensor(dtype, {}, random);
    for (const Arrangement arrangement : kAllArrangements) {
      const Tensor x = random_tensor(arranged(dtype, {3, 4, 5}, arrangement), random);
      for (const auto& [low, high] : {std::pair<Dims, Dims>{{1, 0, 2}, {0, 3, 1}},
                                      {{0, 0, 0}, {0, 0, 0}},
                                      {{0, 2, 0}, {0, 0, 9}},
                                      {{0, 0, 3}, {2, 0, 0}}}) {
        expect_on_cpu(Pad{Pad::Mode::constant, low, high}, {x, value});
        expect_on_cpu(Pad{Pad::Mode::edge, low, high}, {x});
      }
    }
    expect_on_cpu(Pad{Pad::Mode::constant, {2}, {700}}, {random_tensor(dtype, {3}, random), value});
    expect_on_cpu(Pad{Pad::Mode::constant, {}, {}}, {random_tensor(dtype, {}, random), value});
    expect_on_cpu(Pad{Pad::Mode::edge, {}, {}}, {random_tensor(dtype, {}, random)});
    expect_on_cpu(Pad{Pad::Mode::constant, {1, 2}, {0, 3}},
                  {random_tensor(dtype, {2, 0}, random), value});
    expect_on_cpu(Pad{Pad::Mode::constant, {1, 2}, {0, 3}},
                  {random_tensor(dtype, {0, 2}, random), value});
    expect_on_cpu(Pad{Pad::Mode::edge, {0, 2}, {0, 3}}, {random_tensor(dtype, {0, 2}, random)});
  }
}

TEST(Pad, RowsAlone) {
  Random random(15);
  const Tensor x = random_tensor(DType::f16, {5, 2, 3}, random);
  expect_rows_alone(cpu_device(), Pad{Pad::Mode::edge, {0, 1, 1}, {0, 0, 2}}, {x});
  expect_rows_alone(cpu_device(), Pad{Pad::Mode::constant, {0, 1, 1}, {0, 0, 2}},
                    {x, random_tensor(DType::f16, {}, random)});
}

}  // namespace
}  // namespace heddle::test
