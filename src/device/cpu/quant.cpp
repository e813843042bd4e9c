#include "device/cpu/quant.h"

namespace heddle::cpu {

const QuantLoops& quant_loops(Isa level) {
#if defined(__x86_64__)
  if (level >= Isa::avx512) return avx512::kQuantLoops;
  if (level == Isa::avx_vnni) {
    return has_avx_vnni() ? avx_vnni::kQuantLoops : avx512vl::kQuantLoops;
  }
  if (level == Isa::avx2) return avx2::kQuantLoops;
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
#else
  static_cast<void>(level);
#endif
  return portable::kQuantPanelLoops;
}

}  // namespace heddle::cpu
