#version 460
// f(x) of f64.
#define OPERANDS 3  // x, the result, the extent
#define WALKED 1
#define AXES 15
#include "walk.glsl"
#include "kinds.glsl"
#include "doubles.glsl"
#include "math_f64.glsl"

layout(constant_id = 2) const uint kKind = 0;

double number_of(double x) {
  switch (kKind) {
    case kAbs: return magnitude(x);
    case kNegative: return packDouble2x32(unpackDouble2x32(x) ^ uvec2(0u, 0x80000000u));
    case kSign: return is_nan(x) || is_zero(x) ? x : copy_sign(1.0lf, x);
    case kSquare: return x * x;
    case kSqrt: return sqrt(x);
    case kRsqrt: return 1.0lf / sqrt(x);
    case kReciprocal: return 1.0lf / x;
    case kRelu: return has_sign(x) && !is_nan(x) ? 0.0lf : x;
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
    case kErf: return erf_of(x);
    case kFloor: return floor(x);
    case kCeil: return ceil(x);
    case kRound: return roundEven(x);
  }
  return x;
}
bool answer_of(double x) {
  switch (kKind) {
    case kLogicalNot: return is_zero(x);
    case kIsnan: return is_nan(x);
    case kIsinf: return is_infinite(x);
  }
  return !is_nan(x) && !is_infinite(x);
}

void element(uint64_t number) {
  const double x = F64s(at_item(bases[0], offsets_of(number).of[0], 8u)).at[0];
  if (unary_gives_bool(kKind)) store_bool(bases[1] + number, answer_of(x));
  else F64s(bases[1] + number * 8ul).at[0] = number_of(x);
}
