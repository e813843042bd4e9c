#define HEDDLE_SIMD neon
#define HEDDLE_SIMD_NEON
#include "device/cpu/head_loops_simd.h"
