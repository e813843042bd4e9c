// gather_rows, write_rows and feed.
#include <cmath>
#include <cstring>

#include "device/on_device.h"
#include "tensor/quantize.h"

namespace heddle::test {
namespace {

class Gather : public OnDevice {};
HEDDLE_ON_DEVICES(Gather);
class Writes : public OnDevice {};
HEDDLE_ON_DEVICES(Writes);
class Feeds : public OnDevice {};
HEDDLE_ON_DEVICES(Feeds);

// ---- gather_rows

TEST_P(Gather, EveryTableAndIds) {
  at_every_level_on_device([] {
    Random random(1);
    for (const DType table : kPlain) {
      for (const DType ids : sample(kIntegers)) {
        const Tensor which = tensor_of(ids, {2, 3}, {4, 0, 6, 6, 1, 3});
        for (const Arrangement arrangement : kArrangements) {
          const Tensor rows = random_tensor(arranged(table, {7, 3, 19}, arrangement), random);
          expect_on_device(GatherRows{table}, {rows, which});
        }
      }
    }
  });
}

TEST_P(Gather, ConvertsFloats) {
  Random random(2);
  const Tensor ids = tensor_of(DType::i32, {4}, {1, 1, 0, 2});
  for (const DType from : kFloats) {
    for (const DType to : kFloats) {
      for (const std::int64_t width : {1, 17, 1030}) {
        expect_on_device(GatherRows{to}, {random_tensor(from, {3, width}, random), ids});
      }
    }
  }
}

TEST_P(Gather, BlocksAndPanels) {
  Random random(3);
  const Tensor ids = tensor_of(DType::i64, {3}, {2, 0, 1});
  for (const DType table : kBlocks) {
    for (const DType to : sample(kFloats)) {
      expect_on_device(GatherRows{to}, {random_tensor(table, {3, 768}, random), ids});
      const OperandSpec gaps = arranged(table, {3, 256}, Arrangement::sliced);
      expect_on_device(GatherRows{to}, {random_tensor(gaps, random), ids});
    }
  }
  const Tensor panel_ids = tensor_of(DType::u32, {5}, {16, 15, 0, 17, 31});
  for (const DType table : kBlocks) {
    const OperandSpec packed{{table, {33, 1536}}, Layout::packed(LayoutKind::panel16)};
    for (const DType to : sample(kFloats)) {
      expect_on_device(GatherRows{to}, {random_tensor(packed, random), panel_ids});
    }
  }
  for (const DType table : kFloats) {
    const OperandSpec packed{{table, {33, 21}}, Layout::packed(LayoutKind::panel16)};
    expect_on_device(GatherRows{DType::f32}, {random_tensor(packed, random), panel_ids});
    expect_on_device(GatherRows{table}, {random_tensor(packed, random), panel_ids});
  }
}

TEST_P(Gather, EmptyScalarAndVectorTables) {
  Random random(4);
  expect_on_device(GatherRows{},
                   {random_tensor(DType::f32, {5, 4}, random), tensor_of(DType::i32, {0}, {})});
  expect_on_device(GatherRows{},
                   {random_tensor(DType::f32, {5, 4}, random), tensor_of(DType::i32, {}, {3})});
  expect_on_device(GatherRows{},
                   {random_tensor(DType::f32, {5}, random), tensor_of(DType::i32, {2}, {3, 4})});
  expect_on_device(GatherRows{},
                   {random_tensor(DType::f32, {5, 0}, random), tensor_of(DType::i32, {1}, {3})});
}

TEST_P(Gather, IdsOutOfRangeAreNamed) {
  Random random(5);
  const Tensor table = random_tensor(DType::f32, {5, 4}, random);
  for (const double bad : {-1.0, 5.0, 2e9}) {
    const Tensor ids = tensor_of(DType::i32, {3}, {0, 4, bad});
    expect_failure_on_device(GatherRows{}, {table, ids}, ErrorCode::invalid_argument,
                             {"element 2", "[0, 5)"});
  }
  const Tensor huge = tensor_of(DType::u64, {1}, {1.8e19});
  expect_failure_on_device(GatherRows{}, {table, huge}, ErrorCode::invalid_argument);
}

TEST_P(Gather, WrappingIdsCountFromTheEnd) {
  Random random(15);
  const Tensor table = random_tensor(DType::f32, {5, 4}, random);
  const Tensor blocks = random_tensor(DType::q8_0, {5, 32}, random);
  for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64}) {
    const Tensor ids = tensor_of(dtype, {4}, {-1, 0, -5, 4});
    expect_on_device(GatherRows{DType::f32, true}, {table, ids});
    expect_on_device(GatherRows{DType::f32, true}, {blocks, ids});
    expect_failure_on_device(GatherRows{DType::f32, true}, {table, tensor_of(dtype, {2}, {0, -6})},
                             ErrorCode::invalid_argument, {"element 1", "[-5, 5)"});
  }
  for (const DType dtype : {DType::u8, DType::u32, DType::u64}) {
    expect_on_device(GatherRows{DType::f32, true}, {table, tensor_of(dtype, {2}, {4, 1})});
  }
  const Tensor huge = tensor_of(DType::u64, {1}, {18446744073709549568.0});
  expect_failure_on_device(GatherRows{DType::f32, true}, {table, huge},
                           ErrorCode::invalid_argument);
}

TEST_P(Gather, RowsAlone) {
  Random random(6);
  const Tensor table = random_tensor(DType::q4_K, {9, 512}, random);
  expect_rows_alone_on_device(GatherRows{}, {table, tensor_of(DType::i32, {4}, {8, 2, 2, 5})});
}

// ---- write_rows

/// What a block type keeps of x: for comparing quantised rows.
Values through_blocks(DType dtype, const Values& x) {
  const std::vector<float> floats(x.real.begin(), x.real.end());
  Tensor stored{OperandSpec::contiguous({dtype, x.spec.shape}), {}};
  stored.bytes.resize(span_bytes(stored.operand));
  const auto width = static_cast<std::size_t>(x.spec.shape.back());
  for (std::size_t i = 0; i < floats.size(); i += width) {
    quantize_row(dtype, &floats[i],
                 stored.bytes.data() + row_bytes(dtype, static_cast<std::int64_t>(i)),
                 static_cast<std::int64_t>(width));
  }
  return decode(stored.operand, stored.bytes.data());
}

TEST_P(Writes, SameAndConvertedDtypes) {
  at_every_level_on_device([] {
    Random random(7);
    const Tensor rows = tensor_of(DType::i32, {4}, {6, -1, 0, 3});
    for (const DType state : kPlain) {
      for (const DType x : kPlain) {
        if (x != state && !(is_floating(x) && is_floating(state))) continue;
        for (const Arrangement arrangement : kArrangements) {
          expect_on_device(WriteRows{},
                           {random_tensor(state, {7, 3, 19}, random),
                            random_tensor(arranged(x, {4, 3, 19}, arrangement), random), rows});
        }
      }
    }
  });
}

TEST_P(Writes, WideRowsAndNoRows) {
  Random random(8);
  expect_on_device(WriteRows{},
                   {random_tensor(DType::f16, {3, 1300}, random),
                    random_tensor(DType::f32, {1, 1300}, random), tensor_of(DType::i32, {1}, {2})});
  expect_on_device(WriteRows{},
                   {random_tensor(DType::f16, {3, 4}, random),
                    random_tensor(DType::f32, {0, 4}, random), tensor_of(DType::i32, {0}, {})});
  expect_on_device(WriteRows{},
                   {random_tensor(DType::i32, {3}, random), random_tensor(DType::i32, {2}, random),
                    tensor_of(DType::i32, {2}, {2, 0})});
}

TEST_P(Writes, Quantises) {
  Random random(9);
  for (const DType state : kBlocks) {
    for (const DType from : kFloats) {
      const std::vector<Tensor> inputs{random_tensor(state, {5, 2, 768}, random),
                                       random_tensor(from, {3, 2, 768}, random),
                                       tensor_of(DType::i32, {3}, {4, -7, 1})};
      if (is_left_out(WriteRows{}, inputs)) continue;
      const Ran ran = run_op(device(), WriteRows{}, inputs, {.threads = 2});
      ASSERT_EQ(ran.refused, "");
      Values x = decode(inputs[1].operand, inputs[1].bytes.data());
      for (Number& v : x.real) v = static_cast<float>(v);
      const std::vector<Values> want = reference(
          WriteRows{}, {decode(inputs[0].operand, inputs[0].bytes.data()), through_blocks(state, x),
                        decode(inputs[2].operand, inputs[2].bytes.data())});
      const Values got = decode(ran.outputs[0].operand, ran.outputs[0].bytes.data());
      // q8_0 has a quantiser of its own, off by half a step of at most 2 / 127.
      EXPECT_EQ(difference(got, want[0], {0, state == DType::q8_0 ? 0.0163 : 0}), "")
          << to_string(state) << " from " << to_string(from);
    }
  }
}

TEST_P(Writes, QuantisesToQ8WithinHalfAStep) {
  at_every_level_on_device([] {
    Random random(14);
    for (const double size : {1e-9, 1e-3, 1.0, 5e4, 1e7}) {
      const Tensor x = random_tensor(DType::f32, {1, 4096}, random, {-size, size});
      const std::vector<Tensor> inputs{random_tensor(DType::q8_0, {1, 4096}, random), x,
                                       tensor_of(DType::i32, {1}, {0})};
      // Half a step of size / 127, and what rounding the scale to f16, or to nothing, adds.
      const double bound =
          std::min(size, 1e6) / 254 * 1.15 + 4e-6 + std::max(0.0, size - 65504 * 127.0);
      if (is_left_out(WriteRows{}, inputs)) return;
      const Ran ran = run_op(device(), WriteRows{}, inputs);
      EXPECT_EQ(difference(decode(ran.outputs[0].operand, ran.outputs[0].bytes.data()),
                           decode(x.operand, x.bytes.data()), {0, bound}),
                "");
    }
    for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      std::vector<double> values(64, 1.0);
      values[40] = bad;
      const std::vector<Tensor> inputs{random_tensor(DType::q8_0, {1, 64}, random),
                                       tensor_of(DType::f32, {1, 64}, values),
                                       tensor_of(DType::i32, {1}, {0})};
      if (is_left_out(WriteRows{}, inputs)) return;
      const Ran ran = run_op(device(), WriteRows{}, inputs);
      const Values got = decode(ran.outputs[0].operand, ran.outputs[0].bytes.data());
      EXPECT_NEAR(static_cast<double>(got.real[31]), 1, 1e-3);  // the block before is whole
      EXPECT_TRUE(std::isnan(got.real[40]));
    }
  });
}

TEST_P(Writes, RowsBeyondTheStateAreNamed) {
  Random random(10);
  expect_failure_on_device(
      WriteRows{},
      {random_tensor(DType::f16, {3, 4}, random), random_tensor(DType::f32, {1, 4}, random),
       tensor_of(DType::i32, {1}, {3})},
      ErrorCode::invalid_argument, {"row 3"});
}

TEST_P(Writes, ExtentLeavesLaterRowsOut) {
  Random random(11);
  const std::vector<Tensor> inputs{random_tensor(DType::f32, {5, 4}, random),
                                   random_tensor(DType::f32, {3, 4}, random),
                                   tensor_of(DType::i32, {3}, {0, 1, 99})};
  const Ran ran = run_op(device(), WriteRows{}, inputs, {.extent = 2});
  const auto row = [](const Tensor& t, std::size_t r) {
    return std::vector(t.bytes.begin() + static_cast<long>(r * 16),
                       t.bytes.begin() + static_cast<long>(r * 16 + 16));
  };
  EXPECT_EQ(row(ran.outputs[0], 1), row(inputs[1], 1));
  EXPECT_EQ(row(ran.outputs[0], 2), row(inputs[0], 2));
}

// ---- feed

TEST_P(Feeds, EveryKind) {
  Random random(12);
  for (const DType dtype : kPlain) {
    for (const Arrangement arrangement : kArrangements) {
      const Tensor x = random_tensor(arranged(dtype, {4, 3, 5}, arrangement), random);
      expect_on_device(Feed{Feed::Kind::whole}, {random_tensor(dtype, {4, 3, 5}, random), x});
      for (const double extent : {0.0, 1.0, 4.0}) {
        expect_on_device(Feed{Feed::Kind::prefix}, {random_tensor(dtype, {6, 3, 5}, random), x,
                                                    tensor_of(DType::i32, {}, {extent})});
      }
      for (const double row : {0.0, 3.0}) {
        const Tensor extent = tensor_of(DType::i32, {}, {row});
        expect_on_device(Feed{Feed::Kind::row}, {random_tensor(dtype, {3, 5}, random), x, extent});
        expect_on_device(Feed{Feed::Kind::row},
                         {random_tensor(dtype, {1, 3, 5}, random), x, extent});
      }
    }
  }
}

TEST_P(Feeds, ExtentsOutOfRangeAreNamed) {
  Random random(13);
  const Tensor x = random_tensor(DType::f32, {4, 2}, random);
  const auto expect_failure = [&](Feed::Kind kind, const Shape& state, double extent) {
    expect_failure_on_device(
        Feed{kind},
        {random_tensor(DType::f32, state, random), x, tensor_of(DType::i32, {}, {extent})},
        ErrorCode::invalid_argument, {"outside [0, "});
  };
  expect_failure(Feed::Kind::prefix, {9, 2}, 5);  // more than x has
  expect_failure(Feed::Kind::prefix, {3, 2}, 4);  // more than the state has
  expect_failure(Feed::Kind::prefix, {9, 2}, -1);
  expect_failure(Feed::Kind::row, {1, 2}, 4);
  expect_failure(Feed::Kind::row, {2}, -1);
}

}  // namespace
}  // namespace heddle::test
