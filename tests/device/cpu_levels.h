// Tests at every level of instructions that this processor has.
#pragma once

#include <gtest/gtest.h>

#include "device/cpu/isa.h"
#include "heddle/error.h"
#include "support/conformance.h"

namespace heddle::test {

template <class F>
void at_every_level(const F& f) {
  const cpu::Isa best = cpu::isa();
  for (const cpu::Isa level : cpu::processor_levels()) {
    const cpu::IsaScope scope(level);
    SCOPED_TRACE("level " + std::string(cpu::setting_of(level)));
    f();
    if (testing::Test::HasFailure() || level == best) return;  // the next would repeat a failure
  }
}

inline void expect_on_cpu(const Op& op, const std::vector<Tensor>& inputs,
                          Tolerance tolerance = {}) {
  expect_conformance(cpu_device(), op, inputs, tolerance);
}

inline constexpr DType kFloats[] = {DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr DType kFloatLike[] = {DType::f16, DType::bf16, DType::f32};
inline constexpr DType kIntegers[] = {DType::u8, DType::u16, DType::u32, DType::u64,
                                      DType::i8, DType::i16, DType::i32, DType::i64};
inline constexpr DType kPlain[] = {
    DType::bool_, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::i8,  DType::i16,
    DType::i32,   DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64, DType::complex64};
inline constexpr DType kBlocks[] = {DType::q4_0, DType::q4_1, DType::q5_0,   DType::q5_1,
                                    DType::q8_0, DType::q2_K, DType::q3_K,   DType::q4_K,
                                    DType::q5_K, DType::q6_K, DType::iq4_nl, DType::iq4_xs};

}  // namespace heddle::test
