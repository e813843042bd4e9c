#define HEDDLE_SIMD neon_dotprod
#define HEDDLE_SIMD_NEON
#include "device/cpu/quant_panels_simd.h"
