#define HEDDLE_SIMD avx_vnni
#include "device/cpu/quant_simd.h"
