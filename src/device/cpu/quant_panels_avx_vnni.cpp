#define HEDDLE_SIMD avx_vnni
#include "device/cpu/quant_panels_simd.h"
