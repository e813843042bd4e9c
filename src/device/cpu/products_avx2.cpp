#define HEDDLE_SIMD avx2
#include "device/cpu/products_simd.h"
#include "device/cpu/rounded_simd.h"
