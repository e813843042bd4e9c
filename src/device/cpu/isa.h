// Which instructions kernels may use: what the processor has, cut to what HEDDLE_CPU allows.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace heddle::cpu {

/// Levels, of which a processor has some; each includes those before it on the same processor. They
/// are compared only on the kind of processor that they belong to.
enum class Isa : std::uint8_t {
  portable,
  avx2,          // with FMA and F16C
  avx_vnni,      // 256 bits of VNNI, encoded as AVX-VNNI or as AVX-512 VL
  avx512,        // F, BW, DQ, CD, VL, VNNI
  amx,           // tiles of int8 and bf16, and AVX-512 with BF16
  neon,          // every 64-bit Arm processor's
  neon_dotprod,  // with four-byte dot products
  neon_i8mm      // of which one side may have no sign
};

Isa isa();
/// What the processor has and the system saves, whatever HEDDLE_CPU allows; the best comes last.
std::span<const Isa> processor_levels();
Isa processor_isa();
bool has_level(Isa level);
/// The 512-bit products of bf16; not a level of its own, as few things want them.
bool has_avx512_bf16();
/// Whether f16 becomes f32 in units that products leave idle, as in Zen 4 and its successors;
/// elsewhere a conversion costs as much as two products.
bool converts_beside_products();
/// The 256-bit products of VNNI without AVX-512.
bool has_avx_vnni();

/// As HEDDLE_CPU names it.
std::string_view setting_of(Isa level);
/// As the world does.
std::string_view title_of(Isa level);
/// Why the processor stops at the level it has, as "the processor or the system lacks ...".
std::string_view what_the_next_needs(Isa level);

/// Sets the level for tests until the end of the scope; one that the processor has. Kernels
/// prepared before keep theirs.
class IsaScope {
 public:
  explicit IsaScope(Isa level);
  ~IsaScope();
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  Isa previous_;
};

}  // namespace heddle::cpu
