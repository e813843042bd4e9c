#include <gmock/gmock.h>

#include <limits>
#include <set>

#include "heddle/error.h"
#include "heddle/op.h"
#include "op/examples.h"
#include "support/specs.h"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kHuge = std::int64_t{1} << 62;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Refusal {
  Op op;
  const char* inputs;
  const char* says;  // part of the message, after the op's name
};

std::vector<Refusal> leaves_and_views() {
  return {
      {Parameter{"w", {DType::f32, {2}}}, "f32[2]",
       "takes 0 inputs (none), but was given 1 (f32[2])"},
      {Parameter{"", {DType::f32, {2}}}, "", "f32[2] has no name"},
      {Parameter{"w", {DType::q8_0, {2, 33}}}, "", "33"},
      {Parameter{"w", {DType::f32, {-2}}}, "", "negative"},
      {Parameter{"w", {DType::f32, {kHuge, 4}}}, "", "overflow"},
      {Input{"x", {DType::f32, {}}, "n"}, "", "no rows"},
      {StateRef{"", {DType::f32, {2}}}, "", "no name"},
      {Reshape{{5}}, "f32[2, 3]", "f32[2, 3] has 6 elements and cannot become [5], which has 5"},
      {Reshape{{-2, -3}}, "f32[2, 3]", "negative"},
      {Reshape{{2, 8, 8}}, "q8_0[2, 64]", "block"},
      {Reshape{{6}}, "f32[2], f32[3]", "takes 1 input (x), but was given 2"},
      {Transpose{{0}}, "f32[2, 3]", "axes [0] do not fit f32[2, 3]"},
      {Transpose{{0, 0}}, "f32[2, 3]", "axis 0 is named twice"},
      {Transpose{{0, 2}}, "f32[2, 3]", "axis 2 is outside [0, 2)"},
      {Transpose{{-1, 0}}, "f32[2, 3]", "axis -1"},
      {Transpose{{1, 0}}, "q8_0[32, 32]", "holds blocks and cannot move"},
      {Slice{{0}, {1}, {1}}, "f32[2, 3]", "do not fit f32[2, 3]"},
      {Slice{{0}, {3}, {1}}, "f32[2]", "[0:3:1] is not within axis 0 of f32[2]"},
      {Slice{{2}, {1}, {1}}, "f32[3]", "[2:1:1]"},
      {Slice{{-1}, {1}, {1}}, "f32[3]", "[-1:1:1]"},
      {Slice{{0}, {1}, {0}}, "f32[3]", "the step of axis 0 is 0"},
      {Slice{{0}, {1}, {-1}}, "f32[3]", "[0:1:-1] is not within axis 0 of f32[3]"},
      {Slice{{3}, {0}, {-1}}, "f32[3]", "[3:0:-1]"},
      {Slice{{2}, {-2}, {-1}}, "f32[3]", "[2:-2:-1]"},
      {Slice{{63}, {-1}, {-1}}, "q8_0[64]", "whole blocks"},
      {Slice{{16}, {64}, {1}}, "q8_0[64]", "does not fall on whole blocks of 32"},
      {Slice{{0}, {64}, {2}}, "q8_0[64]", "whole blocks"},
      {Broadcast{{3, 2}}, "f32[3]", "f32[3] does not broadcast to [3, 2]"},
      {Broadcast{{3}}, "f32[1, 3]", "does not broadcast"},
      {Broadcast{{-1}}, "f32[1]", "negative"},
      {Broadcast{{kHuge, kHuge}}, "f32[1]", "overflow"},
      {Depends{0}, "f32[2]", "0 values of 1 inputs (f32[2])"},
      {Depends{3}, "f32[2], i8[]", "3 values of 2 inputs (f32[2], i8[])"},
      {Squeeze{{0}}, "f32[2]", "axis 0 of f32[2] is not of extent 1"},
      {Squeeze{{1}}, "f32[1]", "axis 1 is outside"},
      {ExpandDims{{3}}, "f32[2]", "axis 3 is outside [0, 2)"},
      {ExpandDims{{0, 1, 2, 3}}, "f32[1, 1, 1, 1, 1]", "at most 8"},
      {ExpandDims{{1}}, "q8_0[32]", "block"},
      {AsStrided{{2}, {1, 1}, 0}, "f32[4]", "strides [1, 1] do not fit shape [2]"},
      {AsStrided{{3}, {2}, 0}, "f32[4]", "reaches beyond the 4 elements of f32[4]"},
      {AsStrided{{3}, {-2}, 3}, "f32[4]", "reaches beyond"},
      {AsStrided{{}, {}, 4}, "f32[4]", "from element 4 reaches beyond"},
      {AsStrided{{}, {}, -1}, "f32[4]", "from element -1"},
      {AsStrided{{1}, {1}, 0}, "f32[0]", "the 0 elements"},
      {AsStrided{{3, 3}, {kHuge, 1}, 0}, "f32[4]", "reaches beyond"},
      {AsStrided{{5}, {-kHuge}, 0}, "f32[4]", "reaches beyond"},
      {AsStrided{{-1}, {1}, 0}, "f32[4]", "negative"},
      {AsStrided{{32}, {1}, 0}, "q8_0[32]", "block type"},
  };
}

std::vector<Refusal> movement() {
  return {
      {Contiguous{}, "", "takes 1 input (x), but was given 0"},
      {Repack{LayoutKind::strided}, "f32[2, 3]", "strided"},
      {Repack{}, "f32[2]", "2 dimensions"},
      {Cast{DType::q8_0}, "f32[32]", "f32[32] to q8_0: casts do not quantise"},
      {Reinterpret{DType::f32}, "u8[2, 6]", "rows of 6 bytes are not whole elements of 4"},
      {Reinterpret{DType::u8}, "f32[]", "a scalar keeps its size"},
      {Reinterpret{DType::f32}, "q8_0[32]", "block type"},
      {Reinterpret{DType::q8_0}, "f32[32]", "block type"},
      {Reinterpret{DType::u8}, "f64[0, 4611686018427387904]", "overflow"},
      {Concatenate{0}, "", "at least 1"},
      {Concatenate{1}, "f32[2], f32[2]", "axis 1 is outside [0, 1)"},
      {Concatenate{-1}, "f32[2], f32[2]", "axis -1"},
      {Concatenate{0}, "f32[2, 3], f32[2, 4]",
       "f32[2, 4] does not continue f32[2, 3] along axis 0"},
      {Concatenate{0}, "f32[2], f32[2, 1]", "does not continue"},
      {Concatenate{0}, "f32[2], f16[2]", "differ in dtype"},
      {SliceUpdate{{0}, {2}, {1}}, "f32[4]", "takes 2 inputs (base, update)"},
      {SliceUpdate{{0}, {2}, {1}}, "f32[4], f32[3]", "the update is f32[3]; it must be f32[2]"},
      {SliceUpdate{{0}, {2}, {1}}, "f32[4], f16[2]", "the update is f16[2]; it must be f32[2]"},
      {SliceUpdate{{0}, {5}, {1}}, "f32[4], f32[5]", "[0:5:1] is not within axis 0 of f32[4]"},
      {SliceUpdate{{0}, {4}, {0}}, "f32[4], f32[4]", "the step of axis 0 is 0"},
      {SliceUpdate{{0}, {32}, {1}}, "q8_0[32], q8_0[32]", "block type"},
      {SliceUpdate{{}, {}, {}}, "f32[4], f32[4]", "do not fit f32[4]"},
      {GatherRows{}, "f32[], i32[2]", "at least 1 dimension"},
      {GatherRows{}, "f32[2], f32[2]", "ids are f32[2]; they must be integers"},
      {GatherRows{DType::q8_0}, "q8_0[2, 32], i32[2]", "cannot be given as q8_0"},
      {GatherRows{DType::f32}, "i32[2, 3], i32[2]", "cannot be given as f32"},
      {GatherRows{DType::f32}, "f32[1, 1, 1, 1, 1, 1], i32[1, 1, 1, 1]", "at most 8"},
      {WriteRows{}, "f32[4, 2], f32[3, 5], i32[3]", "rows of x f32[3, 5] do not fit"},
      {WriteRows{}, "f32[4, 2], f32[3, 2], i32[4]",
       "row is i32[4]; for x f32[3, 2] it must be i32[3]"},
      {WriteRows{}, "f32[4, 2], f32[3, 2], i64[3]", "row is i64[3]"},
      {WriteRows{}, "f32[4, 2], i32[3, 2], i32[3]", "cannot be converted"},
      {WriteRows{}, "f32[4, 2], f32[3, 2]", "takes 3 inputs (state, x, row)"},
      {WriteRows{}, "f32[], f32[], i32[]", "at least 1 dimension"},
      {Feed{Feed::Kind::whole}, "f32[2], f32[3]", "x is f32[3]; it must be f32[2]"},
      {Feed{Feed::Kind::whole}, "f32[2], f32[2], i32[]", "takes 2 inputs"},
      {Feed{Feed::Kind::prefix}, "f32[4, 2], f32[3, 3], i32[]", "do not fit"},
      {Feed{Feed::Kind::prefix}, "f32[4, 2], f32[3, 2], i64[]", "the extent is i64[]"},
      {Feed{Feed::Kind::prefix}, "f32[], f32[3], i32[]", "do not fit"},
      {Feed{Feed::Kind::row}, "f32[2, 3], f32[4, 3], i32[]", "do not fit"},
      {Feed{Feed::Kind::row}, "f16[3], f32[4, 3], i32[]", "differ in dtype"},
      {Arange{0, 1, -1, DType::f32}, "", "of -1 elements"},
      {Arange{0, 1, 1, DType::bool_}, "", "of bool"},
      {Arange{0, 1, 1, DType::q8_0}, "", "of q8_0"},
      {Arange{0, kInfinity, 1, DType::f32}, "", "from 0 in steps of inf"},
  };
}

std::vector<Refusal> arithmetic() {
  return {
      {Unary{UnaryKind::exp}, "i32[2]",
       "is not defined for i32[2]; its dtype must be floating or complex"},
      {Unary{UnaryKind::erf}, "complex64[2]", "must be floating"},
      {Unary{UnaryKind::trunc}, "complex64[2]", "must be floating"},
      {Unary{UnaryKind::bitwise_invert}, "f32[2]", "must be bool or integer"},
      {Unary{UnaryKind::real}, "f32[2]", "must be complex"},
      {Unary{UnaryKind::conjugate}, "q8_0[32]", "block type"},
      {Unary{UnaryKind::negative}, "bool[2]", "integer or floating or complex"},
      {Unary{UnaryKind::abs}, "q8_0[32]", "block type"},
      {Binary{BinaryKind::add}, "f32[2, 3], f32[4]",
       "shapes f32[2, 3] and f32[4] do not broadcast"},
      {Binary{BinaryKind::add}, "f32[2], f16[2]", "f32[2] and f16[2] differ in dtype"},
      {Binary{BinaryKind::add}, "f32[2]", "takes 2 inputs (a, b), but was given 1 (f32[2])"},
      {Binary{BinaryKind::subtract}, "bool[2], bool[2]", "not defined for bool[2]"},
      {Binary{BinaryKind::divide}, "i32[2], i32[2]", "must be floating or complex"},
      {Binary{BinaryKind::maximum}, "complex64[2], complex64[2]", "bool or integer or floating"},
      {Compare{CompareKind::less}, "complex64[2], complex64[2]", "not defined"},
      {Compare{CompareKind::equal}, "f32[2], i32[2]", "differ in dtype"},
      {Select{}, "f32[2], f32[2], f32[2]", "the condition is f32[2]; it must be bool"},
      {Select{}, "bool[2], f32[2], f16[2]", "differ in dtype"},
      {Select{}, "bool[2], f32[3], f32[]", "do not broadcast"},
      {GatedMultiply{UnaryKind::exp}, "f32[2], f32[2]", "activation exp"},
      {GatedMultiply{}, "f32[2, 3], f32[3]", "up is f32[3]; it must be f32[2, 3]"},
      {GatedMultiply{}, "i32[2], i32[2]", "the gate is i32[2]"},
      {Reduce{ReduceKind::sum, {2}, false}, "f32[2, 3]", "axis 2 is outside [0, 2)"},
      {Reduce{ReduceKind::sum, {1, 0}, false}, "f32[2, 3]", "not sorted and distinct"},
      {Reduce{ReduceKind::sum, {0, 0}, false}, "f32[2, 3]", "not sorted and distinct"},
      {Reduce{ReduceKind::max, {0}, false}, "f32[0, 3]", "max of nothing"},
      {Reduce{ReduceKind::mean, {0, 1}, false}, "f32[2, 0]", "mean of nothing"},
      {Reduce{ReduceKind::max, {0}, false}, "complex64[2]", "not defined"},
      {Reduce{ReduceKind::sum, {0}, false}, "q8_0[32]", "block type"},
      {Reduce{ReduceKind::any, {0}, false}, "q4_0[32]", "block type"},
      {Softmax{}, "f32[]", "at least 1 dimension"},
      {Softmax{}, "i32[2]", "f16, bf16, f32 or f64"},
      {RmsNorm{}, "f32[2, 3], f32[2]", "the weight is f32[2]; it must be f32[3]"},
      {RmsNorm{}, "f16[2, 3], f64[3]", "it must be f16[3] or as much in f32"},
      {RmsNorm{}, "f32[2, 3]", "takes 2 inputs (x, weight)"},
      {RmsNorm{1e-5f, true, true}, "f32[2, 3], f32[3], f32[3, 1]", "the bias is f32[3, 1]"},
      {AddRmsNorm{}, "f32[2, 3], f32[3], f32[3]", "b is f32[3]; it must be f32[2, 3]"},
      {AddRmsNorm{}, "f32[2, 3], f32[3]", "takes 3 inputs (a, b, weight)"},
      {LayerNorm{}, "f32[2, 3], f32[3], f32[4]", "the bias is f32[4]"},
      {LayerNorm{}, "i32[2, 3], i32[3], i32[3]", "x is i32[2, 3]"},
      {Matmul{}, "f32[3], f32[3, 2]", "a is f32[3]; it must have at least 2 dimensions"},
      {Matmul{}, "f32[2, 3], f32[2, 3]", "the columns of a are not the rows of b"},
      {Matmul{}, "f32[2, 3, 4], f32[3, 4, 5]", "the batches of f32[2, 3, 4] and f32[3, 4, 5]"},
      {Matmul{}, "i32[2, 3], i32[3, 4]", "is not defined for i32[2, 3]"},
      {Matmul{}, "f32[2, 3], f16[3, 4]", "differ in dtype"},
      {Linear{}, "f32[2, 3]", "at least one weight"},
      {Linear{}, "f16[2, 3], f16[4, 3]", "x is f16[2, 3]; it must be f32"},
      {Linear{}, "f32[2, 3], f32[4, 3], f32[3, 4]",
       "weight 1 is f32[3, 4]; for x f32[2, 3] it must be [out, 3]"},
      {Linear{}, "f32[2, 3], i8[4, 3]", "weight 0 is i8[4, 3]"},
  };
}

std::vector<Refusal> attention() {
  using enum Attention::Mask;
  const RopeAngles angles{.dims = 8};
  const char* qkv = "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8]";
  return {
      {Rope{angles, false}, "f32[5, 8], i32[5]", "x is f32[5, 8]; it must have 3 dimensions"},
      {Rope{angles, false}, "f32[5, 2, 8], i32[4]", "pos is i32[4]; it must be i32[5]"},
      {Rope{angles, true}, "f32[5, 2, 8], f32[8], i32[5]",
       "the bias is f32[8]; it must be f32[16]"},
      {Rope{angles, true}, "f32[5, 2, 8], i32[5]", "takes 3 inputs (x, bias, pos)"},
      {Rope{{.dims = 7}, false}, "f32[5, 2, 8], i32[5]", "7 of 8 features of x f32[5, 2, 8] turn"},
      {Rope{{.dims = 10}, false}, "f32[5, 2, 8], i32[5]", "10 of 8 features"},
      {Rope{{.dims = 0}, false}, "f32[5, 2, 8], i32[5]", "0 of 8 features"},
      {Rope{{.dims = 8, .base = 0}, false}, "f32[5, 2, 8], i32[5]", "base 0"},
      {Rope{{.dims = 8, .has_factors = true}, false}, "f32[5, 2, 8], i32[5], f32[8]",
       "the factors is f32[8]; it must be f32[4]"},
      {RopeTable{}, "f32[5, 2, 8], f32[9, 5], f32[9, 5], i32[5]", "1 to 4 columns"},
      {RopeTable{}, "f32[5, 2, 8], f32[9, 4], f32[9, 3], i32[5]", "sin is f32[9, 3]"},
      {RopeTable{}, "f32[5, 2, 8], f32[9, 4], f32[9, 4], i32[9]", "index is i32[9]"},
      {RopeTable{RopeStyle::split_half, false}, "f32[5, 2, 8], f32[9, 4], f32[9, 4]",
       "a row for each"},
      {RopeWriteRows{false, true, angles}, "f32[9, 2, 8], f32[5, 2, 8], i32[5]",
       "takes 4 inputs (state, x, row, pos)"},
      {RopeWriteRows{false, true, angles}, "f32[9, 2, 8], f32[5, 4, 8], i32[5], i32[5]",
       "rows of x"},
      {RopeWriteRows{false, false, angles}, "f32[9, 8], f32[5, 2, 8], i32[5]",
       "the state is f32[9, 8]"},
      {Attention{}, "f32[4, 5, 8], f32[2, 7, 8], f32[2, 7, 8]", "q is f32[4, 5, 8]"},
      {Attention{}, "f32[2, 3, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8]",
       "3 query heads are not a multiple of 2 key heads"},
      {Attention{}, "f32[2, 4, 5, 8], f32[2, 0, 7, 8], f32[2, 0, 7, 8]", "0 key heads"},
      {Attention{}, "f32[2, 4, 5, 8], f32[2, 2, 7, 6], f32[2, 2, 7, 8]", "batch or head size"},
      {Attention{}, "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 6, 8]", "heads or length"},
      {Attention{}, "f32[2, 4, 5, 8], f16[2, 2, 7, 8], f16[2, 2, 7, 8]", "differ in dtype"},
      {Attention{.window = 3}, qkv, "window 3; it is for the causal mask"},
      {Attention{.mask = causal, .window = -1}, qkv, "window -1"},
      {Attention{.mask = boolean}, qkv, "takes 4 inputs (q, k, v, mask)"},
      {Attention{.mask = boolean}, "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8], f32[5, 7]",
       "the boolean mask is f32[5, 7]; it must be bool"},
      {Attention{.mask = additive}, "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8], f32[7, 5]",
       "the mask f32[7, 5] does not broadcast to [2, 4, 5, 7]"},
      {Attend{}, "f32[3, 4, 8], f32[64, 2, 8], f32[64, 2, 8]", "takes 7 inputs"},
      {Attend{}, "f32[3, 4, 8], f32[64, 2, 8], f32[64, 2, 8], i32[2], i32[3], i32[3], i32[2]",
       "the block table is i32[2]"},
      {Attend{}, "f32[3, 4, 8], i8[64, 2, 8], f32[64, 2, 8], i32[2, 2], i32[3], i32[3], i32[2]",
       "k is i8[64, 2, 8]; it must be f32, f16 or q8_0"},
      {Attend{}, "f32[3, 4, 8], f32[64, 2, 8], f32[32, 2, 8], i32[2, 2], i32[3], i32[3], i32[2]",
       "differ in shape"},
      {Attend{}, "f32[3, 3, 8], f32[64, 2, 8], f32[64, 2, 8], i32[2, 2], i32[3], i32[3], i32[2]",
       "3 query heads"},
      {Attend{}, "f32[3, 4, 8], f32[64, 2, 8], f32[64, 2, 8], i32[2, 2], i32[2], i32[3], i32[2]",
       "seq is i32[2]; it must be i32[3]"},
      {Attend{}, "f32[3, 4, 8], f32[64, 2, 8], f32[64, 2, 8], i32[2, 2], i32[3], i32[3], i32[3]",
       "len is i32[3]; it must be i32[2]"},
      {Attend{.block_size = 0},
       "f32[3, 4, 8], f32[64, 2, 8], f32[64, 2, 8], i32[2, 2], i32[3], i32[3], i32[2]",
       "blocks of 0 rows"},
  };
}

std::vector<Refusal> along_axes() {
  using Mode = Pad::Mode;
  return {
      {GatherAxis{2}, "f32[2, 3], i32[2, 3]", "axis 2 is outside [0, 2)"},
      {GatherAxis{-1}, "f32[2, 3], i32[2, 3]", "axis -1 is outside"},
      {GatherAxis{0}, "f32[], i32[]", "axis 0 is outside [0, 0)"},
      {GatherAxis{0}, "f32[2, 3], f32[2, 3]", "indices are f32[2, 3]; they must be integers"},
      {GatherAxis{0}, "f32[2, 3], i32[2]", "indices i32[2] do not fit f32[2, 3]"},
      {GatherAxis{0}, "f32[2, 3], i32[2, 1]", "must agree but along axis 0"},
      {GatherAxis{0}, "q8_0[2, 32], i32[2, 32]", "block type"},
      {GatherAxis{0}, "f32[2]", "takes 2 inputs (x, indices)"},
      {ScatterAxis{0}, "f32[2], i32[3], f32[2]", "updates is f32[2]; it must be f32[3]"},
      {ScatterAxis{0}, "f32[2], i32[3], f16[3]", "updates is f16[3]; it must be f32[3]"},
      {ScatterAxis{0, ScatterKind::max}, "complex64[2], i32[2], complex64[2]",
       "is not defined for complex64[2]"},
      {ScatterAxis{0}, "f32[2], bool[2], f32[2]", "indices are bool[2]"},
      {Gather{{0}, {1}}, "f32[3]", "takes 2 inputs (x, indices for each axis)"},
      {Gather{{1}, {1}}, "f32[3], i32[2]", "axis 1 is outside [0, 1)"},
      {Gather{{0, 0}, {1}}, "f32[3], i32[2], i32[2]", "axis 0 is named twice"},
      {Gather{{0}, {1}}, "f32[3], f32[2]", "indices are f32[2]; they must be integers"},
      {Gather{{0}, {1}}, "f32[3], bool[2]", "indices are bool[2]"},
      {Gather{{0, 1}, {1, 1}}, "f32[3, 2], i32[2], i32[1]", "i32[2] and i32[1] differ in shape"},
      {Gather{{0}, {1, 1}}, "f32[3], i32[2]", "slices of [1, 1] do not fit f32[3]"},
      {Gather{{0}, {4}}, "f32[3], i32[2]", "slices of [4] do not lie within f32[3]"},
      {Gather{{0}, {-1}}, "f32[3], i32[2]", "do not lie within"},
      {Gather{{0}, {1}}, "f32[3], i32[1, 1, 1, 1, 1, 1, 1, 1]", "9 dimensions; at most 8"},
      {Gather{{0}, {32}}, "q8_0[32], i32[2]", "block type"},
      {Scatter{ScatterKind::none, {0}}, "f32[3], i32[2]",
       "takes 3 inputs (x, indices for each axis, updates)"},
      {Scatter{ScatterKind::none, {0}}, "f32[3], i32[2], f16[2, 1]", "differ in dtype"},
      {Scatter{ScatterKind::none, {0}}, "f32[3], i32[2], f32[2]",
       "updates are f32[2]; they must be of [2] and a slice of f32[3]"},
      {Scatter{ScatterKind::none, {0}}, "f32[3], i32[2], f32[3, 1]", "updates are f32[3, 1]"},
      {Scatter{ScatterKind::none, {0}}, "f32[3], i32[2], f32[2, 4]",
       "slices of updates f32[2, 4] do not lie within f32[3]"},
      {Scatter{ScatterKind::min, {0}}, "complex64[3], i32[2], complex64[2, 1]",
       "is not defined for complex64[3]"},
      {Scatter{ScatterKind::none, {-1}}, "f32[3], i32[2], f32[2, 1]", "axis -1 is outside"},
      {Sort{}, "f32[3], f32[3]", "takes 1 input (x)"},
      {Sort{}, "f32[]", "must have at least 1 dimension"},
      {Sort{}, "q8_0[32]", "block type"},
      {Sort{}, "u8[4294967296]", "more than u32 indices tell apart"},
      {SearchSorted{}, "f32[3]", "takes 2 inputs (sorted, values)"},
      {SearchSorted{}, "f32[3, 2], f32[3]", "what is sorted is f32[3, 2]; it must have 1"},
      {SearchSorted{}, "f32[3], f16[3]", "differ in dtype"},
      {SearchSorted{}, "q8_0[32], q8_0[32]", "block type"},
      {Pad{Mode::constant, {1}, {1}}, "f32[2]", "takes 2 inputs (x, value)"},
      {Pad{Mode::edge, {1}, {1}}, "f32[2], f32[]", "takes 1 input (x)"},
      {Pad{Mode::constant, {1}, {1}}, "f32[2], i32[]", "the value is i32[]; it must be f32[]"},
      {Pad{Mode::constant, {1}, {1}}, "f32[2], f32[1]", "the value is f32[1]"},
      {Pad{Mode::edge, {1}, {1, 1}}, "f32[2, 2]", "low [1] and high [1, 1] do not fit"},
      {Pad{Mode::edge, {0, -1}, {0, 2}}, "f32[2, 2]", "axis 1 of f32[2, 2] by -1 and 2"},
      {Pad{Mode::edge, {1, 0}, {0, 0}}, "f32[0, 2]", "axis 0 of f32[0, 2] has no edge"},
      {Pad{Mode::edge, {kHuge}, {kHuge}}, "f32[2]", "overflows"},
      {Pad{Mode::edge, {1}, {1}}, "q8_0[32]", "block type"},
      {Scan{ScanKind::sum, 1}, "f32[2]", "axis 1 is outside [0, 1)"},
      {Scan{ScanKind::max, 0}, "complex64[2]", "must be bool or integer or floating"},
      {Scan{ScanKind::logaddexp, 0}, "i32[2]", "must be floating"},
      {Scan{}, "q8_0[32]", "block type"},
      {ArgReduce{ArgReduceKind::max, 1}, "f32[2]", "axis 1 is outside [0, 1)"},
      {ArgReduce{ArgReduceKind::max, 1}, "f32[2, 0]", "argmax of nothing: f32[2, 0] over axis 1"},
      {ArgReduce{ArgReduceKind::min, 0}, "complex64[2]", "not defined"},
      {ArgReduce{ArgReduceKind::min, 0}, "u8[4294967296]", "more than u32"},
      {TopK{3}, "f32[9, 2]", "the 3 largest of rows of f32[9, 2]"},
      {TopK{-1}, "f32[2]", "the -1 largest"},
      {TopK{1}, "f32[]", "at least 1 dimension"},
      {TopK{1}, "complex64[2]", "not defined"},
      {TopK{1}, "u8[4294967296]", "more than u32"},
      {ChannelNorm{2}, "f32[2, 3], f32[3], f32[3]", "axis 2 is outside"},
      {ChannelNorm{0}, "f32[2, 3], f32[3], f32[3]", "the weight is f32[3]; it must be f32[2]"},
      {GroupNorm{2}, "f32[2, 3], f32[3], f32[3]", "3 channels of x f32[2, 3] do not divide into 2"},
      {GroupNorm{0}, "f32[2, 3], f32[3], f32[3]", "0 groups"},
      {GroupNorm{1}, "f32[3], f32[3], f32[3]", "at least 2 dimensions"},
      {GroupNorm{1, -1.0f}, "f32[2, 3], f32[3], f32[3]", "eps -1"},
  };
}

std::vector<Refusal> spatial() {
  const Windows one = plain(1);
  const auto with = [&](auto field, Dims value) {
    Windows windows = one;
    windows.*field = value;
    return windows;
  };
  using W = Windows;
  return {
      {GroupedLinear{}, "f32[3, 4], f32[2, 5, 4]", "takes 3 inputs (x, weights, expert)"},
      {GroupedLinear{}, "f16[3, 4], f32[2, 5, 4], i32[3]", "x is f16[3, 4]; it must be f32"},
      {GroupedLinear{}, "f32[3, 4], f32[5, 4], i32[3]", "they must be [experts, out, 4]"},
      {GroupedLinear{}, "f32[3, 4], f32[2, 5, 3], i32[3]", "they must be [experts, out, 4]"},
      {GroupedLinear{}, "f32[3, 4], f64[2, 5, 4], i32[3]", "a block type"},
      {GroupedLinear{}, "f32[3, 4], f32[2, 5, 4], i32[2]",
       "expert is i32[2]; for x f32[3, 4] it must be i32[3]"},
      {GroupedLinear{}, "f32[3, 4], f32[2, 5, 4], u32[3]", "expert is u32[3]"},
      {Conv{one}, "f32[2, 9], f32[6, 3]", "it must be [N, spatial..., C]"},
      {Conv{one}, "f32[2, 1, 1, 1, 1, 9], f32[6, 3]", "1 to 3 spatial axes"},
      {Conv{one}, "f32[2, 0, 4], f32[6, 3, 4]", "nothing along its spatial axis 1"},
      {Conv{one}, "i32[2, 9, 4], i32[6, 3, 4]", "x is i32[2, 9, 4]"},
      {Conv{one}, "f32[2, 9, 4], f16[6, 3, 4]", "differ in dtype"},
      {Conv{one}, "f32[2, 9, 4], f32[6, 3, 5]", "in 1 group they must be [O, spatial..., 4]"},
      {Conv{one, 2}, "f32[2, 9, 4], f32[6, 3, 4]", "in 2 groups they must be [O, spatial..., 2]"},
      {Conv{one, 3}, "f32[2, 9, 4], f32[6, 3, 1]", "4 channels of x f32[2, 9, 4] do not divide"},
      {Conv{one, 0}, "f32[2, 9, 4], f32[6, 3, 1]", "0 groups"},
      {Conv{one, 2}, "f32[2, 9, 4], f32[5, 3, 2]", "the 5 outputs of weights f32[5, 3, 2]"},
      {Conv{one}, "f32[2, 9, 4], f32[6, 0, 4]", "the weights' extent [0]"},
      {Conv{one}, "f32[2, 9, 4], f32[6, 10, 4]", "a window of 10 does not fit the 9 elements"},
      {Conv{with(&W::kernel_dilation, {5})}, "f32[2, 9, 4], f32[6, 3, 4]", "a window of 11"},
      {Conv{with(&W::padding_low, {-7})}, "f32[2, 9, 4], f32[6, 3, 4]", "the 2 elements"},
      {Conv{with(&W::stride, {0})}, "f32[2, 9, 4], f32[6, 3, 4]", "stride [0]"},
      {Conv{with(&W::stride, {1, 1})}, "f32[2, 9, 4], f32[6, 3, 4]", "stride [1, 1] has 2 entries"},
      {Conv{with(&W::input_dilation, {0})}, "f32[2, 9, 4], f32[6, 3, 4]", "input_dilation [0]"},
      {Conv{with(&W::padding_high, {kHuge})}, "f32[2, 9, 4], f32[6, 3, 4]", "padding_high"},
      {Conv{with(&W::input_dilation, {2147483647})}, "f32[0, 4611686018427387904, 4], f32[6, 3, 4]",
       "overflow"},
      {Im2col{{3, 3}, one}, "f32[2, 9, 4]", "window [3, 3] has 2 entries"},
      {Im2col{{0}, one}, "f32[2, 9, 4]", "window [0]"},
      {Im2col{{10}, one}, "f32[2, 9, 4]", "a window of 10"},
      {Im2col{{2}, with(&W::kernel_dilation, {9})}, "f32[2, 9, 4]", "a window of 10"},
      {Im2col{{2}, one}, "f32[0, 9, 4611686018427387904]", "overflow"},
      {Im2col{{1}, one}, "q8_0[2, 9, 32]", "block type"},
      {Pool{PoolKind::mean, PoolWindows{{2}, {1}, {0}, {0}}}, "i32[2, 9, 4]", "must be floating"},
      {Pool{PoolKind::max, PoolWindows{{2}, {1}, {0}, {0}}}, "bool[2, 9, 4]",
       "integer or floating"},
      {Pool{PoolKind::max, PoolWindows{{2}, {1}, {2}, {0}}}, "f32[2, 9, 4]",
       "smaller than the window, 2"},
      {Pool{PoolKind::max, PoolWindows{{2}, {1}, {0}, {-1}}}, "f32[2, 9, 4]", "padding_high [-1]"},
      {Pool{PoolKind::max, PoolWindows{{2}, {0}, {0}, {0}}}, "f32[2, 9, 4]", "stride [0]"},
      {Pool{PoolKind::max, PoolWindows{{10}, {1}, {0}, {0}}}, "f32[2, 9, 4]", "a window of 10"},
      {Pool{PoolKind::max, PoolWindows{{}, {}, {}, {}}}, "f32[2, 9, 4]", "window [] has 0 entries"},
      {Resize{ResizeKind::nearest, {0}}, "f32[2, 9, 4]", "size [0]"},
      {Resize{ResizeKind::nearest, {1, 1}}, "f32[2, 9, 4]", "size [1, 1] has 2 entries"},
      {Resize{ResizeKind::linear, {3}}, "i32[2, 9, 4]", "must be floating"},
      {Resize{ResizeKind::nearest, {3}}, "q8_0[2, 9, 32]", "block type"},
      {Resize{ResizeKind::nearest, {3}}, "f32[0, 4294967296, 4]", "longer than 2147483647"},
  };
}

std::vector<Refusal> state_spaces() {
  const auto scan = [](const char* inputs, const char* says) {
    return Refusal{SelectiveScan{false}, inputs, says};
  };
  return {
      {SelectiveScan{}, "f32[2, 5, 6]", "takes 7 inputs (x, dt, a, b, c, d, state)"},
      scan("f32[2, 5, 6]", "takes 6 inputs (x, dt, a, b, c, state)"),
      scan("f32[5, 6], f32[5, 6], f32[6, 4], f32[5, 1, 4], f32[5, 1, 4], f32[6, 4]",
           "x is f32[5, 6]; it must have 3 dimensions"),
      scan("f16[2, 5, 6], f32[2, 5, 6], f32[6, 4], f32[2, 5, 1, 4], f32[2, 5, 1, 4], f32[2, 6, 4]",
           "x is f16[2, 5, 6]; it must be f32"),
      scan("f32[2, 5, 6], f32[2, 5, 1], f32[6, 4], f32[2, 5, 1, 4], f32[2, 5, 1, 4], f32[2, 6, 4]",
           "dt is f32[2, 5, 1]"),
      scan("f32[2, 5, 6], f32[2, 5, 6], f32[5, 4], f32[2, 5, 1, 4], f32[2, 5, 1, 4], f32[2, 6, 4]",
           "it must be [6, N]"),
      scan("f32[2, 5, 6], f32[2, 5, 6], f32[6, 4], f32[2, 5, 4], f32[2, 5, 4], f32[2, 6, 4]",
           "it must be [2, 5, groups, 4]"),
      scan("f32[2, 5, 6], f32[2, 5, 6], f32[6, 4], f32[2, 5, 4, 4], f32[2, 5, 4, 4], f32[2, 6, 4]",
           "do not divide into 4 groups"),
      scan("f32[2, 5, 6], f32[2, 5, 6], f32[6, 4], f32[2, 5, 1, 4], f32[2, 5, 2, 4], f32[2, 6, 4]",
           "c is f32[2, 5, 2, 4]"),
      scan("f32[2, 5, 6], f32[2, 5, 6], f32[6, 4], f32[2, 5, 1, 4], f32[2, 5, 1, 4], f32[2, 4, 6]",
           "the state is f32[2, 4, 6]; it must be f32[2, 6, 4]"),
  };
}

std::vector<Refusal> linear_algebra() {
  return {
      {Factor{}, "", "takes 1 input (a), but was given 0"},
      {Factor{}, "f32[3]", "a is f32[3]; it must have at least 2 dimensions"},
      {Factor{}, "f16[3, 3]", "a is f16[3, 3]; for cholesky it must be f32 or f64"},
      {Factor{}, "complex64[3, 3]", "for cholesky it must be f32 or f64"},
      {Factor{FactorKind::eig}, "i32[3, 3]", "for eig it must be f32, f64 or complex64"},
      {Factor{FactorKind::qr}, "q8_0[2, 32]", "a is q8_0[2, 32]"},
      {Factor{FactorKind::lu}, "complex64[3, 3]", "for lu it must be f32 or f64"},
      {Factor{FactorKind::inverse}, "f32[2, 3, 4]",
       "the matrices of a, f32[2, 3, 4], are not square, as inverse needs them"},
      {Factor{FactorKind::eigh}, "f32[3, 2]", "are not square"},
      {Solve{}, "f32[3, 3]", "takes 2 inputs (a, b)"},
      {Solve{}, "f32[3], f32[3, 1]", "a is f32[3]"},
      {Solve{}, "f32[3, 3], f32[3]", "b is f32[3]"},
      {Solve{}, "f32[3, 3], f64[3, 1]", "differ in dtype"},
      {Solve{}, "f16[3, 3], f16[3, 1]", "a is f16[3, 3]; it must be f32 or f64"},
      {Solve{}, "f32[3, 2], f32[3, 1]", "the matrices of f32[3, 2] are not square"},
      {Solve{}, "f32[3, 3], f32[2, 1]", "b is f32[2, 1]; for a f32[3, 3]"},
      {Solve{}, "f32[2, 3, 3], f32[3, 3]", "it must have its leading axes and as many rows"},
      {Fft{}, "", "takes 1 input (x)"},
      {Fft{FftKind::forward, 1, 3}, "complex64[3]", "axis 1 is outside [0, 1)"},
      {Fft{FftKind::forward, 0, 0}, "complex64[0]", "of 0 elements"},
      {Fft{FftKind::forward, 0, 3}, "f32[3]", "forward of f32[3]; it must be complex64"},
      {Fft{FftKind::real_forward, 0, 3}, "f64[3]", "it must be f32"},
      {Fft{FftKind::forward, 0, 3}, "complex64[4]", "forward to 3 elements along axis 0"},
      {Fft{FftKind::real_inverse, 0, 4}, "complex64[4]", "it must have 3"},
      {Hadamard{}, "f32[]", "at least 1 dimension"},
      {Hadamard{}, "i32[4]", "x is i32[4]; it must be f16, bf16, f32 or f64"},
      {Hadamard{}, "f32[2, 0]", "rows of 0 elements"},
      {Hadamard{}, "f32[2, 36]", "rows of 36 elements in f32[2, 36]"},
      {Hadamard{static_cast<float>(kInfinity)}, "f32[4]", "scale inf"},
  };
}

std::vector<Refusal> random_bits() {
  return {
      {RandomBits{{3}, 4}, "", "takes 1 input (keys), but was given 0"},
      {RandomBits{{3}, 4}, "i32[2]", "keys are i32[2]; they must be u32[..., 2]"},
      {RandomBits{{3}, 4}, "u32[]", "keys are u32[]"},
      {RandomBits{{3}, 4}, "u32[2, 3]", "keys are u32[2, 3]"},
      {RandomBits{{3}, 3}, "u32[2]", "a width of 3 bytes; it must be 1, 2, 4 or 8"},
      {RandomBits{{3}, -1}, "u32[2]", "a width of -1 bytes"},
      {RandomBits{{-3}, 4}, "u32[2]", "negative"},
      {RandomBits{{kHuge, 4}, 1}, "u32[2]", "overflow"},
      {RandomBits{{kHuge}, 4}, "u32[0, 2]", "overflow"},
      {RandomBits{{1, 1, 1, 1, 1}, 4}, "u32[1, 1, 1, 1, 2]", "9 dimensions"},
  };
}

std::vector<Refusal> groups() {
  const GroupFormat affine{}, nvfp4{QuantMode::nvfp4, 16, 4};
  return {
      {GroupQuantize{{QuantMode::affine, 64, 7}}, "f32[2, 64]", "codes of 7 bits"},
      {GroupQuantize{{QuantMode::affine, 16, 4}}, "f32[2, 64]", "groups of 16"},
      {GroupQuantize{{QuantMode::mxfp8, 32, 4}}, "f32[2, 64]", "mxfp8 codes of 4 bits"},
      {GroupQuantize{}, "f32[2, 96]", "f32[2, 96] do not divide into groups of 64"},
      {GroupQuantize{}, "f64[2, 64]", "w is f64[2, 64]; it must be f32, f16 or bf16"},
      {GroupQuantize{}, "f32[]", "at least 1 dimension"},
      {GroupDequantize{affine, DType::i32}, "u32[2, 8], f32[2, 1], f32[2, 1]", "to i32"},
      {GroupDequantize{affine}, "u32[2, 8], f32[2, 1]", "takes 3 inputs (codes, scales, biases)"},
      {GroupDequantize{affine}, "i32[2, 8], f32[2, 1], f32[2, 1]", "the codes are i32[2, 8]"},
      {GroupDequantize{affine}, "u32[2, 8], f32[2, 2], f32[2, 2]", "do not fit together"},
      {GroupDequantize{affine}, "u32[2, 8], f32[1, 1], f32[1, 1]", "differ in rows"},
      {GroupDequantize{affine}, "u32[2, 8], f32[2, 1], f16[2, 1]", "the biases are f16[2, 1]"},
      {GroupDequantize{nvfp4}, "u32[2, 8], f32[2, 4]", "of nvfp4 they must be u8"},
      {GroupDequantize{nvfp4}, "u32[0, 8], u8[0, 4611686018427387904]", "do not fit together"},
      {GroupMatmul{}, "f32[3, 32], u32[5, 8], f32[5, 1], f32[5, 1]", "must have 64 elements"},
      {GroupMatmul{affine, false}, "f32[3, 64], u32[5, 8], f32[5, 1], f32[5, 1]",
       "must have 5 elements"},
      {GroupMatmul{}, "f32[64], u32[2, 5, 8], f32[2, 5, 1], f32[2, 5, 1]",
       "x is f32[64]; it must have at least 2 dimensions"},
      {GroupMatmul{}, "f32[64], u32[8], f32[1], f32[1]", "must be a matrix"},
      {GroupMatmul{}, "f32[3, 2, 64], u32[2, 5, 8], f32[2, 5, 1], f32[2, 5, 1]", "[3]"},
      {GroupMatmul{affine, true, true},
       "f32[3, 2, 64], u32[2, 5, 8], f32[2, 5, 1], f32[2, 5, 1], u32[2], u32[3]",
       "u32[2] and u32[3] differ in shape"},
      {GroupMatmul{affine, true, true},
       "f32[3, 2, 64], u32[2, 5, 8], f32[2, 5, 1], f32[2, 5, 1], i32[2], u32[2]",
       "the indices are i32[2]"},
      {GatherMatmul{}, "f32[2, 3], f32[2, 3, 4], u32[2], u32[2]", "a is f32[2, 3]"},
      {GatherMatmul{}, "f32[2, 2, 3], f32[2, 4, 4], u32[2], u32[2]", "inner extents, 3 and 4"},
      {GatherMatmul{}, "f32[2, 2, 3], f16[2, 3, 4], u32[2], u32[2]", "differ in dtype"},
      {GatherMatmul{}, "i32[2, 2, 3], i32[2, 3, 4], u32[2], u32[2]", "a is i32[2, 2, 3]"},
      {SegmentedMatmul{}, "f32[2, 3], f32[3, 4], u32[3]", "the segments are u32[3]"},
      {SegmentedMatmul{}, "f32[2, 3], f32[3, 4], i32[2]", "the segments are i32[2]"},
      {SegmentedMatmul{}, "f32[2, 3], f32[4, 4], u32[2]", "inner extents, 3 and 4"},
      {Fp8{}, "f64[2]", "x is f64[2]"},
      {Fp8{false, DType::i8}, "f32[2]", "codes are u8"},
      {Fp8{true, DType::f32}, "i8[2]", "x is i8[2]; it must be u8"},
      {Fp8{true, DType::f64}, "u8[2]", "to f64"},
      {CausalSoftmax{}, "f32[5]", "at least 2 dimensions"},
      {CausalSoftmax{}, "i32[5, 5]", "x is i32[5, 5]"},
      {NormRope{1e-6f, true, {.dims = 8}}, "f32[5, 2, 8], i32[5]",
       "takes 3 inputs (x, weight, pos)"},
      {NormRope{1e-6f, true, {.dims = 8}}, "f32[5, 2, 8], f32[16], i32[5]",
       "the weight is f32[16]"},
      {NormRope{-1.0f, false, {.dims = 8}}, "f32[5, 2, 8], i32[5]", "eps -1"},
      {NormRope{1e-6f, false, {.dims = 9}}, "f32[5, 2, 8], i32[5]", "9 of 8 features"},
      {NormRopeWriteRows{1e-6f, false, {.dims = 8}}, "f32[9, 2, 8], f32[5, 4, 8], i32[5], i32[5]",
       "f32[5, 4, 8]"},
      {NormRopeWriteRows{static_cast<float>(kInfinity), false, {.dims = 8}},
       "f32[9, 2, 8], f32[5, 2, 8], i32[5], i32[5]", "eps inf"},
      {Attention{.has_sinks = true}, "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8]",
       "takes 4 inputs (q, k, v, sinks)"},
      {Attention{.has_sinks = true}, "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8], f32[2]",
       "the vector of sinks is f32[2]; it must be f32[4]"},
  };
}

std::vector<Refusal> programs() {
  const ElementStep exp{Unary{UnaryKind::exp}, {0}};
  return {
      {Fused{}, "f32[2]", "there is no program"},
      {program(1, {}), "f32[2]", "there is no program"},
      {program(0, {exp}), "", "has no shape"},
      {program(2, {exp}), "f32[2]", "takes 2 inputs, but was given 1 (f32[2])"},
      {program(1, {exp}), "q8_0[32]", "block type"},
      {program(1, {exp}), "i32[2]", "not defined for i32"},
      {program(1, {{Unary{UnaryKind::exp}, {1}}}), "f32[2]", "reads v1, and there are 1 values"},
      {program(1, {{Cast{DType::f16}, {0}}}), "f32[2]", "casts to a half type"},
      {program(2, {{Binary{BinaryKind::add}, {0, 1}}}), "f32[2], f32[3]", "do not broadcast"},
      {program(2, {{Binary{BinaryKind::add}, {0, 1}}}), "f32[2], f64[2]", "differ in dtype"},
  };
}

std::vector<Refusal> all_refusals() {
  std::vector<Refusal> all;
  for (auto* group : {leaves_and_views, movement, arithmetic, along_axes, spatial, attention,
                      state_spaces, linear_algebra, random_bits, groups, programs}) {
    for (Refusal& refusal : group()) all.push_back(std::move(refusal));
  }
  return all;
}

TEST(InferRefusals, SayWhichOpAndWhatIsWrong) {
  for (const Refusal& refusal : all_refusals()) {
    try {
      infer(refusal.op, specs(refusal.inputs));
      ADD_FAILURE() << to_string(refusal.op) << " took " << refusal.inputs;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), StartsWith(std::string(name(refusal.op)) + ": "));
      EXPECT_THAT(error.what(), HasSubstr(refusal.says));
    }
  }
}

TEST(InferRefusals, CoverEveryOp) {
  std::set<std::size_t> seen{Op(Constant{}).index()};  // in infer_test.cpp
  for (const Refusal& refusal : all_refusals()) seen.insert(refusal.op.index());
  EXPECT_EQ(seen.size(), kOpCount);
}

}  // namespace
}  // namespace heddle
