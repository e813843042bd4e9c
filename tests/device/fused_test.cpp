// Programs of element-wise ops, of many dtypes, layouts and lengths, at each level of instructions.
#include <gmock/gmock.h>

#include "device/cpu_levels.h"
#include "heddle/op_fused.h"

namespace heddle::test {
namespace {

using Steps = std::vector<ElementStep>;

Fused program(std::uint32_t inputs, Steps steps) {
  return {std::make_shared<const ElementProgram>(ElementProgram{inputs, std::move(steps)})};
}

/// (v0 * v1 + v2 < v0 ? v2 : v0) - v1
Fused arithmetic() {
  return program(3, {{Binary{BinaryKind::multiply}, {0, 1}},
                     {Binary{BinaryKind::add}, {3, 2}},
                     {Compare{CompareKind::less}, {4, 0}},
                     {Select{}, {5, 2, 0}},
                     {Binary{BinaryKind::subtract}, {6, 1}}});
}

TEST(FusedProgram, OfEveryShape) {
  at_every_level([] {
    Random random(1);
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3, 0, 2}, Shape{511}, Shape{512},
                               Shape{513}, Shape{3, 5, 19}, Shape{40000}}) {
      const Tensor x = random_tensor(DType::f32, shape, random);
      const Tensor y = random_tensor(DType::f32, shape, random);
      const Tensor z = random_tensor(DType::f32, shape, random);
      expect_on_cpu(arithmetic(), {x, y, z}, {.ulps = 2, .absolute = 1e-6});
    }
  });
}

TEST(FusedProgram, OfEveryDtypeThatItsStepsTake) {
  at_every_level([] {
    Random random(2);
    for (const DType dtype : kPlain) {
      if (dtype == DType::bool_ || dtype == DType::complex64) continue;
      const Fill fill{0, 6};
      const Tensor x = random_tensor(dtype, {700}, random, fill);
      const Tensor y = random_tensor(dtype, {700}, random, fill);
      const Tensor z = random_tensor(dtype, {700}, random, fill);
      const Fused sums = program(3, {{Binary{BinaryKind::multiply}, {0, 1}},
                                     {Binary{BinaryKind::add}, {3, 2}},
                                     {Binary{BinaryKind::subtract}, {4, 1}}});
      expect_on_cpu(sums, {x, y, z}, {.ulps = 2, .absolute = 1e-5});
    }
    const Fused complex = program(2, {{Binary{BinaryKind::multiply}, {0, 1}},
                                      {Unary{UnaryKind::negative}, {2}},
                                      {Compare{CompareKind::equal}, {3, 0}}});
    expect_on_cpu(complex, {random_tensor(DType::complex64, {99}, random),
                            random_tensor(DType::complex64, {99}, random)});
  });
}

TEST(FusedProgram, ChangesOfDtypeOnTheWay) {
  at_every_level([] {
    Random random(3);
    const Fused casts = program(2, {{Cast{DType::i32}, {0}},
                                    {Binary{BinaryKind::add}, {2, 1}},
                                    {Cast{DType::f64}, {3}},
                                    {Unary{UnaryKind::sqrt}, {4}},
                                    {Cast{DType::f32}, {5}}});
    for (const DType from : {DType::f32, DType::f16, DType::u8, DType::bool_, DType::f64}) {
      expect_on_cpu(casts,
                    {random_tensor(from, {5, 200}, random, {0, 90}),
                     random_tensor(DType::i32, {200}, random, {0, 1000})},
                    {.ulps = 1});
    }
  });
}

TEST(FusedProgram, InputsOfEveryLayout) {
  at_every_level([] {
    Random random(4);
    for (const Arrangement one : kAllArrangements) {
      for (const Arrangement other : kAllArrangements) {
        for (const DType dtype : {DType::f32, DType::f16}) {
          const Fused sum = program(
              3, {{Binary{BinaryKind::multiply}, {0, 1}}, {Binary{BinaryKind::add}, {3, 2}}});
          expect_on_cpu(sum,
                        {random_tensor(arranged(dtype, {5, 3, 37}, one), random),
                         random_tensor(arranged(dtype, {5, 3, 37}, other), random),
                         random_tensor(dtype, {37}, random)},
                        {.ulps = 2, .absolute = 1e-5});
        }
      }
    }
  });
}

TEST(FusedProgram, ALongChain) {
  Steps steps;
  for (std::uint32_t i = 0; i < 48; ++i) {
    const BinaryKind kind = i % 2 ? BinaryKind::add : BinaryKind::multiply;
    steps.push_back({Binary{kind}, {i == 0 ? 0u : i + 1, 1}});
  }
  at_every_level([&] {
    Random random(5);
    expect_on_cpu(program(2, steps),
                  {random_tensor(DType::f32, {3000}, random, {-0.5, 0.5}),
                   random_tensor(DType::f32, {3000}, random, {-0.5, 0.5})},
                  {.ulps = 30, .absolute = 1e-5});
  });
}

/// A program whose values all stay alive until its second half adds them up.
Fused wide(std::uint32_t values) {
  Steps steps;
  for (std::uint32_t i = 0; i < values; ++i) steps.push_back({Unary{UnaryKind::sigmoid}, {i}});
  std::uint32_t sum = 1;
  for (std::uint32_t i = 1; i < values; ++i) {
    steps.push_back({Binary{BinaryKind::add}, {sum, i + 1}});
    sum = values + i;
  }
  return program(1, steps);
}

TEST(FusedProgram, MoreThanFitsIsRefusedByName) {
  Random random(6);
  const Tensor x = random_tensor(DType::f32, {100}, random, {-9, -8});
  bool refused = false;
  for (std::uint32_t values = 2; values < 30; ++values) {
    const Ran ran = run_op(cpu_device(), wide(values), {x});
    if (!ran.refused.empty()) {
      EXPECT_THAT(ran.refused, testing::HasSubstr("blocks at once"));
      refused = true;
    } else {
      EXPECT_FALSE(refused) << "a wider one was taken";
      expect_on_cpu(wide(values), {x}, {.ulps = 40, .absolute = 1e-4});
    }
  }
  EXPECT_TRUE(refused);
}

TEST(FusedProgram, RowsDoNotDependOnTheirCompany) {
  Random random(7);
  expect_rows_alone(
      cpu_device(), arithmetic(),
      {random_tensor(DType::f32, {5, 600}, random), random_tensor(DType::f32, {600}, random),
       random_tensor(DType::f32, {5, 1}, random)});
}

}  // namespace
}  // namespace heddle::test
