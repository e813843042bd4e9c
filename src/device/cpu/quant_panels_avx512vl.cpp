// The level avx_vnni for processors with AVX-512, of which many encode it in no other way.
#define HEDDLE_SIMD avx512vl
#define HEDDLE_SIMD_256
#include "device/cpu/quant_panels_simd.h"
