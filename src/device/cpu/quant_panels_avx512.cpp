#define HEDDLE_SIMD avx512
#include "device/cpu/quant_panels_simd.h"
