#define HEDDLE_SIMD portable
#include "device/cpu/group_loops_simd.h"
