#define HEDDLE_SIMD avx512
#include "device/cpu/products_simd.h"
