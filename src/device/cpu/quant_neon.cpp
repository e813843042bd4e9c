#define HEDDLE_SIMD neon
#define HEDDLE_SIMD_NEON
#include "device/cpu/quant_simd.h"
