#define HEDDLE_SIMD portable
#include "device/cpu/quant_simd.h"
