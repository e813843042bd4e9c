#define HEDDLE_SIMD portable
#include "device/cpu/head_loops_simd.h"
