#define HEDDLE_SIMD neon
#define HEDDLE_SIMD_NEON
#include "device/cpu/products_simd.h"
#include "device/cpu/rounded_simd.h"
