// The bundled model's file, in the library's read-only data.
#include "llm/bundled.h"

// Aligned as GGUF's default alignment asks, and to a cache line for the kernels that read it in
// place.
asm(R"(
    .section .rodata
    .balign 64
    .global heddle_bundled_model_begin
heddle_bundled_model_begin:
    .incbin ")" HEDDLE_BUNDLED_MODEL R"("
    .global heddle_bundled_model_end
heddle_bundled_model_end:
    .byte 0
    .previous
)");

extern "C" {
extern const std::byte heddle_bundled_model_begin[];
extern const std::byte heddle_bundled_model_end[];
}

namespace heddle::llm {

std::span<const std::byte> bundled_model_bytes() {
  return {heddle_bundled_model_begin, heddle_bundled_model_end};
}

}  // namespace heddle::llm
