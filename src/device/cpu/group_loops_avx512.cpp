#define HEDDLE_SIMD avx512
#include "device/cpu/group_loops_simd.h"
