#define HEDDLE_SIMD avx512
#include "device/cpu/products_simd.h"
#include "device/cpu/rounded_simd.h"
