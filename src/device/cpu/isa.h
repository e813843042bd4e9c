// Which instructions kernels may use: what the processor has, cut to what HEDDLE_CPU allows.
#pragma once

namespace heddle::cpu {

enum class Isa { portable, avx2, avx512 };  // avx2: with FMA and F16C; avx512: F, BW, DQ, VL, VNNI

Isa isa();
/// What the processor has and the system saves, whatever HEDDLE_CPU allows.
Isa processor_isa();

/// Sets the level for tests until the end of the scope; not above what the processor has. Kernels
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
