#define HEDDLE_SIMD portable
#include "device/cpu/products_simd.h"
#include "device/cpu/rounded_simd.h"
