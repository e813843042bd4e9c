// An example of every op, with inputs that suit it and the outputs it must infer.
#pragma once

#include <vector>

#include "heddle/op.h"

namespace heddle {

struct Example {
  Op op;
  const char* inputs;  // as specs() reads them
  const char* outputs;
};

inline std::vector<Example> examples() {
  const RopeAngles angles{.dims = 6};
  const RopeAngles with_factors{.style = RopeStyle::interleaved, .dims = 8, .has_factors = true};
  using enum Attention::Mask;
  return {
      {Parameter{"w", {DType::q4_K, {2, 256}}}, "", "q4_K[2, 256]"},
      {Input{"ids", {DType::i32, {8}}, "count"}, "", "i32[8]"},
      {StateRef{"k", {DType::q8_0, {64, 2, 32}}}, "", "q8_0[64, 2, 32]"},
      {Reshape{{3, 4}}, "f32[2, 6]", "f32[3, 4]"},
      {Reshape{{}}, "f16[1, 1]", "f16[]"},
      {Reshape{{0, 7}}, "f32[3, 0]", "f32[0, 7]"},
      {Reshape{{4, 32}}, "q8_0[2, 64]", "q8_0[4, 32]"},
      {Transpose{{2, 0, 1}}, "f32[2, 3, 4]", "f32[4, 2, 3]"},
      {Transpose{{1, 0, 2}}, "q8_0[2, 3, 32]", "q8_0[3, 2, 32]"},
      {Transpose{}, "i8[]", "i8[]"},
      {Slice{{1, 0}, {4, 5}, {2, 3}}, "f32[4, 5]", "f32[2, 2]"},
      {Slice{{2}, {2}, {1}}, "f32[2]", "f32[0]"},
      {Slice{{0, 32}, {1, 96}, {1, 1}}, "q4_0[2, 96]", "q4_0[1, 64]"},
      {Slice{{3, 4}, {-1, 1}, {-2, -1}}, "f32[4, 5]", "f32[2, 3]"},
      {Slice{{-1, 1}, {-1, 1}, {-3, -1}}, "f32[0, 5]", "f32[0, 0]"},
      {Slice{{1, 0}, {-1, 64}, {-1, 1}}, "q4_0[2, 64]", "q4_0[2, 64]"},
      {Broadcast{{5, 2, 3}}, "f32[2, 1]", "f32[5, 2, 3]"},
      {Broadcast{{0, 4}}, "f32[1, 4]", "f32[0, 4]"},
      {Squeeze{{0, 2}}, "f32[1, 3, 1]", "f32[3]"},
      {ExpandDims{{0, 3}}, "f32[2, 3]", "f32[1, 2, 3, 1]"},
      {AsStrided{{3, 4}, {2, -1}, 3}, "f32[2, 4]", "f32[3, 4]"},
      {AsStrided{{2, 0}, {9, 9}, 99}, "f32[1]", "f32[2, 0]"},
      {AsStrided{{}, {}, 1}, "bool[2]", "bool[]"},
      {AsStrided{{5}, {0}, 0}, "f16[]", "f16[5]"},
      {Contiguous{}, "complex64[2]", "complex64[2]"},
      {Reinterpret{DType::u8}, "f32[2, 3]", "u8[2, 12]"},
      {Reinterpret{DType::complex64}, "f16[2, 8]", "complex64[2, 2]"},
      {Reinterpret{DType::bool_}, "u8[]", "bool[]"},
      {Reinterpret{DType::f64}, "u8[3, 0]", "f64[3, 0]"},
      {Repack{LayoutKind::panel16}, "f16[7, 5]", "f16[7, 5]"},
      {Cast{DType::f32}, "q6_K[2, 256]", "f32[2, 256]"},
      {Cast{DType::bool_}, "f64[]", "bool[]"},
      {Concatenate{1}, "u8[2, 1], u8[2, 0], u8[2, 4]", "u8[2, 5]"},
      {Concatenate{1}, "q8_0[2, 32], q8_0[2, 64]", "q8_0[2, 96]"},
      {SliceUpdate{{0, 4}, {4, 1}, {2, -1}}, "f32[4, 5], f32[2, 3]", "f32[4, 5]"},
      {SliceUpdate{{1, 0}, {3, 5}, {1, 1}}, "f32[4, 5], f32[2, 5]", "f32[4, 5]"},
      {SliceUpdate{{2}, {2}, {1}}, "bool[2], bool[0]", "bool[2]"},
      {SliceUpdate{}, "f16[], f16[]", "f16[]"},
      {GatherRows{DType::f32}, "q4_K[9, 256], i32[5]", "f32[5, 256]"},
      {GatherRows{DType::f16}, "f32[9, 3], u64[2, 5]", "f16[2, 5, 3]"},
      {GatherRows{DType::i32}, "i32[9], i64[]", "i32[]"},
      {WriteRows{}, "f16[9, 2, 4], f32[3, 2, 4], i32[3]", "f16[9, 2, 4]"},
      {WriteRows{}, "q8_0[9, 64], f32[0, 64], i32[0]", "q8_0[9, 64]"},
      {WriteRows{}, "i64[9], i64[2], i32[2]", "i64[9]"},
      {Feed{Feed::Kind::whole}, "f32[2, 3], f32[2, 3]", "f32[2, 3]"},
      {Feed{Feed::Kind::prefix}, "f32[8, 3], f32[4, 3], i32[]", "f32[8, 3]"},
      {Feed{Feed::Kind::row}, "f32[1, 3], f32[4, 3], i32[]", "f32[1, 3]"},
      {Feed{Feed::Kind::row}, "f32[3], f32[4, 3], i32[]", "f32[3]"},
      {Arange{1, 0.5, 4, DType::f16}, "", "f16[4]"},
      {Arange{0, 1, 0, DType::i32}, "", "i32[0]"},
      {Unary{UnaryKind::silu}, "bf16[2, 3]", "bf16[2, 3]"},
      {Unary{UnaryKind::abs}, "complex64[2]", "f32[2]"},
      {Unary{UnaryKind::logical_not}, "i32[2]", "bool[2]"},
      {Unary{UnaryKind::isnan}, "f32[]", "bool[]"},
      {Unary{UnaryKind::negative}, "i8[2]", "i8[2]"},
      {Binary{BinaryKind::add}, "f32[2, 1, 3], f32[4, 1]", "f32[2, 4, 3]"},
      {Binary{BinaryKind::logical_and}, "f32[2], f32[]", "bool[2]"},
      {Binary{BinaryKind::left_shift}, "u8[2], u8[2]", "u8[2]"},
      {Compare{CompareKind::less}, "i32[3, 1], i32[4]", "bool[3, 4]"},
      {Compare{CompareKind::equal}, "complex64[1], complex64[0]", "bool[0]"},
      {Select{}, "bool[3, 1], f16[4], f16[]", "f16[3, 4]"},
      {GatedMultiply{UnaryKind::gelu_tanh}, "f32[2, 3], f32[2, 3]", "f32[2, 3]"},
      {Reduce{ReduceKind::sum, {0, 2}, false}, "i8[2, 3, 4]", "i32[3]"},
      {Reduce{ReduceKind::prod, {1}, true}, "u16[2, 3]", "i32[2, 1]"},
      {Reduce{ReduceKind::mean, {0}, false}, "i64[2, 3]", "f32[3]"},
      {Reduce{ReduceKind::max, {0, 1}, false}, "bf16[2, 3]", "bf16[]"},
      {Reduce{ReduceKind::sum, {0}, false}, "f32[0, 3]", "f32[3]"},
      {Reduce{ReduceKind::min, {1}, true}, "bool[0, 3]", "bool[0, 1]"},
      {Softmax{}, "f16[2, 3]", "f16[2, 3]"},
      {RmsNorm{1e-6f, true, true}, "f16[2, 3], f32[3], f16[3]", "f16[2, 3]"},
      {RmsNorm{1e-6f, false, false}, "f32[3]", "f32[3]"},
      {AddRmsNorm{1e-6f, true, false}, "f32[2, 3], f32[2, 3], f32[3]", "f32[2, 3], f32[2, 3]"},
      {LayerNorm{1e-5f, true, true}, "f32[1, 2, 3], f32[3], f32[3]", "f32[1, 2, 3]"},
      {LayerNorm{1e-5f, false, true}, "bf16[2, 3], bf16[3]", "bf16[2, 3]"},
      {Matmul{}, "f32[2, 3], f32[3, 4]", "f32[2, 4]"},
      {Matmul{}, "f64[5, 1, 2, 3], f64[6, 3, 4]", "f64[5, 6, 2, 4]"},
      {Matmul{}, "f16[2, 0], f16[0, 4]", "f16[2, 4]"},
      {Linear{}, "f32[256], f16[5, 256]", "f32[5]"},
      {Linear{}, "f32[2, 3, 256], q4_K[8, 256], q8_0[4, 256], bf16[1, 256]",
       "f32[2, 3, 8], f32[2, 3, 4], f32[2, 3, 1]"},
      {Rope{angles, false}, "f32[5, 2, 8], i32[5]", "f32[5, 2, 8]"},
      {Rope{with_factors, true}, "f16[5, 2, 8], f16[16], i32[5], f32[4]", "f16[5, 2, 8]"},
      {RopeTable{RopeStyle::split_half, true}, "f32[5, 2, 8], f32[99, 3], f32[99, 3], i32[5]",
       "f32[5, 2, 8]"},
      {RopeTable{RopeStyle::interleaved, false}, "f32[5, 2, 8], f32[5, 4], f32[5, 4]",
       "f32[5, 2, 8]"},
      {RopeWriteRows{false, false, {}}, "q8_0[9, 2, 32], f32[5, 2, 32], i32[5]", "q8_0[9, 2, 32]"},
      {RopeWriteRows{true, true, with_factors},
       "f16[9, 2, 8], f32[5, 2, 8], i32[5], f32[16], i32[5], f32[4]", "f16[9, 2, 8]"},
      {Attention{}, "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 6]", "f32[2, 4, 5, 6]"},
      {Attention{.mask = causal, .window = 3, .sequence_first = true},
       "f16[2, 5, 4, 8], f16[2, 7, 1, 8], f16[2, 7, 1, 8]", "f16[2, 5, 4, 8]"},
      {Attention{.mask = boolean}, "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 8], bool[5, 7]",
       "f32[2, 4, 5, 8]"},
      {Attention{.mask = additive},
       "f16[2, 4, 5, 8], f16[2, 2, 7, 8], f16[2, 2, 7, 8], f32[2, 1, 1, 7]", "f16[2, 4, 5, 8]"},
      {Attend{.scale = 0.5f, .block_size = 32},
       "f32[3, 4, 32], q8_0[64, 2, 32], f16[64, 2, 32], i32[2, 2], i32[3], i32[3], i32[2]",
       "f32[3, 4, 32]"},
  };
}

}  // namespace heddle
