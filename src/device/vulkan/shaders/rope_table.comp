#version 460
// Turned by angles whose sines and cosines tables hold.
#define TABLE
#include "rope.glsl"
