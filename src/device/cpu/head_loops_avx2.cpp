#define HEDDLE_SIMD avx2
#include "device/cpu/head_loops_simd.h"
