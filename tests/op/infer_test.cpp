#include <gtest/gtest.h>

#include <set>

#include "op/examples.h"
#include "op/infer.h"
#include "support/specs.h"

namespace heddle {
namespace {

TEST(Infer, EveryExample) {
  for (const Example& example : examples()) {
    const std::vector<TensorSpec> outputs = infer(example.op, specs(example.inputs));
    EXPECT_EQ(to_string(std::span(outputs)), example.outputs)
        << to_string(example.op) << " of " << example.inputs;
  }
}

TEST(Infer, ExamplesCoverEveryOp) {
  std::set<std::size_t> seen{Op(Constant{}).index()};  // has data; tested below
  for (const Example& example : examples()) seen.insert(example.op.index());
  EXPECT_EQ(seen.size(), kOpCount);
}

TEST(Infer, EveryUnaryKindOfItsDTypes) {
  using enum UnaryKind;
  for (int i = 0; i <= static_cast<int>(imag); ++i) {
    const auto kind = static_cast<UnaryKind>(i);
    const Op op = Unary{kind};
    const bool of_complex = kind == conjugate || kind == real || kind == imag;
    const char* good = kind == bitwise_invert ? "i32[2, 3]" : "f32[2, 3]";
    EXPECT_EQ(infer(op, specs(of_complex ? "complex64[2, 3]" : good))[0].shape, (Shape{2, 3}))
        << name(op);
    EXPECT_THROW(infer(op, specs("q8_0[32]")), Error) << name(op);
  }
}

TEST(Infer, EveryBinaryKindOfItsDTypes) {
  for (int i = 0; i <= static_cast<int>(BinaryKind::right_shift); ++i) {
    const auto kind = static_cast<BinaryKind>(i);
    const bool bits = kind >= BinaryKind::bitwise_and;
    const char* good = bits ? "i32[2, 1], i32[3]" : "f32[2, 1], f32[3]";
    const char* bad = bits ? "f32[2], f32[2]" : "q8_0[32], q8_0[32]";
    EXPECT_EQ(infer(Binary{kind}, specs(good))[0].shape, (Shape{2, 3})) << to_string(kind);
    EXPECT_THROW(infer(Binary{kind}, specs(bad)), Error) << to_string(kind);
  }
}

TEST(Infer, ConstantNeedsItsData) {
  alignas(std::max_align_t) static std::byte no_device[64];
  const auto buffer = [&](std::size_t size) {
    return make_ref<Buffer>(reinterpret_cast<Device&>(no_device), size, nullptr);
  };
  const TensorSpec three = spec("f32[3]");
  EXPECT_EQ(infer(Constant{three, buffer(12)}, {})[0], three);
  EXPECT_THROW(infer(Constant{three, buffer(11)}, {}), Error);
  EXPECT_THROW(infer(Constant{three, nullptr}, {}), Error);
}

}  // namespace
}  // namespace heddle
