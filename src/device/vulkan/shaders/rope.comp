#version 460
// Turned by angles that are computed here; frequencies of PAIRS pairs.
#define PARAMS_IN_BLOCK
#include "rope.glsl"
