// Sums and maxima over a workgroup. Include after kernel.glsl. Every invocation must come, and all
// get the result. The order is fixed by kGroupSize and the subgroup size alone (rule 17).
//
// In a workgroup of one subgroup there is no barrier. MINIMAL: no subgroup operations.
#ifndef MINIMAL
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

const bool kOneSubgroup = kGroupSize <= kSubgroupSize;
shared float group_scratch[kGroupSize];

#ifdef MINIMAL
#define GROUP_REDUCTION(name, combine, subgroup_combine)                      \
  float name(float value) {                                                   \
    const uint lane = gl_LocalInvocationIndex;                                \
    group_scratch[lane] = value;                                              \
    barrier();                                                                \
    for (uint width = kGroupSize; width > 1u;) {                              \
      const uint half_width = (width + 1u) / 2u;                              \
      const uint other = lane + half_width;                                   \
      if (other < width) group_scratch[lane] = combine(group_scratch[lane], group_scratch[other]); \
      width = half_width;                                                     \
      barrier();                                                              \
    }                                                                         \
    const float result = group_scratch[0];                                    \
    barrier(); /* before the scratch is used again */                         \
    return result;                                                            \
  }
#else
#define GROUP_REDUCTION(name, combine, subgroup_combine)                      \
  float name(float value) {                                                   \
    value = subgroup_combine(value);                                          \
    if (kOneSubgroup) return value;                                           \
    if (subgroupElect()) group_scratch[gl_SubgroupID] = value;                \
    barrier();                                                                \
    float result = group_scratch[0];                                          \
    for (uint i = 1u; i < gl_NumSubgroups; ++i) result = combine(result, group_scratch[i]); \
    barrier(); /* before the scratch is used again */                         \
    return result;                                                            \
  }
#endif

float plus(float a, float b) {
  return a + b;
}
GROUP_REDUCTION(group_sum, plus, subgroupAdd)
GROUP_REDUCTION(group_max, max, subgroupMax)
