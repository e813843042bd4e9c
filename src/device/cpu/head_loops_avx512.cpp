#define HEDDLE_SIMD avx512
#include "device/cpu/head_loops_simd.h"
