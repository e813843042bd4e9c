#version 460
// act(gate) * up, of f32, f16 and bf16.
#define OPERANDS 4  // gate, up, the result, the extent
#define WALKED 2
#define AXES 14
#include "walk.glsl"
#include "kinds.glsl"
#include "math.glsl"

layout(constant_id = 2) const uint kKind = 23;
layout(constant_id = 3) const uint kDType = 11;

float activation(float x) {
  switch (kKind) {
    case kSilu: return silu_of(x);
    case kGelu: return gelu_of(x);
    case kGeluTanh: return gelu_tanh_of(x);
  }
  return relu_of(x);
}

void element(uint64_t number) {
  const Offsets offsets = offsets_of(number);
  const uint bytes = kDType == kF32 ? 4u : 2u;
  const float gate = load_float(kDType, at_item(operand(0), offsets.of[0], bytes), 0u);
  const float up = load_float(kDType, at_item(operand(1), offsets.of[1], bytes), 0u);
  store_float(kDType, operand(2) + number * bytes, 0u, activation(gate) * up);
}
