#define HEDDLE_SIMD avx2
#include "device/cpu/group_loops_simd.h"
