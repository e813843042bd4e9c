// Gathering and scattering slices.
#include <cmath>

#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

constexpr ScatterKind kScatters[] = {ScatterKind::none, ScatterKind::sum, ScatterKind::prod,
                                     ScatterKind::max, ScatterKind::min};

/// Where slices of `size` begin, counted from the front and, for signed types, from the end.
Tensor starts(DType dtype, const Shape& shape, std::int64_t extent, std::int64_t size,
              Random& random) {
  std::vector<double> values(static_cast<std::size_t>(elements(shape)));
  const bool negative = info(dtype).kind == DTypeKind::signed_int;
  for (double& value : values) {
    value = static_cast<double>(random() % static_cast<std::uint64_t>(extent - size + 1));
    if (negative && random() % 2 == 0) value -= static_cast<double>(extent);
  }
  return tensor_of(dtype, shape, values);
}

Shape joined(Shape first, const Shape& then) {
  for (const std::int64_t extent : then) first.push_back(extent);
  return first;
}

/// Indices for each of `axes` of x, which slices of `sizes` begin at.
std::vector<Tensor> with_starts(Tensor x, const Dims& axes, const Shape& sizes,
                                const Shape& indices, DType dtype, Random& random) {
  const Shape shape = x.operand.spec.shape;
  std::vector<Tensor> inputs{std::move(x)};
  for (const std::int64_t axis : axes) {
    inputs.push_back(starts(dtype, indices, shape[axis], sizes[axis], random));
  }
  return inputs;
}

struct Case {
  Shape x;
  Dims axes;
  Shape sizes, indices;
};
const Case kCases[] = {
    {{9}, {0}, {1}, {5}},
    {{9}, {0}, {4}, {3, 2}},
    {{9, 5}, {0}, {1, 5}, {7}},
    {{9, 5}, {1}, {9, 1}, {7}},
    {{9, 5}, {1, 0}, {2, 3}, {4}},
    {{4, 6, 70}, {0, 2}, {1, 6, 33}, {5}},
    {{4, 6, 7}, {1}, {4, 2, 7}, {}},
    {{4, 6, 7}, {}, {3, 2, 5}, {}},
    {{4, 6, 7}, {0, 1, 2}, {1, 1, 1}, {2, 2}},
    {{1, 6, 1}, {1, 0}, {1, 2, 1}, {3}},
    {{2, 3, 4, 5}, {3, 1}, {2, 1, 4, 2}, {2}},
    {{7, 3}, {0}, {2, 0}, {4}},
    {{7, 3}, {0}, {2, 3}, {0}},
    {{0, 3}, {1}, {0, 2}, {4}},
    {{}, {}, {}, {}},
};

TEST(GatherSlices, EveryDtypeAndCase) {
  Random random(1);
  for (const DType dtype : kPlain) {
    for (const auto& [x, axes, sizes, indices] : kCases) {
      expect_on_cpu(Gather{axes, sizes}, with_starts(random_tensor(dtype, x, random), axes, sizes,
                                                     indices, DType::i32, random));
    }
  }
}

TEST(GatherSlices, EveryTypeOfIndexAndArrangement) {
  Random random(2);
  for (const DType index : kIntegers) {
    const Tensor x = random_tensor(DType::f32, {20, 8}, random);
    expect_on_cpu(Gather{{0, 1}, {3, 2}}, with_starts(x, {0, 1}, {3, 2}, {700}, index, random));
    Tensor along = starts(index, {6, 4}, 20, 1, random);
    for (const Arrangement arrangement : kArrangements) {
      const OperandSpec operand = arranged(index, {6, 4}, arrangement);
      Tensor strided = random_tensor(operand, random, {0, 19.9});
      expect_on_cpu(Gather{{0}, {1, 8}}, {x, strided});
    }
    expect_on_cpu(Gather{{0}, {1, 8}}, {x, along});
  }
}

TEST(GatherSlices, EverySizeOfRowsAndLargeSlices) {
  Random random(3);
  for (const std::int64_t width : {1, 2, 3, 4, 8, 15, 16, 17, 32, 64, 100, 600, 1024}) {
    const Tensor x = random_tensor(DType::f32, {50, width}, random);
    expect_on_cpu(Gather{{0}, {1, width}},
                  with_starts(x, {0}, {1, width}, {1300}, DType::i64, random));
  }
  const Tensor large = random_tensor(DType::f16, {6, 300, 70}, random);
  expect_on_cpu(Gather{{0, 1}, {3, 200, 70}},
                with_starts(large, {0, 1}, {3, 200, 70}, {3}, DType::i32, random));
  expect_on_cpu(Gather{{2}, {6, 300, 50}},
                with_starts(large, {2}, {6, 300, 50}, {}, DType::i32, random));
}

TEST(GatherSlices, EveryArrangementOfX) {
  Random random(9);
  for (const Arrangement arrangement : kArrangements) {
    for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::complex64}) {
      const Tensor x = random_tensor(arranged(dtype, {6, 5, 8}, arrangement), random);
      for (const auto& [axes, sizes] : {std::pair<Dims, Shape>{{0}, {1, 5, 8}},
                                        {{2, 0}, {2, 3, 4}},
                                        {{1}, {6, 1, 8}},
                                        {{0, 1, 2}, {1, 1, 1}}}) {
        expect_on_cpu(Gather{axes, sizes}, with_starts(x, axes, sizes, {3, 2}, DType::i32, random));
      }
    }
  }
}

TEST(GatherSlices, RowsAlone) {
  Random random(4);
  const Tensor x = random_tensor(DType::f32, {9, 5}, random);
  expect_rows_alone(cpu_device(), Gather{{0, 1}, {2, 3}},
                    with_starts(x, {0, 1}, {2, 3}, {5, 2}, DType::i32, random));
}

TEST(ScatterSlices, EveryKindDtypeAndCase) {
  Random random(5);
  for (const ScatterKind kind : kScatters) {
    const bool orders = kind == ScatterKind::max || kind == ScatterKind::min;
    const bool exact = orders || kind == ScatterKind::none;
    for (const DType dtype : kPlain) {
      if (orders && dtype == DType::complex64) continue;
      const bool half = dtype == DType::f16 || dtype == DType::bf16;
      const double epsilon = half ? dtype == DType::f16 ? 0x1p-11 : 0x1p-8 : 0x1p-23;
      // Each update is rounded: up to seven, of numbers that stay about 10 in size.
      const Tolerance tolerance = exact ? Tolerance{} : Tolerance{4, 100 * epsilon};
      const Fill fill{0.7, 1.4, exact};
      for (const auto& [x, axes, sizes, indices] : kCases) {
        std::vector<Tensor> inputs = with_starts(random_tensor(dtype, x, random, fill), axes, sizes,
                                                 indices, DType::i64, random);
        inputs.push_back(random_tensor(dtype, joined(indices, sizes), random, fill));
        expect_on_cpu(Scatter{kind, axes}, inputs, tolerance);
      }
    }
  }
}

// Threads share out the destination: order and bits must stay.
TEST(ScatterSlices, ManyUpdatesAreShared) {
  Random random(6);
  for (const ScatterKind kind : kScatters) {
    const auto check = [&](DType dtype, const Shape& x, const Dims& axes, const Shape& sizes,
                           const Shape& indices, Fill fill, Tolerance tolerance) {
      std::vector<Tensor> inputs = with_starts(random_tensor(dtype, x, random, fill), axes, sizes,
                                               indices, DType::i32, random);
      inputs.push_back(random_tensor(dtype, joined(indices, sizes), random, fill));
      expect_on_cpu(Scatter{kind, axes}, inputs, tolerance);
    };
    check(DType::i32, {1000}, {0}, {1}, {70000}, {-9, 9}, {});
    check(DType::i64, {37, 40}, {0, 1}, {3, 20}, {2000}, {-9, 9}, {});
    check(DType::f32, {90, 100}, {0}, {1, 100}, {900}, {0.99, 1.01}, {8, 1e-3});
    check(DType::u8, {500, 300}, {0, 1}, {400, 200}, {2}, {0, 9}, {});
    check(DType::bf16, {50, 700}, {0}, {1, 700}, {100}, {0.99, 1.01}, {4, 0.5});
  }
}

TEST(ScatterSlices, TheLastOfSeveralStays) {
  const Ran ran =
      run_op(cpu_device(), Scatter{ScatterKind::none, {0}},
             {tensor_of(DType::f32, {4}, {1, 2, 3, 4}), tensor_of(DType::i32, {3}, {1, -4, 1}),
              tensor_of(DType::f32, {3, 2}, {10, 11, 20, 21, 30, 31})});
  const Values out = decode(ran.outputs.at(0).operand, ran.outputs.at(0).bytes.data());
  EXPECT_EQ(out.real, (std::vector<Number>{20, 30, 31, 4}));
}

TEST(ScatterSlices, WhatIsOutsideIsNamed) {
  Random random(7);
  const Tensor x = random_tensor(DType::f32, {5, 4}, random);
  const auto message = [&](const Op& op, std::vector<Tensor> inputs) -> std::string {
    try {
      run_op(cpu_device(), op, inputs);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    ADD_FAILURE() << to_string(op) << " took it";
    return {};
  };
  const Tensor updates = random_tensor(DType::f32, {3, 2, 4}, random);
  for (const double bad : {-6.0, 5.0, 2e9, -2147483648.0}) {
    const Tensor index = tensor_of(DType::i32, {3}, {0, 3, bad});
    for (const std::string& said : {message(Gather{{0}, {2, 4}}, {x, index}),
                                    message(Scatter{ScatterKind::sum, {0}}, {x, index, updates})}) {
      EXPECT_NE(said.find("at element 2 is outside [-5, 5)"), std::string::npos) << said;
    }
  }
  for (const double beyond : {4.0, -1.0}) {
    const Tensor index = tensor_of(DType::i32, {3}, {0, beyond, 3});
    for (const std::string& said :
         {message(Gather{{0}, {2, 4}}, {x, index}),
          message(Scatter{ScatterKind::none, {0}}, {x, index, updates})}) {
      EXPECT_NE(said.find("slice of 2 from index"), std::string::npos) << said;
      EXPECT_NE(said.find("at element 1 reaches outside [0, 5)"), std::string::npos) << said;
    }
  }
  const Tensor huge = tensor_of(DType::u64, {1}, {18446744073709549568.0});
  EXPECT_NE(message(Gather{{0}, {1, 4}}, {x, huge}).find("[0, 5)"), std::string::npos);
  // Of nothing, no index is good.
  const Tensor none = random_tensor(DType::f32, {0, 4}, random);
  message(Gather{{0}, {0, 4}}, {none, tensor_of(DType::i32, {1}, {0})});
}

TEST(ScatterSlices, OtherLayoutsAreRefusedAndNamed) {
  Random random(8);
  const Tensor x = random_tensor(arranged(DType::f32, {5, 4}, Arrangement::transposed), random);
  const Tensor index = tensor_of(DType::i32, {1}, {0});
  const Tensor updates = random_tensor(DType::f32, {1, 1, 4}, random);
  EXPECT_NE(run_op(cpu_device(), Scatter{ScatterKind::none, {0}}, {x, index, updates})
                .refused.find("contiguous"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::test
