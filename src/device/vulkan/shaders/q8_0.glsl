// Making blocks of q8_0, one an invocation. Include after types.glsl and math.glsl. The 32 values
// wait in shared memory, where each invocation sees only its own: that needs no barrier.

shared float q8_0_values[32u * kGroupSize];

void set_q8_0(uint k, float value) {
  q8_0_values[k * kGroupSize + gl_LocalInvocationIndex] = value;
}
float q8_0_value(uint k) {
  return q8_0_values[k * kGroupSize + gl_LocalInvocationIndex];
}

/// The scale's f16 bits, for elements of which `largest` is the largest magnitude: at least so much
/// that 127.5 steps reach it, though f16 be coarse there.
uint q8_0_scale(float largest) {
  const float kMost = 65504.0, wanted = largest / 127.0;
  const uint nearest = float_to_f16(min(wanted, kMost));
  const bool reaches = wanted >= kMost || f16_to_float(nearest) * 127.5 >= largest;
  return nearest + uint(!reaches);
}
uint q8_0_code(float x, float d) {
  return uint(int(clamp(roundEven(x / d), -127.0, 127.0))) & 0xffu;
}
/// The block of the values that were set: NaN where not all of them are finite.
void store_q8_0(uint64_t block) {
  uint largest = 0u;
  [[dont_unroll]] for (uint k = 0u; k < 32u; ++k) {
    largest = max(largest, magnitude_bits(q8_0_value(k)));
  }
  const bool finite = largest < kInfinityBits, any = finite && largest > 0u;
  const uint scale = !finite ? 0x7e00u : any ? q8_0_scale(uintBitsToFloat(largest)) : 0u;
  const float d = any ? f16_to_float(scale) : 1.0;
  store_narrow(2u, block, scale);
  [[dont_unroll]] for (uint k = 0u; k < 32u; k += 2u) {
    const uint low = any ? q8_0_code(q8_0_value(k), d) : 0u;
    const uint high = any ? q8_0_code(q8_0_value(k + 1u), d) : 0u;
    store_narrow(2u, block + 2u + k, low | high << 8);
  }
}
