#version 460
// f(x) of f32, f16 and bf16, computed in float.
#define OPERANDS 3  // x, the result, the extent
#define WALKED 1
#define AXES 15
#include "walk.glsl"
#include "kinds.glsl"
#include "math.glsl"

layout(constant_id = 2) const uint kKind = 0;
layout(constant_id = 3) const uint kDType = 11;

float number_of(float x) {
  switch (kKind) {
    case kAbs: return magnitude(x);
    case kNegative: return uintBitsToFloat(floatBitsToUint(x) ^ 0x80000000u);
    case kSign: return is_nan(x) || is_zero(x) ? x : copy_sign(1.0, x);
    case kSquare: return x * x;
    case kSqrt: return sqrt_of(x);
    case kRsqrt: return rsqrt_of(x);
    case kReciprocal: return 1.0 / x;
    case kExp: return exp_of(x);
    case kExpm1: return expm1_of(x);
    case kLog: return log_of(x);
    case kLog2: return log2_of(x);
    case kLog10: return log10_of(x);
    case kLog1p: return log1p_of(x);
    case kSin: return sin_cos_of(x).x;
    case kCos: return sin_cos_of(x).y;
    case kTan: return tan_of(x);
    case kSinh: return sinh_of(x);
    case kCosh: return cosh_of(x);
    case kTanh: return tanh_of(x);
    case kArcsin: return arcsin_of(x);
    case kArccos: return arccos_of(x);
    case kArctan: return arctan_of(x);
    case kSigmoid: return sigmoid_of(x);
    case kSilu: return silu_of(x);
    case kGelu: return gelu_of(x);
    case kGeluTanh: return gelu_tanh_of(x);
    case kRelu: return relu_of(x);
    case kErf: return erf_of(x);
    case kFloor: return has_sign(x) && !is_zero(x) && magnitude(x) < 1.0 ? -1.0 : floor(x);
    case kCeil: return !has_sign(x) && !is_zero(x) && magnitude(x) < 1.0 ? 1.0 : ceil(x);
    case kRound: return roundEven(x);
  }
  return x;
}
bool answer_of(float x) {
  switch (kKind) {
    case kLogicalNot: return is_zero(x);
    case kIsnan: return is_nan(x);
    case kIsinf: return is_infinite(x);
  }
  return magnitude_bits(x) < kInfinityBits;  // isfinite
}

void element(uint64_t number) {
  const Offsets offsets = offsets_of(number);
  const uint bytes = kDType == kF32 ? 4u : 2u;
  const float x = load_float(kDType, at_item(bases[0], offsets.of[0], bytes), 0u);
  if (unary_gives_bool(kKind)) {
    store_bool(bases[1] + number, answer_of(x));
  } else {
    store_float(kDType, bases[1] + number * bytes, 0u, number_of(x));
  }
}
