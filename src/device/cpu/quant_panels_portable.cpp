#define HEDDLE_SIMD portable
#include "device/cpu/quant_panels_simd.h"
