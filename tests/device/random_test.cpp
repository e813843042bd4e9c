// Random bits.
#include "device/cpu_levels.h"
#include "op/threefry.h"

namespace heddle::test {
namespace {

Tensor keys(const Shape& shape, Random& random) {
  Tensor tensor{OperandSpec::contiguous({DType::u32, shape}), {}};
  for (std::size_t i = 0; i < byte_size(tensor.operand.spec); ++i) {
    tensor.bytes.push_back(static_cast<std::byte>(random()));
  }
  return tensor;
}

// Random123's kat_vectors: threefry2x32 with 20 rounds.
TEST(RandomBits, ThreefryIsThePublishedOne) {
  EXPECT_EQ(threefry({0, 0}, {0, 0}), (ThreefryPair{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry({~0u, ~0u}, {~0u, ~0u}), (ThreefryPair{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}),
            (ThreefryPair{0xc4923a9c, 0x483df7a0}));
}

TEST(RandomBits, EveryWidthAndShape) {
  at_every_level([] {
    Random random(1);
    for (const std::int64_t width : {1, 2, 4, 8}) {
      for (const Shape& shape :
           {Shape{}, Shape{0}, Shape{1}, Shape{2}, Shape{3}, Shape{4}, Shape{5}, Shape{7, 1},
            Shape{15}, Shape{16}, Shape{17}, Shape{33}, Shape{3, 0, 2}, Shape{63, 5}, Shape{4096},
            Shape{4097}, Shape{8191}, Shape{9, 1001}}) {
        expect_on_cpu(RandomBits{shape, width}, {keys({2}, random)});
        expect_on_cpu(RandomBits{shape, width}, {keys({3, 2}, random)});
      }
    }
  });
}

TEST(RandomBits, ManyKeysAndNone) {
  Random random(2);
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 2}}) {
    expect_on_cpu(RandomBits{shape, 2}, {keys({20000, 2}, random)});
    expect_on_cpu(RandomBits{shape, 4}, {keys({3, 1, 5, 2}, random)});
    expect_on_cpu(RandomBits{shape, 1}, {keys({0, 2}, random)});
    expect_on_cpu(RandomBits{shape, 8}, {keys({4, 0, 2}, random)});
  }
}

TEST(RandomBits, RowsAlone) {
  Random random(3);
  for (const std::int64_t width : {1, 2, 4, 8}) {
    expect_rows_alone(cpu_device(), RandomBits{{37}, width}, {keys({5, 2}, random)});
    expect_rows_alone(cpu_device(), RandomBits{{5000}, width}, {keys({3, 2, 2}, random)});
  }
}

TEST(RandomBits, OtherLayoutsAreRefusedAndNamed) {
  Random random(4);
  const Tensor key = random_tensor(arranged(DType::u32, {3, 2}, Arrangement::transposed), random);
  EXPECT_NE(run_op(cpu_device(), RandomBits{{3}, 4}, {key})
                .refused.find("random_bits: operand 0 must be contiguous"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::test
