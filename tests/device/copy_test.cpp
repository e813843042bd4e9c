// contiguous, view, concatenate, slice_update, arange and cast.
#include "device/on_device.h"

namespace heddle::test {
namespace {

class Copies : public OnDevice {};
HEDDLE_ON_DEVICES(Copies);
class Casts : public OnDevice {};
HEDDLE_ON_DEVICES(Casts);

const Shape kShapes[] = {{}, {0}, {1}, {3, 0, 2}, {33}, {3, 5, 19}, {2, 3, 4, 5}};

TEST_P(Copies, ContiguousFromAnyArrangement) {
  Random random(1);
  for (const DType dtype : kPlain) {
    for (const Shape& shape : sample(kShapes, 4)) {
      for (const Arrangement arrangement : sample(kAllArrangements, 2)) {
        expect_on_device(Contiguous{}, {random_tensor(arranged(dtype, shape, arrangement), random,
                                                      {-9, 9, true})});
      }
    }
  }
}

TEST_P(Copies, ContiguousOfManyAxes) {
  Random random(2);
  OperandSpec x = OperandSpec::contiguous({DType::u16, {2, 3, 1, 2, 3, 2, 1, 2}});
  std::swap(x.spec.shape[1], x.spec.shape[4]);
  std::swap(x.layout.strides[1], x.layout.strides[4]);
  std::swap(x.spec.shape[0], x.spec.shape[7]);
  std::swap(x.layout.strides[0], x.layout.strides[7]);
  expect_on_device(Contiguous{}, {random_tensor(x, random)});
}

TEST_P(Copies, ContiguousBlocks) {
  Random random(3);
  for (const DType dtype : kBlocks) {
    for (const Arrangement arrangement :
         {Arrangement::contiguous, Arrangement::sliced, Arrangement::reversed}) {
      expect_on_device(Contiguous{},
                       {random_tensor(arranged(dtype, {3, 2, 512}, arrangement), random)});
    }
  }
}

TEST_P(Copies, ContiguousUnpacksPanels) {
  Random random(4);
  for (const DType dtype : kBlocks) {
    const OperandSpec packed{{dtype, {17, 512}}, Layout::packed(LayoutKind::panel16)};
    expect_on_device(Contiguous{}, {random_tensor(packed, random)});
  }
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const std::int64_t rows : {1, 15, 16, 17, 40}) {
      const OperandSpec packed{{dtype, {rows, 5}}, Layout::packed(LayoutKind::panel16)};
      expect_on_device(Contiguous{}, {random_tensor(packed, random)});
    }
  }
}

TEST_P(Copies, TransposesInTiles) {
  Random random(15);
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
    for (const Shape& shape : {Shape{16, 16}, Shape{15, 40}, Shape{17, 33}, Shape{100, 31},
                               Shape{3, 20, 35}, Shape{20, 3, 18}, Shape{2, 19, 3, 17}}) {
      for (std::size_t dense = 0; dense + 1 < shape.size(); ++dense) {
        // As if axis `dense` and the last one had been swapped.
        Shape swapped = shape;
        std::swap(swapped[dense], swapped[shape.size() - 1]);
        OperandSpec x = OperandSpec::contiguous({dtype, swapped});
        std::swap(x.layout.strides[dense], x.layout.strides[shape.size() - 1]);
        x.spec.shape = shape;
        expect_on_device(Contiguous{}, {random_tensor(x, random)});
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
          OperandSpec turned = x;
          turned.layout.strides[axis] *= -1;
          expect_on_device(Contiguous{}, {random_tensor(turned, random)});
        }
      }
    }
  }
}

TEST_P(Copies, BigIsSharedOut) {
  Random random(5);
  const OperandSpec x = arranged(DType::f32, {300, 401}, Arrangement::transposed);
  expect_on_device(Contiguous{}, {random_tensor(x, random)});
}

TEST_P(Copies, Concatenate) {
  Random random(6);
  for (const DType dtype : kPlain) {
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      for (const Arrangement arrangement : sample(kAllArrangements, 2)) {
        std::vector<Tensor> inputs;
        for (const std::int64_t extent : {2, 0, 5, 1}) {
          Shape shape{3, 4, 6};
          shape[static_cast<std::size_t>(axis)] = extent;
          inputs.push_back(random_tensor(arranged(dtype, shape, arrangement), random));
        }
        expect_on_device(Concatenate{axis}, inputs);
      }
    }
  }
}

TEST_P(Copies, ConcatenateManyAndBlocks) {
  Random random(7);
  std::vector<Tensor> many;
  for (int i = 0; i < 100; ++i) many.push_back(random_tensor(DType::i32, {i % 3, 2}, random));
  expect_on_device(Concatenate{0}, many);
  for (std::int64_t axis = 0; axis < 2; ++axis) {
    const Tensor a = random_tensor(DType::q4_0, {3, 64}, random);
    expect_on_device(Concatenate{axis}, {a, random_tensor(DType::q4_0, {3, 64}, random)});
  }
}

// ---- View as another dtype

TEST_P(Copies, ViewOfEveryPair) {
  Random random(20);
  for (const DType from : kPlain) {
    for (const DType to : kPlain) {
      if (to == DType::bool_ && from != DType::bool_) continue;  // other bytes are no bools
      for (const Arrangement arrangement : sample(kAllArrangements)) {
        const OperandSpec x = arranged(from, {3, 5, 24}, arrangement);
        expect_on_device(Reinterpret{to}, {random_tensor(x, random, {-300, 300})});
      }
      expect_on_device(Reinterpret{to}, {random_tensor(from, {0}, random)});
      expect_on_device(Reinterpret{to}, {random_tensor(from, {2, 0, 8}, random)});
      if (item_size(from) == item_size(to)) {
        expect_on_device(Reinterpret{to}, {random_tensor(from, {}, random)});
      }
    }
  }
}

TEST_P(Copies, ViewStaysWhereItsBytesAre) {
  Random random(21);
  const Tensor x = random_tensor(DType::f32, {300, 100}, random);
  const Ran ran = run_op(device(), Reinterpret{DType::u8}, {x}, {.in_place = true});
  ASSERT_EQ(ran.traits.aliases.size(), 1u);
  EXPECT_FALSE(ran.traits.aliases[0].required);
  EXPECT_TRUE(ran.outputs[0].bytes == x.bytes);
  const OperandSpec turned = arranged(DType::f32, {300, 100}, Arrangement::reversed);
  const Ran copied = run_op(device(), Reinterpret{DType::u8}, {random_tensor(turned, random)});
  EXPECT_TRUE(copied.traits.aliases.empty());
}

TEST_P(Copies, ViewRowsAlone) {
  Random random(22);
  const Tensor x = random_tensor(DType::f32, {5, 6}, random);
  expect_rows_alone_on_device(Reinterpret{DType::u8}, {x});
  expect_rows_alone_on_device(Reinterpret{DType::u64}, {x});
  expect_rows_alone_on_device(Reinterpret{DType::i32}, {random_tensor(DType::f32, {7}, random)});
  const std::vector in{OperandSpec::contiguous({DType::f32, {6}})};
  const std::vector out{OperandSpec::contiguous({DType::u64, {3}})};
  EXPECT_FALSE(device().prepare(Reinterpret{DType::u64}, in, out).kernel->traits().honours_extent);
}

// ---- Slice update

struct Part {
  Dims start, stop, step;
};

void expect_updates(const Shape& shape, const std::vector<Part>& parts, Random& random) {
  for (const DType dtype : kPlain) {
    for (const auto& [start, stop, step] : parts) {
      const TensorSpec whole{dtype, shape};
      const Shape part = infer(Slice{start, stop, step}, std::span(&whole, 1))[0].shape;
      for (const Arrangement base : {Arrangement::contiguous, Arrangement::reversed}) {
        for (const Arrangement update : sample(kAllArrangements)) {
          expect_on_device(SliceUpdate{start, stop, step},
                           {random_tensor(arranged(dtype, shape, base), random, {-9, 9, true}),
                            random_tensor(arranged(dtype, part, update), random, {-9, 9, true})});
        }
      }
    }
  }
}

TEST_P(Copies, SliceUpdate) {
  Random random(23);
  expect_updates({4, 5, 6},
                 {{{0, 0, 0}, {4, 5, 6}, {1, 1, 1}},
                  {{1, 2, 3}, {3, 4, 6}, {1, 1, 1}},
                  {{0, 1, 0}, {4, 5, 6}, {3, 2, 5}},
                  {{3, 4, 5}, {-1, -1, -1}, {-1, -1, -1}},
                  {{2, 4, 1}, {0, -1, 6}, {-1, -3, 2}},
                  {{1, 5, 0}, {3, 5, 6}, {1, 1, 1}}},
                 random);
  expect_updates({}, {{{}, {}, {}}}, random);
  expect_updates({1}, {{{0}, {1}, {1}}, {{0}, {-1}, {-1}}, {{0}, {0}, {1}}}, random);
  expect_updates({7}, {{{6}, {-1}, {-4}}, {{3}, {4}, {1}}}, random);
  expect_updates({0, 3}, {{{0, 0}, {0, 3}, {1, 1}}}, random);
}

TEST_P(Copies, SliceUpdateBigIsSharedOut) {
  Random random(24);
  const Tensor base = random_tensor(DType::f32, {300, 401}, random);
  const SliceUpdate op{{299, 0}, {-1, 400}, {-1, 2}};
  expect_on_device(op, {base, random_tensor(DType::f32, {300, 200}, random)});
  expect_on_device(
      op, {base, random_tensor(arranged(DType::f32, {300, 200}, Arrangement::transposed), random)});
}

TEST_P(Copies, SliceUpdateInPlaceLeavesTheRest) {
  Random random(25);
  const Tensor base = random_tensor(DType::u16, {4, 6}, random);
  const Tensor update = random_tensor(DType::u16, {2, 6}, random);
  const Op op = SliceUpdate{{1, 0}, {3, 6}, {1, 1}};
  if (is_left_out(op, {base, update})) return;
  const Ran ran = run_op(device(), op, {base, update}, {.in_place = true});
  ASSERT_EQ(ran.traits.aliases.size(), 1u);
  EXPECT_EQ(ran.traits.aliases[0].input, 0u);
  EXPECT_FALSE(ran.traits.aliases[0].required);
  EXPECT_TRUE(
      std::equal(base.bytes.begin(), base.bytes.begin() + 12, ran.outputs[0].bytes.begin()));
  EXPECT_TRUE(
      std::equal(update.bytes.begin(), update.bytes.end(), ran.outputs[0].bytes.begin() + 12));
}

TEST_P(Copies, PackedOperandsAreRefused) {
  const OperandSpec packed{{DType::f32, {32, 8}}, Layout::packed(LayoutKind::panel16)};
  const OperandSpec plain = OperandSpec::contiguous(packed.spec);
  const SliceUpdate op{{0, 0}, {32, 8}, {1, 1}};
  EXPECT_FALSE(device().prepare(op, std::vector{packed, plain}, std::vector{plain}));
}

TEST_P(Copies, RowsAlone) {
  Random random(8);
  const Tensor x = random_tensor(arranged(DType::f16, {5, 7, 3}, Arrangement::transposed), random);
  const Tensor y = random_tensor(DType::f16, {5, 2, 3}, random);
  expect_rows_alone_on_device(Contiguous{}, {x});
  expect_rows_alone_on_device(Concatenate{1}, {x, y});
  expect_rows_alone_on_device(Cast{DType::f32}, {x});
  const Tensor turned =
      random_tensor(arranged(DType::f16, {5, 7, 3}, Arrangement::reversed), random);
  expect_rows_alone_on_device(Contiguous{}, {turned});
  expect_rows_alone_on_device(Concatenate{1}, {turned, y});
  expect_rows_alone_on_device(Cast{DType::f32}, {turned});
}

TEST_P(Copies, Arange) {
  for (const DType dtype : kPlain) {
    if (dtype == DType::bool_ || dtype == DType::complex64) continue;
    expect_on_device(Arange{3, 2, 50, dtype}, {});
    expect_on_device(
        Arange{0.5, 0.25, 300, dtype == DType::u8 || dtype == DType::i8 ? DType::i32 : dtype}, {});
    expect_on_device(Arange{0, 1, 0, dtype}, {});
  }
  expect_on_device(Arange{-7.5, -0.1, 1200, DType::f64}, {});
}

TEST_P(Casts, EveryPair) {
  at_every_level_on_device([] {
    Random random(9);
    for (const DType from : kPlain) {
      for (const DType to : sample(kPlain, 5)) {
        for (const Arrangement arrangement : sample(kAllArrangements)) {
          const OperandSpec x = arranged(from, {5, 3, 39}, arrangement);
          expect_on_device(Cast{to}, {random_tensor(x, random, {-300, 300, true})});
        }
        for (const Shape& shape : sample(kShapes)) {
          expect_on_device(Cast{to}, {random_tensor(from, shape, random, {-70000, 70000, true})});
        }
      }
    }
  });
}

TEST_P(Casts, ToHalfRoundsOnce) {
  // Just above and below ties of f16 and bf16, by less than a float can tell.
  const double tie16 = 1 + 0x1p-11, tie_b16 = 1 + 0x1p-8;
  const std::vector<double> near{tie16,
                                 tie16 + 0x1p-40,
                                 tie16 - 0x1p-40,
                                 tie_b16,
                                 tie_b16 + 0x1p-40,
                                 tie_b16 - 0x1p-40,
                                 65520 - 0x1p-30,
                                 65520,
                                 0x1p-25 + 0x1p-60};
  for (const DType to : {DType::f16, DType::bf16}) {
    expect_on_device(Cast{to}, {tensor_of(DType::f64, {9}, near)}, {0.5, 0});
  }
  expect_on_device(Cast{DType::bf16}, {tensor_of(DType::i64, {2}, {16842753, 16842751})}, {0.5, 0});
}

TEST_P(Casts, FromBlocks) {
  Random random(10);
  constexpr DType kTargets[] = {DType::f32, DType::f16,   DType::bf16,     DType::f64,
                                DType::i32, DType::bool_, DType::complex64};
  constexpr Arrangement kOfBlocks[] = {Arrangement::contiguous, Arrangement::sliced,
                                       Arrangement::reversed};
  for (const DType from : kBlocks) {
    for (const DType to : sample(kTargets, 2)) {
      for (const Arrangement arrangement : sample(kOfBlocks)) {
        expect_on_device(Cast{to},
                         {random_tensor(arranged(from, {2, 3, 768}, arrangement), random)});
      }
    }
    expect_on_device(Cast{DType::f32}, {random_tensor(from, {0, 256}, random)});
  }
}

TEST_P(Casts, RefusesBlockTargetsByInference) {
  const std::vector in{OperandSpec::contiguous({DType::f32, {32}})};
  const std::vector out{OperandSpec::contiguous({DType::q8_0, {32}})};
  try {
    EXPECT_FALSE(device().prepare(Cast{DType::q8_0}, in, out));
  } catch (const Error& error) {  // where inference is asked first
    EXPECT_NE(std::string(error.what()).find("do not quantise"), std::string::npos);
  }
}

}  // namespace
}  // namespace heddle::test
