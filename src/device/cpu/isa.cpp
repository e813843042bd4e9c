#include "device/cpu/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/settings.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace heddle::cpu {

namespace {

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
std::uint64_t saved_state() {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<std::uint64_t>(high) << 32 | low;
}

bool has(unsigned word, std::initializer_list<int> bits) {
  return std::ranges::all_of(bits, [&](int bit) { return (word >> bit & 1u) != 0; });
}

// Bit positions: Intel SDM volume 2, CPUID.
Isa detect() {
  const Registers one = cpuid(1), seven = cpuid(7), extended = cpuid(0x80000001u);
  constexpr int kFma = 12, kSse42 = 20, kMovbe = 22, kXsave = 27, kAvx = 28, kF16c = 29;
  if (!has(one.ecx, {kFma, kSse42, kMovbe, kXsave, kAvx, kF16c})) return Isa::portable;
  constexpr std::uint64_t kAvxState = 0x6, kAvx512State = 0xe6;
  const std::uint64_t saved = saved_state();
  constexpr int kBmi1 = 3, kAvx2 = 5, kBmi2 = 8, kLzcnt = 5;
  const bool avx2 = has(seven.ebx, {kBmi1, kAvx2, kBmi2}) && has(extended.ecx, {kLzcnt});
  if (!avx2 || (saved & kAvxState) != kAvxState) return Isa::portable;
  constexpr int kF = 16, kDq = 17, kCd = 28, kBw = 30, kVl = 31, kVnni = 11;
  const bool avx512 = has(seven.ebx, {kF, kDq, kCd, kBw, kVl}) && has(seven.ecx, {kVnni});
  if (!avx512 || (saved & kAvx512State) != kAvx512State) return Isa::avx2;
  return Isa::avx512;
}

#else

Isa detect() {
  return Isa::portable;
}

#endif

}  // namespace

Isa processor_isa() {
  static const Isa detected = detect();
  return detected;
}

namespace {

Isa allowed_isa() {
  const std::string& setting = settings().cpu_isa;
  if (setting == "portable") return Isa::portable;
  if (setting == "avx2") return std::min(Isa::avx2, processor_isa());
  return processor_isa();
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
  require(wanted <= processor_isa(), ErrorCode::unsupported,
          "IsaScope: this processor lacks the instructions asked for");
  level().store(wanted, std::memory_order_relaxed);
}

IsaScope::~IsaScope() {
  level().store(previous_, std::memory_order_relaxed);
}

}  // namespace heddle::cpu
