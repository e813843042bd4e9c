#include "device/cpu/quant.h"

namespace heddle::cpu {

const QuantLoops& quant_loops(Isa level) {
#if defined(__x86_64__)
  if (level >= Isa::avx512) return avx512::kQuantLoops;
  if (level == Isa::avx_vnni) {
    return has_avx_vnni() ? avx_vnni::kQuantLoops : avx512vl::kQuantLoops;
  }
  if (level == Isa::avx2) return avx2::kQuantLoops;
#elif defined(__aarch64__)
  if (level >= Isa::neon) return neon::kQuantLoops;
#else
  static_cast<void>(level);
#endif
  return portable::kQuantLoops;
}

const QuantPanelLoops& quant_panel_loops(Isa level) {
#if defined(__x86_64__)
  if (level >= Isa::amx) return amx::kQuantPanelLoops;
  if (level == Isa::avx512) return avx512::kQuantPanelLoops;
  if (level == Isa::avx_vnni) {
    return has_avx_vnni() ? avx_vnni::kQuantPanelLoops : avx512vl::kQuantPanelLoops;
  }
  if (level == Isa::avx2) return avx2::kQuantPanelLoops;
#elif defined(__aarch64__)
  if (level >= Isa::neon_i8mm) return neon_i8mm::kQuantPanelLoops;
  if (level >= Isa::neon_dotprod) return neon_dotprod::kQuantPanelLoops;
  if (level >= Isa::neon) return neon::kQuantPanelLoops;
#else
  static_cast<void>(level);
#endif
  return portable::kQuantPanelLoops;
}

}  // namespace heddle::cpu
