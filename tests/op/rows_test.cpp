#include <gtest/gtest.h>

#include "op/examples.h"
#include "support/specs.h"

namespace heddle {
namespace {

struct Case {
  Op op;
  const char* inputs;
  const char* rows;  // one character an operand: y or n
};

std::vector<Case> cases() {
  using enum Attention::Mask;
  const RopeAngles angles{.dims = 8};
  const RopeAngles factors{.dims = 8, .has_factors = true};
  return {
      {Reshape{{5, 2, 8}}, "f32[5, 16]", "y"},
      {Reshape{{10, 8}}, "f32[5, 16]", "n"},
      {Reshape{{1, 5, 16}}, "f32[5, 16]", "n"},
      {Reshape{{}}, "f32[1]", "n"},
      {Reshape{{1}}, "f32[]", "n"},
      {Transpose{{0, 2, 1}}, "f32[5, 2, 8]", "y"},
      {Transpose{{1, 0, 2}}, "f32[5, 2, 8]", "n"},
      {Slice{{0, 1}, {5, 3}, {1, 1}}, "f32[5, 4]", "y"},
      {Slice{{1, 0}, {5, 4}, {1, 1}}, "f32[5, 4]", "n"},
      {Slice{{0, 0}, {5, 4}, {2, 1}}, "f32[5, 4]", "n"},
      {Slice{{4, 0}, {-1, 4}, {-1, 1}}, "f32[5, 4]", "n"},
      {Slice{{0, 3}, {5, -1}, {1, -1}}, "f32[5, 4]", "y"},
      {Broadcast{{5, 4}}, "f32[5, 1]", "y"},
      {Broadcast{{5, 4}}, "f32[1, 4]", "n"},
      {Broadcast{{5, 5}}, "f32[5]", "n"},
      {Squeeze{{1}}, "f32[5, 1]", "y"},
      {Squeeze{{0}}, "f32[1, 5]", "n"},
      {ExpandDims{{1}}, "f32[5, 2]", "y"},
      {ExpandDims{{0}}, "f32[5, 2]", "n"},
      {AsStrided{{5, 2}, {2, 1}, 0}, "f32[5, 2]", "n"},
      {Contiguous{}, "f32[5]", "y"},
      {Contiguous{}, "f32[]", "n"},
      {Cast{DType::f16}, "f32[5, 2]", "y"},
      {Reinterpret{DType::u8}, "f32[5, 2]", "y"},
      {Reinterpret{DType::u32}, "f32[5]", "y"},
      {Reinterpret{DType::u8}, "f32[5]", "n"},
      {Reinterpret{DType::u32}, "f32[]", "n"},
      {SliceUpdate{{0, 0}, {5, 1}, {1, 1}}, "f32[5, 2], f32[5, 1]", "nn"},
      {Repack{}, "f32[5, 2]", "n"},
      {Concatenate{1}, "f32[5, 2], f32[5, 1]", "yy"},
      {Concatenate{0}, "f32[5, 2], f32[5, 2]", "nn"},
      {GatherRows{}, "f32[9, 2], i32[5]", "ny"},
      {Factor{}, "f32[5, 3, 3]", "y"},
      {Factor{FactorKind::svd}, "f32[3, 5]", "n"},
      {Solve{}, "f32[5, 3, 3], f32[5, 3, 1]", "yy"},
      {Solve{true}, "f32[3, 3], f32[3, 1]", "nn"},
      {Fft{FftKind::forward, 1, 3}, "complex64[5, 3]", "y"},
      {Fft{FftKind::forward, 0, 5}, "complex64[5, 3]", "n"},
      {Hadamard{}, "f32[5, 4]", "y"},
      {Hadamard{}, "f32[4]", "n"},
      {GatherAxis{1}, "f32[5, 2], i32[5, 3]", "yy"},
      {GatherAxis{0}, "f32[5, 2], i32[5, 2]", "nn"},
      {ScatterAxis{1}, "f32[5, 2], i32[5, 3], f32[5, 3]", "yyy"},
      {ScatterAxis{0}, "f32[5, 2], i32[5, 2], f32[5, 2]", "nnn"},
      {Gather{{0, 1}, {2, 1}}, "f32[9, 2], i32[5, 3], i32[5, 3]", "nyy"},
      {Gather{{0}, {2, 1}}, "f32[9, 2], i32[]", "nn"},
      {Gather{{}, {5, 1}}, "f32[5, 2]", "n"},
      {Scatter{ScatterKind::none, {0}}, "f32[5, 2], i32[5], f32[5, 1, 2]", "nnn"},
      {Sort{}, "f32[5, 2]", "y"},
      {Sort{}, "f32[5]", "n"},
      {SearchSorted{}, "f32[5], f32[5, 2]", "ny"},
      {SearchSorted{}, "f32[5], f32[]", "nn"},
      {Pad{Pad::Mode::constant, {0, 1}, {0, 1}}, "f32[5, 2], f32[]", "yn"},
      {Pad{Pad::Mode::edge, {0, 1}, {1, 0}}, "f32[5, 2]", "n"},
      {Pad{}, "f32[], f32[]", "nn"},
      {WriteRows{}, "f32[9, 2], f32[5, 2], i32[5]", "nyy"},
      {Feed{Feed::Kind::whole}, "f32[5], f32[5]", "nn"},
      {Unary{UnaryKind::exp}, "f32[5]", "y"},
      {Binary{BinaryKind::add}, "f32[5, 2], f32[2]", "yn"},
      {Binary{BinaryKind::add}, "f32[5, 2], f32[1, 2]", "yn"},
      {Binary{BinaryKind::add}, "f32[5, 1], f32[5, 2]", "yy"},
      {Compare{CompareKind::less}, "f32[5, 2], f32[]", "yn"},
      {Select{}, "bool[5, 1], f32[5, 2], f32[1]", "yyn"},
      {GatedMultiply{}, "f32[5, 2], f32[5, 2]", "yy"},
      {program(2, {{Binary{BinaryKind::add}, {0, 1}}}), "f32[5, 2], f32[2]", "yn"},
      {Reduce{ReduceKind::sum, {1}, false}, "f32[5, 2]", "y"},
      {Reduce{ReduceKind::sum, {0}, true}, "f32[5, 2]", "n"},
      {Scan{ScanKind::sum, 1}, "f32[5, 2]", "y"},
      {Scan{ScanKind::sum, 0}, "f32[5, 2]", "n"},
      {ArgReduce{ArgReduceKind::max, 1}, "f32[5, 2]", "y"},
      {ArgReduce{ArgReduceKind::max, 0, true}, "f32[5, 2]", "n"},
      {TopK{1}, "f32[5, 2]", "y"},
      {TopK{1}, "f32[5]", "n"},
      {Softmax{}, "f32[5, 2]", "y"},
      {Softmax{}, "f32[5]", "n"},
      {CausalSoftmax{}, "f32[5, 2]", "y"},
      {RmsNorm{}, "f32[5, 2], f32[2]", "yn"},
      {RmsNorm{}, "f32[2], f32[2]", "nn"},
      {AddRmsNorm{}, "f32[5, 2], f32[5, 2], f32[2]", "yyn"},
      {LayerNorm{}, "f32[5, 2], f32[2], f32[2]", "ynn"},
      {ChannelNorm{1}, "f32[5, 2, 3], f32[2], f32[2]", "ynn"},
      {ChannelNorm{0}, "f32[5, 2], f32[5], f32[5]", "nnn"},
      {GroupNorm{}, "f32[5, 2], f32[2], f32[2]", "ynn"},
      {Matmul{}, "f32[5, 2], f32[2, 3]", "yn"},
      {Matmul{}, "f32[7, 5, 2], f32[7, 2, 3]", "yy"},
      {Matmul{}, "f32[7, 5, 2], f32[2, 3]", "yn"},
      {Matmul{}, "f32[5, 2], f32[7, 2, 3]", "ny"},
      {Matmul{}, "f32[1, 5, 2], f32[7, 2, 3]", "ny"},
      {Linear{}, "f32[5, 2], f32[3, 2], f32[4, 2]", "ynn"},
      {Linear{}, "f32[2], f32[3, 2]", "nn"},
      {GroupedLinear{}, "f32[5, 2], f32[5, 3, 2], i32[5]", "yny"},
      {GroupQuantize{}, "f32[5, 64]", "y"},
      {GroupQuantize{}, "f32[64]", "n"},
      {GroupDequantize{}, "u32[5, 8], f32[5, 1], f32[5, 1]", "yyy"},
      {GroupMatmul{}, "f32[5, 64], u32[5, 8], f32[5, 1], f32[5, 1]", "ynnn"},
      {GroupMatmul{}, "f32[64], u32[5, 8], f32[5, 1], f32[5, 1]", "nnnn"},
      {GroupMatmul{}, "f32[5, 2, 64], u32[5, 5, 8], f32[5, 5, 1], f32[5, 5, 1]", "nnnn"},
      {GroupMatmul{{}, true, true},
       "f32[5, 2, 64], u32[5, 5, 8], f32[5, 5, 1], f32[5, 5, 1], u32[5], u32[5]", "nnnnyy"},
      {GatherMatmul{}, "f32[5, 2, 3], f32[5, 3, 2], u32[5, 2], u32[5, 2]", "nnyy"},
      {GatherMatmul{}, "f32[5, 2, 3], f32[5, 3, 2], u32[], u32[]", "nnnn"},
      {SegmentedMatmul{}, "f32[5, 2], f32[2, 5], u32[5, 2]", "nny"},
      {SegmentedMatmul{}, "f32[5, 2], f32[2, 5], u32[2]", "nnn"},
      {Fp8{}, "f32[5]", "y"},
      {Conv{plain(1)}, "f32[5, 2, 3], f32[5, 2, 3]", "yn"},
      {Im2col{{2}, plain(1)}, "f32[5, 2, 3]", "y"},
      {Pool{PoolKind::max, PoolWindows{{2}, {1}, {0}, {0}}}, "f32[5, 2, 3]", "y"},
      {Resize{ResizeKind::nearest, {4}}, "f32[5, 2, 3]", "y"},
      {SelectiveScan{true},
       "f32[5, 2, 5], f32[5, 2, 5], f32[5, 5], f32[5, 2, 1, 5], f32[5, 2, 1, 5], f32[5], "
       "f32[5, 5, 5]",
       "yynyyny"},
      {SelectiveScan{false},
       "f32[5, 2, 5], f32[5, 2, 5], f32[5, 5], f32[5, 2, 1, 5], f32[5, 2, 1, 5], f32[5, 5, 5]",
       "yynyyy"},
      {Rope{angles, false}, "f32[5, 2, 8], i32[5]", "yy"},
      {Rope{factors, true}, "f32[5, 2, 8], f32[16], i32[5], f32[4]", "ynyn"},
      {RopeTable{}, "f32[5, 2, 8], f32[9, 4], f32[9, 4], i32[5]", "ynny"},
      {RopeTable{RopeStyle::split_half, false}, "f32[5, 2, 8], f32[5, 4], f32[5, 4]", "yyy"},
      {RopeWriteRows{true, true, factors},
       "f32[9, 2, 8], f32[5, 2, 8], i32[5], f32[16], i32[5], f32[4]", "nyynyn"},
      {RopeWriteRows{true, false, {}}, "f32[9, 2, 8], f32[5, 2, 8], i32[5], f32[16]", "nyyn"},
      {NormRope{1e-6f, true, factors}, "f32[5, 2, 8], f32[8], i32[5], f32[4]", "ynyn"},
      {NormRopeWriteRows{1e-6f, true, factors},
       "f32[9, 2, 8], f32[5, 2, 8], i32[5], f32[8], i32[5], f32[4]", "nyynyn"},
      {NormRopeWriteRows{1e-6f, false, angles}, "f32[9, 2, 8], f32[5, 2, 8], i32[5], i32[5]",
       "nyyy"},
      {Attention{.mask = boolean}, "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8], bool[5, 7]",
       "yyyn"},
      {Attention{.mask = boolean, .has_sinks = true},
       "f32[2, 2, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8], bool[2, 1, 1, 7], f32[2]", "yyyyn"},
      {Attention{.mask = boolean},
       "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8], bool[2, 1, 1, 7]", "yyyy"},
      {Attend{}, "f32[5, 4, 8], f32[64, 2, 8], f32[64, 2, 8], i32[5, 2], i32[5], i32[5], i32[5]",
       "ynnnyyn"},
      {RandomBits{{3}, 4}, "u32[5, 2]", "y"},
      {RandomBits{{5}, 4}, "u32[2]", "n"},
      {Arange{0, 1, 5, DType::f32}, "", ""},
  };
}

TEST(Rows, WhichOperandsAnOutputRowDependsOnByRow) {
  for (const Case& c : cases()) {
    const std::vector<TensorSpec> in = specs(c.inputs);
    EXPECT_NO_THROW(infer(c.op, in)) << to_string(c.op);
    std::string rows;
    for (std::size_t i = 0; i < in.size(); ++i) rows += is_row_operand(c.op, i, in) ? 'y' : 'n';
    EXPECT_EQ(rows, c.rows) << to_string(c.op) << " of " << c.inputs;
  }
}

TEST(IndexBounds, NameIntegerOperandsAndExtentsThatAreThere) {
  int bounds = 0;
  for (const Example& example : examples()) {
    const std::vector<TensorSpec> in = specs(example.inputs);
    for (const IndexBound& bound : index_bounds(example.op)) {
      ++bounds;
      ASSERT_LT(bound.operand, in.size()) << to_string(example.op);
      EXPECT_TRUE(is_integer(in[bound.operand].dtype)) << to_string(example.op);
      ASSERT_LT(bound.of, in.size()) << to_string(example.op);
      EXPECT_LT(bound.axis, in[bound.of].shape.size()) << to_string(example.op);
      EXPECT_GE(bound.divisor, 1);
      EXPECT_GE(bound.multiplier, 1);
    }
  }
  EXPECT_GT(bounds, 10);
}

TEST(IndexBounds, OfAttend) {
  const std::vector<IndexBound> bounds = index_bounds(Attend{.block_size = 16});
  ASSERT_EQ(bounds.size(), 4u);
  EXPECT_EQ(bounds[0].operand, 3u);  // blocks: rows of the state by 16
  EXPECT_EQ(bounds[0].divisor, 16);
  EXPECT_EQ(bounds[1].minimum, -1);  // idle tokens
  EXPECT_EQ(bounds[3].multiplier, 16);
  EXPECT_TRUE(bounds[3].inclusive);  // a sequence may fill its blocks
}

}  // namespace
}  // namespace heddle
