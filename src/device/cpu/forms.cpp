#include "device/cpu/forms.h"

#include <fmt/format.h>

#include <atomic>

#include "base/settings.h"

namespace heddle::cpu {

namespace {

std::atomic<const LinearForms*> set_for_tests{nullptr};

bool rounds_to_bf16() {
  return settings().matmul == "bf16";
}

}  // namespace

LinearForms forms_for(Isa level, bool rounds_to_bf16) {
  return {.exact = &products(level),
          .rounded = rounds_to_bf16 ? &rounded_products(level) : nullptr,
          .blocks = &quant_loops(level),
          .panels = &quant_panel_loops(level)};
}

LinearForms linear_forms() {
  const LinearForms* set = set_for_tests.load(std::memory_order_acquire);
  return set ? *set : forms_for(isa(), rounds_to_bf16());
}

FormsScope::FormsScope(const LinearForms& forms)
    : forms_(forms), previous_(set_for_tests.exchange(&forms_, std::memory_order_acq_rel)) {}

FormsScope::~FormsScope() {
  set_for_tests.store(previous_, std::memory_order_release);
}

// ---- In words

namespace {

bool is_neon(Isa level) {
  return level >= Isa::neon;
}

std::string_view rounded_form(Isa level) {
  if (is_neon(level)) return "multiplied as floats";
  if (level >= Isa::amx) return "AMX tiles of bf16";
  if (level < Isa::avx512) return "multiplied as floats, for want of instructions for bf16";
  return has_avx512_bf16() ? "AVX-512 BF16" : "multiplied as floats, for want of AVX-512 BF16";
}

std::string_view exact_form(Isa level) {
  if (level == Isa::portable) return "products and sums of floats in 128 bits";
  if (is_neon(level)) return "fused multiply-add of floats in 128 bits";
  return level >= Isa::avx512 ? "fused multiply-add of floats in 512 bits"
                              : "fused multiply-add of floats in 256 bits";
}

std::string_view block_form(Isa level) {
  switch (level) {
    case Isa::amx:
      return "AMX tiles of int8, up to 8 rows AVX-512 VNNI";
    case Isa::avx512:
      return "AVX-512 VNNI";
    case Isa::avx_vnni:
      return "VNNI in 256 bits";
    case Isa::avx2:
      return "AVX2's multiply and add of pairs";
    case Isa::neon:
      return "NEON's widening multiply and add";
    case Isa::neon_dotprod:
      return "NEON's dot products of bytes";
    case Isa::neon_i8mm:
      return "NEON's dot products of bytes, with and without sign";
    case Isa::portable:
      break;
  }
  return "products of pairs in 128 bits";
}

/// Why nothing above `level` serves.
std::string why_no_better(Isa level) {
  if (level != processor_isa()) {
    return fmt::format("HEDDLE_CPU={} rules out more", setting_of(level));
  }
  const std::string_view lacks = what_the_next_needs(level);
  return lacks.empty() ? "there is no better form" : fmt::format("no {} here", lacks);
}

}  // namespace

std::vector<FormInfo> describe_forms() {
  const Isa level = isa();
  const std::string why = why_no_better(level);
  // Tiles and VNNI multiply no floats: what lies above AVX-512 is of no use to exact products.
  const bool is_best_exact = level >= Isa::avx512;
  const std::string plain =
      rounds_to_bf16()
          ? fmt::format("rounded to bf16 (HEDDLE_MATMUL): {}; {}", rounded_form(level), why)
          : fmt::format("exact: {}; {}; with HEDDLE_MATMUL=bf16 {}", exact_form(level),
                        is_best_exact ? "nothing better multiplies floats" : why,
                        rounded_form(level));
  return {{"weights f32, f16, bf16", plain},
          {"weights of block types",
           fmt::format("activations as 16-bit integers: {}; {}", block_form(level), why)}};
}

}  // namespace heddle::cpu
