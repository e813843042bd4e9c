// Outputs so large that kernels write them past the caches have the bits that their rows have
// alone, where they are small.
#include "device/cpu/streaming.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "device/cpu/row_ops.h"
#include "device/cpu_levels.h"
#include "heddle/op_fused.h"

namespace heddle::test {
namespace {

struct Case {
  Op op;
  std::vector<Tensor> inputs;
};

/// Rows on whole cache lines, and such as begin anywhere.
const Shape kEven{3, 1366, 2048}, kOdd{3, 1366, 2049};
static_assert(std::int64_t{3} * 1366 * 2048 * 4 >= cpu::kStreamedBytes);

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) expect_rows_alone(cpu_device(), c.op, c.inputs);
}

TEST(Streaming, Elementwise) {
  Random random(1);
  const Tensor even = random_tensor(DType::f32, kEven, random);
  const Tensor odd = random_tensor(DType::f32, kOdd, random);
  const Tensor halves = random_tensor(DType::bf16, {3, 1366, 4097}, random);
  check({{Unary{UnaryKind::exp}, {even}},
         {Binary{BinaryKind::add}, {odd, odd}},
         {Unary{UnaryKind::negative}, {halves}}});
}

/// Six products and sums with v1, one after another, of v0 or of exp(v0) * v0.
Op chain(bool after_others) {
  ElementProgram program{2, {}};
  if (after_others) {
    program.steps = {{Unary{UnaryKind::exp}, {0}}, {Binary{BinaryKind::multiply}, {2, 0}}};
  }
  for (int i = 0; i < 6; ++i) {
    const auto steps = static_cast<std::uint32_t>(program.steps.size());
    const BinaryKind kind = i % 2 ? BinaryKind::add : BinaryKind::multiply;
    program.steps.push_back({Binary{kind}, {steps == 0 ? 0 : steps + 1, 1}});
  }
  return Fused{std::make_shared<const ElementProgram>(std::move(program))};
}

/// Of other ops at their end.
Op tree() {
  return Fused{std::make_shared<const ElementProgram>(
      ElementProgram{2,
                     {{Unary{UnaryKind::exp}, {0}},
                      {Binary{BinaryKind::multiply}, {2, 1}},
                      {Binary{BinaryKind::maximum}, {3, 0}}}})};
}

TEST(Streaming, FusedPrograms) {
  Random random(5);
  const Tensor number = random_tensor(DType::f32, {1}, random);
  const Tensor even = random_tensor(DType::f32, kEven, random);
  const Tensor odd = random_tensor(DType::f32, kOdd, random);
  const Tensor halves = random_tensor(DType::bf16, {3, 1366, 4097}, random);
  check({{chain(false), {even, number}},
         {chain(true), {odd, number}},
         {tree(), {even, even}},
         {chain(true), {halves, random_tensor(DType::bf16, {1}, random)}}});
}

TEST(Streaming, SoftmaxAndNorms) {
  Random random(2);
  const Tensor even = random_tensor(DType::f32, kEven, random);
  const Tensor odd = random_tensor(DType::f32, kOdd, random);
  const Tensor weight = random_tensor(DType::f32, {kEven.back()}, random);
  check({{Softmax{}, {odd}},
         {LayerNorm{}, {even, weight, weight}},
         {AddRmsNorm{}, {even, even, weight}},
         {AddRmsNorm{.has_weight = false}, {odd, odd}}});
  // Rows that are too long to wait for their sums.
  const Tensor wide = random_tensor(DType::f32, {3, 350, 8000}, random);
  check({{Softmax{}, {wide}}, {AddRmsNorm{.has_weight = false}, {wide, wide}}});
}

TEST(Streaming, Scans) {
  Random random(3);
  const Tensor even = random_tensor(DType::f32, kEven, random, {0.5, 1.5});
  const Tensor odd = random_tensor(DType::f32, kOdd, random, {0.5, 1.5});
  check({{Scan{ScanKind::sum, 2}, {odd}},
         {Scan{ScanKind::sum, 1, true}, {even}},
         {Scan{ScanKind::max, 1, false, true}, {odd}},
         {Scan{ScanKind::logaddexp, 1}, {even}}});
}

TEST(Streaming, CopiesWhateverTheAlignment) {
  std::vector<std::byte> from(300), to(400), expected(400);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  at_every_level([&] {
    for (std::int64_t odd = 0; odd < 70; odd += 3) {
      for (const std::int64_t bytes : {0, 1, 5, 63, 64, 65, 130, 300}) {
        std::ranges::fill(to, std::byte{0});
        std::ranges::fill(expected, std::byte{0});
        std::copy_n(from.begin(), bytes, expected.begin() + odd);
        {
          const cpu::StreamFence fence;
          cpu::row_ops().stream(from.data(), to.data() + odd, bytes);
        }
        EXPECT_TRUE(to == expected) << odd << ", " << bytes;
      }
    }
  });
}

}  // namespace
}  // namespace heddle::test
