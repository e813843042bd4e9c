#include "device/cpu/isa.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "base/settings.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace heddle::cpu {

namespace {

struct Level {
  Isa isa;
  std::string_view setting, title, needs;
};
constexpr Level kLevels[] = {
    {Isa::portable, "portable", "portable", "nothing"},
    {Isa::avx2, "avx2", "AVX2", "AVX2 with FMA and F16C"},
    {Isa::avx_vnni, "avx_vnni", "AVX-VNNI", "AVX-VNNI"},
    {Isa::avx512, "avx512", "AVX-512", "AVX-512 with VNNI"},
    {Isa::amx, "amx", "AMX", "AMX with int8 and bf16"},
    {Isa::neon, "neon", "NEON", "NEON"},
    {Isa::neon_dotprod, "neon_dotprod", "NEON with dot products", "dot products (asimddp)"},
    {Isa::neon_i8mm, "neon_i8mm", "NEON with i8mm", "8-bit matrix products (i8mm)"},
};
static_assert(std::ranges::all_of(kLevels, [](const Level& level) {
  return &kLevels[static_cast<std::size_t>(level.isa)] == &level;
}));

/// All that a processor of this architecture might have, from the least to the best.
#if defined(__x86_64__)
constexpr Isa kHere[] = {Isa::portable, Isa::avx2, Isa::avx_vnni, Isa::avx512, Isa::amx};
#elif defined(__aarch64__)
constexpr Isa kHere[] = {Isa::portable, Isa::neon, Isa::neon_dotprod, Isa::neon_i8mm};
#else
constexpr Isa kHere[] = {Isa::portable};
#endif

const Level& row_of(Isa level) {
  return kLevels[static_cast<std::size_t>(level)];
}

struct Features {
  std::vector<Isa> levels = {Isa::portable};  // from the least to the best
  bool avx_vnni = false, avx512_bf16 = false, converts_beside_products = false;
};

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

// The register files that the operating system saves for each thread (XCR0); a processor's vector
// instructions fault or corrupt where it does not.
bool saves(std::uint64_t state) {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return ((static_cast<std::uint64_t>(high) << 32 | low) & state) == state;
}

bool has(unsigned word, std::initializer_list<int> bits) {
  return std::ranges::all_of(bits, [&](int bit) { return (word >> bit & 1u) != 0; });
}

/// Linux lets a process use tiles once it has asked, which holds for all its threads: see
/// Documentation/arch/x86/xstate.rst. Refused where a thread's signal stack would be too small.
bool system_allows_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Bit positions: Intel SDM volume 2, CPUID.
Features detect() {
  Features found;
  const Registers one = cpuid(1), seven = cpuid(7), more = cpuid(7, 1);
  constexpr int kFma = 12, kSse42 = 20, kMovbe = 22, kXsave = 27, kAvx = 28, kF16c = 29;
  if (!has(one.ecx, {kFma, kSse42, kMovbe, kXsave, kAvx, kF16c})) return found;
  constexpr std::uint64_t kAvxState = 0x6, kAvx512State = 0xe6, kTileState = 0x60000;
  constexpr int kBmi1 = 3, kAvx2 = 5, kBmi2 = 8, kLzcnt = 5;
  const bool avx2 = has(seven.ebx, {kBmi1, kAvx2, kBmi2}) && has(cpuid(0x80000001u).ecx, {kLzcnt});
  if (!avx2 || !saves(kAvxState)) return found;
  found.levels.push_back(Isa::avx2);
  constexpr int kAvxVnni = 4, kF = 16, kDq = 17, kCd = 28, kBw = 30, kVl = 31, kVnni = 11;
  found.avx_vnni = has(more.eax, {kAvxVnni});
  const bool avx512 =
      has(seven.ebx, {kF, kDq, kCd, kBw, kVl}) && has(seven.ecx, {kVnni}) && saves(kAvx512State);
  if (found.avx_vnni || avx512) found.levels.push_back(Isa::avx_vnni);
  if (!avx512) return found;
  found.levels.push_back(Isa::avx512);
  constexpr int kBf16 = 5, kTileBf16 = 22, kTile = 24, kTileInt8 = 25;
  found.avx512_bf16 = has(more.eax, {kBf16});
  constexpr unsigned kAuth = 0x68747541u;  // the first letters of AuthenticAMD
  found.converts_beside_products = cpuid(0).ebx == kAuth;
  const bool amx = found.avx512_bf16 && has(seven.edx, {kTileBf16, kTile, kTileInt8});
  if (amx && saves(kTileState) && system_allows_tiles()) found.levels.push_back(Isa::amx);
  return found;
}

#elif defined(__aarch64__)

// Bit positions: Linux, arch/arm64/include/uapi/asm/hwcap.h. Elsewhere what the compiler was told.
Features detect() {
  Features found;
  found.levels.push_back(Isa::neon);
#if defined(__linux__)
  constexpr unsigned long kDotProducts = 1ul << 20, kInt8Matrices = 1ul << 13;
  const bool dot_products = (::getauxval(AT_HWCAP) & kDotProducts) != 0;
  const bool int8_matrices = (::getauxval(AT_HWCAP2) & kInt8Matrices) != 0;
#else
#if defined(__ARM_FEATURE_DOTPROD)
  const bool dot_products = true;
#else
  const bool dot_products = false;
#endif
  const bool int8_matrices = false;
#endif
  if (dot_products) found.levels.push_back(Isa::neon_dotprod);
  if (dot_products && int8_matrices) found.levels.push_back(Isa::neon_i8mm);
  return found;
}

#else

Features detect() {
  return {};
}

#endif

const Features& features() {
  static const Features found = detect();
  return found;
}

}  // namespace

std::span<const Isa> processor_levels() {
  return features().levels;
}

Isa processor_isa() {
  return features().levels.back();
}

bool has_level(Isa level) {
  return std::ranges::find(features().levels, level) != features().levels.end();
}

bool has_avx512_bf16() {
  return features().avx512_bf16;
}

bool converts_beside_products() {
  return features().converts_beside_products;
}

bool has_avx_vnni() {
  return features().avx_vnni;
}

std::string_view setting_of(Isa level) {
  return row_of(level).setting;
}

std::string_view title_of(Isa level) {
  return row_of(level).title;
}

std::string_view what_the_next_needs(Isa level) {
  const auto* here = std::ranges::find(kHere, level);
  const bool is_last = here == std::end(kHere) || here + 1 == std::end(kHere);
  return is_last ? std::string_view() : row_of(here[1]).needs;
}

namespace {

std::string levels_here() {
  std::string text;
  for (const Isa level : processor_levels()) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", setting_of(level));
  }
  return text;
}

Isa allowed_isa() {
  const std::string& setting = settings().cpu_isa;
  if (setting == "best") return processor_isa();
  for (const Isa level : processor_levels()) {
    if (setting_of(level) == setting) return level;
  }
  fail(ErrorCode::unsupported, "HEDDLE_CPU={}: this processor, with this system, has {}", setting,
       levels_here());
}

std::atomic<Isa>& level() {
  static std::atomic<Isa> current{allowed_isa()};
  return current;
}

}  // namespace

Isa isa() {
  return level().load(std::memory_order_relaxed);
}

IsaScope::IsaScope(Isa wanted) : previous_(isa()) {
  require(has_level(wanted), ErrorCode::unsupported,
          "IsaScope: this processor has no {}; it has {}", title_of(wanted), levels_here());
  level().store(wanted, std::memory_order_relaxed);
}

IsaScope::~IsaScope() {
  level().store(previous_, std::memory_order_relaxed);
}

}  // namespace heddle::cpu
