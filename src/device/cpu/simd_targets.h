// Highway's targets cut to the levels of isa.h. To be included before hwy headers.
#pragma once

#include "hwy/detect_compiler_arch.h"

#if HWY_ARCH_X86
// Without flags the baseline target is the portable level; AVX2 and AVX3 are isa.h's avx2 and
// avx512; levels between and above them take the next below.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)
#endif

#include "hwy/detect_targets.h"

// Targets that the compiler's own flags make pointless are not built: the baseline serves for them.
#if HWY_TARGETS & HWY_AVX3
#define HEDDLE_SIMD_AVX3(FUNCTION) \
  if (isa() >= Isa::avx512) return N_AVX3::FUNCTION()
#else
#define HEDDLE_SIMD_AVX3(FUNCTION)
#endif
#if HWY_TARGETS & HWY_AVX2
#define HEDDLE_SIMD_AVX2(FUNCTION) \
  if (isa() >= Isa::avx2) return N_AVX2::FUNCTION()
#else
#define HEDDLE_SIMD_AVX2(FUNCTION)
#endif

/// Inside HWY_ONCE: returns from a function with what FUNCTION() of the target for isa() returns.
#define HEDDLE_SIMD_RETURN(FUNCTION) \
  HEDDLE_SIMD_AVX3(FUNCTION);        \
  HEDDLE_SIMD_AVX2(FUNCTION);        \
  return HWY_STATIC_DISPATCH(FUNCTION)()
