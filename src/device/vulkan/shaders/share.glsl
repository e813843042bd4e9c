// Octets that all lanes need: eight lanes load a term each and pass it on, and all lanes must come.
// Only where kCanShare, which asks for subgroups of eight lanes or more. Include after blocks.glsl.
#ifdef MINIMAL
const bool kCanShare = false;
uint sharing_lane() {
  return 0u;
}
Octet share_octet(float term) {
  return Octet(vec4(term), vec4(term));
}
#else
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
const bool kCanShare = kSubgroupSize >= 8u;
// Which term of an octet this lane loads.
uint sharing_lane() {
  return gl_SubgroupInvocationID & 7u;
}
Octet share_octet(float term) {
  return Octet(vec4(subgroupShuffle(term, 0u), subgroupShuffle(term, 1u), subgroupShuffle(term, 2u),
                    subgroupShuffle(term, 3u)),
               vec4(subgroupShuffle(term, 4u), subgroupShuffle(term, 5u), subgroupShuffle(term, 6u),
                    subgroupShuffle(term, 7u)));
}
#endif
