#define HEDDLE_SIMD avx2
#include "device/cpu/quant_panels_simd.h"
