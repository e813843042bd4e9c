// Parameters of ops on channels-last tensors of up to three spatial axes (fewer have axes of extent 1
// before them): Windows as op_spatial.h says. A lane an element of the output. Who includes this in
// place of kernel.glsl defines PARAMS_IN_BLOCK.
struct Params {
  uint rows, per_row;  // batch entries, which an extent may cut; elements of the output in each
  uint channels;
  uint outputs, groups;  // channels of a convolution's output, and groups of them
  uint size[3], out_size[3], window[3];  // of x, of the output, taps
  int stride[3], low[3], kernel_dilation[3], input_dilation[3];
};
#include "kernel.glsl"
#include "types.glsl"

// The parts of the number of an output element, or of what is left of it once `channels` is off.
struct Place {
  uint batch, at[3], channel;
};
Place place_of(uint number, uint channels) {
  Place place;
  place.channel = number % channels;
  number /= channels;
  [[unroll]] for (uint axis = 3u; axis-- > 0u;) {
    place.at[axis] = number % params.out_size[axis];
    number /= params.out_size[axis];
  }
  place.batch = number;
  return place;
}

// Which element of the axis output `o`'s tap `k` reads; negative: none.
int tapped(uint axis, uint o, uint k) {
  const int p = int(o) * params.stride[axis] + int(k) * params.kernel_dilation[axis] -
                params.low[axis];
  const int element = p / params.input_dilation[axis];
  const bool there = p >= 0 && p == element * params.input_dilation[axis] &&
                     element < int(params.size[axis]);
  return there ? element : -1;
}

// Elements from x's start, of channel 0.
uint64_t element_at(uint batch, uvec3 at) {
  const uint64_t row = (uint64_t(batch) * params.size[0] + at.x) * params.size[1] + at.y;
  return (row * params.size[2] + at.z) * params.channels;
}
