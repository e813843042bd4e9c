#include "device/cpu/head_loops.h"

namespace heddle::cpu {

namespace {

int index_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::bf16:
      return 2;
    case DType::q8_0:
      return 3;
    default:
      return -1;
  }
}

}  // namespace

const HeadLoops* head_loops(Isa level, DType dtype) {
  const int index = index_of(dtype);
  if (index < 0) return nullptr;
#if defined(__x86_64__)
  if (level >= Isa::avx512) return &avx512::kHeadLoops[index];
  if (level >= Isa::avx2) return &avx2::kHeadLoops[index];
#elif defined(__aarch64__)
  if (level >= Isa::neon) return &neon::kHeadLoops[index];
#else
  static_cast<void>(level);
#endif
  return &portable::kHeadLoops[index];
}

}  // namespace heddle::cpu
