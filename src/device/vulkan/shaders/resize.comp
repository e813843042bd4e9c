#version 460
// Resizing: the nearest element, or the weighted mean of those around a place, which is a fraction of
// integers.
#define OPERANDS 3
#define PARAMS_IN_BLOCK
#include "spatial.glsl"

layout(constant_id = 1) const bool kLinear = false;
layout(constant_id = 2) const uint kType = kF32;  // of linear
layout(constant_id = 3) const uint kBytes = 4;    // of an element
layout(constant_id = 4) const bool kAlignsCorners = false;

const uint kX = 0, kOut = 1, kExtent = 2;

// Where output `o` stands on an axis: element `low` and a fraction of the way to `high`.
struct Between {
  uint low, high;
  float fraction;
};

Between place_between(uint axis, uint o) {
  const int64_t size = int64_t(params.size[axis]), wanted = int64_t(params.out_size[axis]);
  int64_t numerator = (2l * int64_t(o) + 1l) * size - wanted, denominator = 2l * wanted;
  if (kAlignsCorners) {
    numerator = int64_t(o) * (size - 1l);
    denominator = max(wanted - 1l, 1l);
  }
  numerator = clamp(numerator, 0l, (size - 1l) * denominator);
  const int64_t low = numerator / denominator, rest = numerator - low * denominator;
  Between between;
  between.low = uint(low);
  between.high = uint(min(low + 1l, size - 1l));
  between.fraction = float(rest) / float(denominator);
  if (!kLinear && 2l * rest >= denominator) between.low = between.high;  // the nearer
  return between;
}

float load(Place place, uvec3 at) {
  return load_float(kType, operand(kX) + (element_at(place.batch, at) + place.channel) * kBytes, 0u);
}

float weighted_mean(Place place, Between a, Between b, Between c) {
  float sum = 0.0;
  for (uint corner = 0u; corner < 8u; ++corner) {
    const bvec3 is_high = bvec3((corner & 4u) != 0u, (corner & 2u) != 0u, (corner & 1u) != 0u);
    const vec3 fractions = vec3(a.fraction, b.fraction, c.fraction);
    const vec3 weights = mix(vec3(1.0) - fractions, fractions, is_high);
    const float weight = weights.x * weights.y * weights.z;
    const uvec3 at = uvec3(is_high.x ? a.high : a.low, is_high.y ? b.high : b.low,
                           is_high.z ? c.high : c.low);
    if (weight != 0.0) sum += weight * load(place, at);
  }
  return sum;
}

void resize_elements() {
  const uint number = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (number < live_rows(operand(kExtent), params.rows) * params.per_row) {
    const Place place = place_of(number, params.channels);
    const Between a = place_between(0u, place.at[0]), b = place_between(1u, place.at[1]),
                  c = place_between(2u, place.at[2]);
    const uint64_t to = operand(kOut) + uint64_t(number) * kBytes;
    if (kLinear) {
      store_float(kType, to, 0u, weighted_mean(place, a, b, c));
    } else {
      const uint64_t from = element_at(place.batch, uvec3(a.low, b.low, c.low)) + place.channel;
      copy_item(kBytes, operand(kX) + from * kBytes, to);
    }
  }
}

void main() {
  if (group_index() < group_count()) resize_elements();
}
