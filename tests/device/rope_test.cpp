// rope, rope_table and rope_write_rows.
#include "device/on_device.h"

namespace heddle::test {
namespace {

class Ropes : public OnDevice {};
HEDDLE_ON_DEVICES(Ropes);
class RopeTables : public OnDevice {};
HEDDLE_ON_DEVICES(RopeTables);
class RopeWrites : public OnDevice {};
HEDDLE_ON_DEVICES(RopeWrites);

Tolerance tolerance_for(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {0.52, 1e-6};
    case DType::bf16:
      return {0.52, 1e-6};
    default:
      return {2, 2e-6};
  }
}

Tensor factors(std::int64_t pairs, Random& random) {
  return random_tensor(DType::f32, {pairs}, random, {0.5, 8});
}

constexpr RopeStyle kStyles[] = {RopeStyle::interleaved, RopeStyle::split_half};

std::vector<Tensor> rope_inputs(const Rope& op, const OperandSpec& x, const Tensor& position,
                                Random& random) {
  std::vector<Tensor> inputs{random_tensor(x, random)};
  if (op.has_bias) {
    inputs.push_back(random_tensor(x.spec.dtype, {x.spec.shape[1] * x.spec.shape[2]}, random));
  }
  inputs.push_back(position);
  if (op.angles.has_factors) inputs.push_back(factors(op.angles.dims / 2, random));
  return inputs;
}

TEST_P(Ropes, EveryForm) {
  at_every_level_on_device([] {
    Random random(1);
    const Tensor position = tensor_of(DType::i32, {5}, {0, 1, 77, 4095, 12});
    for (const RopeStyle style : kStyles) {
      for (const DType dtype : kFloatLike) {
        for (const bool has_factors : {false, true}) {
          for (const bool bias : {false, true}) {
            for (const Arrangement arrangement : sample(kArrangements, 2)) {
              for (const std::int64_t dims : sample(std::vector<std::int64_t>{2, 20, 34})) {
                const Rope op{{style, dims, 10000.0f, 0.5f, has_factors}, bias};
                const OperandSpec x = arranged(dtype, {5, 3, 34}, arrangement);
                expect_on_device(op, rope_inputs(op, x, position, random), tolerance_for(dtype));
              }
            }
          }
        }
      }
    }
  });
}

TEST_P(Ropes, FarPositionsKeepTheirAngles) {
  Random random(2);
  const Tensor position =
      tensor_of(DType::i32, {6}, {99999, 131071, 1000000, 16777217, 2147483647, -5});
  for (const RopeStyle style : kStyles) {
    for (const float base : {10000.0f, 500000.0f, 1000000.0f}) {
      for (const bool has_factors : {false, true}) {
        const Rope op{{style, 128, base, 1.0f, has_factors}, false};
        const OperandSpec x = OperandSpec::contiguous({DType::f32, {6, 2, 128}});
        expect_on_device(op, rope_inputs(op, x, position, random), {2, 4e-6});
      }
    }
  }
}

TEST_P(Ropes, EdgesOfShapes) {
  Random random(3);
  for (const Shape& shape : {Shape{0, 2, 8}, Shape{3, 0, 8}, Shape{1, 1, 2}, Shape{2, 1, 1024}}) {
    const Rope op{{RopeStyle::split_half, shape[2], 10000.0f, 1.0f, false}, false};
    const Tensor position = random_tensor(DType::i32, {shape[0]}, random, {0, 50});
    expect_on_device(
        op, rope_inputs(op, OperandSpec::contiguous({DType::f32, shape}), position, random),
        {2, 2e-6});
  }
  const std::vector in{OperandSpec::contiguous({DType::f32, {1, 1, 1026}}),
                       OperandSpec::contiguous({DType::i32, {1}})};
  const Prepared prepared =
      device().prepare(Rope{{RopeStyle::split_half, 1026}, false}, in, std::span(in).first(1));
  EXPECT_FALSE(prepared);
  EXPECT_NE(prepared.reason.find(on_cpu() ? "1024" : "513"), std::string::npos) << prepared.reason;
}

TEST_P(Ropes, RowsAlone) {
  at_every_level_on_device([] {
    Random random(4);
    for (const DType dtype : kFloatLike) {
      const Rope op{{RopeStyle::split_half, 32, 10000.0f, 1.0f, false}, true};
      const OperandSpec x = OperandSpec::contiguous({dtype, {6, 3, 40}});
      const Tensor position = tensor_of(DType::i32, {6}, {5, 0, 900, 3, 4, 1});
      expect_rows_alone_on_device(op, rope_inputs(op, x, position, random));
    }
  });
}

TEST_P(RopeTables, EveryForm) {
  at_every_level_on_device([] {
    Random random(5);
    const Tensor index = tensor_of(DType::i32, {4}, {6, 0, 3, 3});
    for (const RopeStyle style : kStyles) {
      for (const DType dtype : kFloatLike) {
        for (const Arrangement arrangement : kArrangements) {
          const Tensor x = random_tensor(arranged(dtype, {4, 3, 34}, arrangement), random);
          const auto table = [&](std::int64_t rows) {
            return random_tensor(arranged(DType::f32, {rows, 9}, arrangement), random, {-1, 1});
          };
          expect_on_device(RopeTable{style, true}, {x, table(7), table(7), index},
                           tolerance_for(dtype));
          expect_on_device(RopeTable{style, false}, {x, table(4), table(4)}, tolerance_for(dtype));
        }
      }
    }
    const Tensor x = random_tensor(DType::f32, {4, 3, 34}, random);
    const Tensor table = random_tensor(DType::f32, {6, 9}, random);
    expect_failure_on_device(RopeTable{RopeStyle::split_half, true}, {x, table, table, index},
                             ErrorCode::invalid_argument, {"index 6"});
  });
}

// ---- rope_write_rows: the same bits as its parts

std::vector<Tensor> write_inputs(const RopeWriteRows& op, DType state, DType x, Random& random) {
  const Shape row{3, 64};
  std::vector<Tensor> inputs{random_tensor(state, {9, row[0], row[1]}, random),
                             random_tensor(x, {4, row[0], row[1]}, random),
                             tensor_of(DType::i32, {4}, {8, -1, 0, 5})};
  if (op.has_bias) inputs.push_back(random_tensor(x, {row[0] * row[1]}, random));
  if (op.rope) inputs.push_back(tensor_of(DType::i32, {4}, {100, 0, 7, 2}));
  if (op.rope && op.angles.has_factors) inputs.push_back(factors(op.angles.dims / 2, random));
  return inputs;
}

TEST_P(RopeWrites, IsRopeThenWriteRows) {
  at_every_level_on_device([] {
    Random random(6);
    for (const RopeStyle style : kStyles) {
      for (const DType state : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0}) {
        for (const bool bias : {false, true}) {
          for (const bool has_factors : {false, true}) {
            const RopeWriteRows op{bias, true, {style, 48, 10000.0f, 1.0f, has_factors}};
            const auto inputs = write_inputs(op, state, DType::f32, random);
            if (is_left_out(op, inputs)) continue;
            std::vector<Tensor> rope_operands(inputs.begin() + 1, inputs.end());
            rope_operands.erase(rope_operands.begin() + 1);
            const Ran turned = run_op(device(), Rope{op.angles, bias}, rope_operands);
            const Ran parts =
                run_op(device(), WriteRows{}, {inputs[0], turned.outputs[0], inputs[2]});
            for (const int threads : {1, 8}) {
              const Ran fused = run_op(device(), op, inputs, {.threads = threads});
              ASSERT_EQ(fused.refused, "");
              EXPECT_TRUE(fused.outputs[0].bytes == parts.outputs[0].bytes) << to_string(state);
            }
          }
        }
      }
    }
  });
}

TEST_P(RopeWrites, WideHeads) {
  Random random(9);
  const Tensor position = tensor_of(DType::i32, {2}, {3000, 7});
  const Tensor rows = tensor_of(DType::i32, {2}, {3, 1});
  const Tensor x = random_tensor(DType::f32, {2, 1, 1024}, random);
  for (const DType state : {DType::f32, DType::q8_0}) {
    for (const RopeStyle style : kStyles) {
      const RopeWriteRows op{false, true, {style, 1024, 10000.0f, 1.0f, false}};
      const std::vector inputs{random_tensor(state, {4, 1, 1024}, random), x, rows, position};
      if (is_left_out(op, inputs)) continue;
      const Ran turned = run_op(device(), Rope{op.angles, false}, {x, position});
      const Ran parts = run_op(device(), WriteRows{}, {inputs[0], turned.outputs[0], rows});
      const Ran fused = run_op(device(), op, inputs);
      EXPECT_TRUE(fused.outputs[0].bytes == parts.outputs[0].bytes) << to_string(state);
    }
  }
}

TEST_P(RopeWrites, Conforms) {
  at_every_level_on_device([] {
    Random random(7);
    for (const DType state : kFloatLike) {
      for (const DType x : kFloatLike) {
        for (const bool rope : {false, true}) {
          const RopeWriteRows op{true, rope, {RopeStyle::split_half, 64, 10000.0f, 1.0f, false}};
          expect_on_device(op, write_inputs(op, state, x, random), tolerance_for(state));
        }
      }
    }
  });
}

TEST_P(RopeWrites, RowsBeyondTheStateAreNamed) {
  Random random(8);
  const RopeWriteRows op{false, true, {RopeStyle::split_half, 64, 10000.0f, 1.0f, false}};
  auto inputs = write_inputs(op, DType::f16, DType::f32, random);
  inputs[2] = tensor_of(DType::i32, {4}, {0, 1, 2, 9});
  expect_failure_on_device(op, inputs, ErrorCode::invalid_argument, {"row 9"});
}

}  // namespace
}  // namespace heddle::test
