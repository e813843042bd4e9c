// What products with block-quantised weights need beside simd.h: bytes as codes come, 16-bit
// integers as they are multiplied, and 16 sums of products in 32 bits.
//
// As in simd.h, everything lives in the level's namespace.
#pragma once

#if defined(__AVX512F__) && !defined(HEDDLE_SIMD_256)
#include "device/cpu/quant_int_avx512.h"
#elif defined(__AVX2__)
#include "device/cpu/quant_int_avx2.h"
#elif defined(HEDDLE_SIMD_NEON)
#include "device/cpu/quant_int_neon.h"
#else
#include "device/cpu/quant_int_portable.h"
#endif
