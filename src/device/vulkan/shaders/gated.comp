#version 460
// act(gate) * up, of f32, f16 and bf16; of f64 with DOUBLES defined.
#define OPERANDS 4  // gate, up, the result, the extent
#define WALKED 2
#define AXES 14
#include "walk.glsl"
#include "kinds.glsl"
#ifdef DOUBLES
#include "doubles.glsl"
#include "math_f64.glsl"
#define Real double
#else
#include "math.glsl"
#define Real float
#endif

layout(constant_id = 2) const uint kKind = 23;
layout(constant_id = 3) const uint kDType = 11;

Real activation(Real x) {
  switch (kKind) {
    case kSilu: return silu_of(x);
    case kGelu: return gelu_of(x);
    case kGeluTanh: return gelu_tanh_of(x);
  }
  return has_sign(x) && !is_nan(x) ? Real(0.0) : x;  // relu
}

void element(uint64_t number) {
  const Offsets offsets = offsets_of(number);
#ifdef DOUBLES
  const double gate = F64s(at_item(bases[0], offsets.of[0], 8u)).at[0];
  const double up = F64s(at_item(bases[1], offsets.of[1], 8u)).at[0];
  F64s(bases[2] + number * 8ul).at[0] = activation(gate) * up;
#else
  const uint bytes = kDType == kF32 ? 4u : 2u;
  const float gate = load_float(kDType, at_item(bases[0], offsets.of[0], bytes), 0u);
  const float up = load_float(kDType, at_item(bases[1], offsets.of[1], bytes), 0u);
  store_float(kDType, bases[2] + number * bytes, 0u, activation(gate) * up);
#endif
}
