// Highway's targets cut to the levels of isa.h. To be included before hwy headers.
#pragma once

#include "hwy/detect_compiler_arch.h"

#if HWY_ARCH_X86
// Without flags the baseline target is the portable level; AVX2 and AVX3 are isa.h's avx2 and
// avx512; levels between and above them take the next below.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)
#elif HWY_ARCH_ARM
// The baseline, NEON, serves all levels. Without targets that are chosen as the program runs, it
// needs no attributes, and there is no SVE, whose vectors cannot be members.
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif

#include "hwy/detect_targets.h"

/// Whether the target that is being compiled has instructions that convert f16.
#define HEDDLE_TARGET_CONVERTS_F16 \
  (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON)

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
