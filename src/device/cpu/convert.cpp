#include "device/cpu/convert.h"

#include <cstring>

#include "device/cpu/isa.h"
#include "device/cpu/simd_targets.h"
#include "heddle/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/convert.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu {

#ifndef HEDDLE_CPU_CONVERT_ONCE
#define HEDDLE_CPU_CONVERT_ONCE
struct ConvertTable {
  WidenFunction widen_f16, widen_bf16;
  NarrowFunction narrow_f16, narrow_bf16;
};
#endif

namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void widen_bf16(const void* from, float* to, std::int64_t n) {
  const auto* in = static_cast<const std::uint16_t*>(from);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(in[i]) << 16;
    std::memcpy(to + i, &bits, sizeof bits);
  }
}

void narrow_bf16(const float* from, void* to, std::int64_t n) {
  auto* out = static_cast<std::uint16_t*>(to);
  for (std::int64_t i = 0; i < n; ++i) out[i] = bf16(from[i]).bits;
}

#if HEDDLE_TARGET_CONVERTS_F16

using FloatTag = hn::ScalableTag<float>;
using HalfTag = hn::Rebind<hwy::float16_t, FloatTag>;

void widen_f16(const void* from, float* to, std::int64_t n) {
  const auto* in = static_cast<const std::uint16_t*>(from);
  const auto* halves = static_cast<const hwy::float16_t*>(from);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(FloatTag()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::PromoteTo(FloatTag(), hn::LoadU(HalfTag(), halves + i)), FloatTag(), to + i);
  }
  for (; i < n; ++i) to[i] = f16_bits_to_f32(in[i]);
}

void narrow_f16(const float* from, void* to, std::int64_t n) {
  auto* out = static_cast<std::uint16_t*>(to);
  auto* halves = static_cast<hwy::float16_t*>(to);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(FloatTag()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::DemoteTo(HalfTag(), hn::LoadU(FloatTag(), from + i)), HalfTag(), halves + i);
  }
  for (; i < n; ++i) out[i] = f32_to_f16_bits(from[i]);
}

#else

void widen_f16(const void* from, float* to, std::int64_t n) {
  const auto* in = static_cast<const std::uint16_t*>(from);
  for (std::int64_t i = 0; i < n; ++i) to[i] = f16_bits_to_f32(in[i]);
}

void narrow_f16(const float* from, void* to, std::int64_t n) {
  auto* out = static_cast<std::uint16_t*>(to);
  for (std::int64_t i = 0; i < n; ++i) out[i] = f32_to_f16_bits(from[i]);
}

#endif

const ConvertTable& convert_table() {
  static constexpr ConvertTable kTable{widen_f16, widen_bf16, narrow_f16, narrow_bf16};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace heddle::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

namespace {

const ConvertTable& converters() {
  HEDDLE_SIMD_RETURN(convert_table);
}

void widen_f32(const void* from, float* to, std::int64_t n) {
  if (n > 0) std::memmove(to, from, static_cast<std::size_t>(n) * sizeof(float));
}
void narrow_f32(const float* from, void* to, std::int64_t n) {
  if (n > 0) std::memmove(to, from, static_cast<std::size_t>(n) * sizeof(float));
}

}  // namespace

WidenFunction widen_function(DType from) {
  if (from == DType::f32) return widen_f32;
  if (from == DType::f16) return converters().widen_f16;
  return from == DType::bf16 ? converters().widen_bf16 : nullptr;
}

NarrowFunction narrow_function(DType to) {
  if (to == DType::f32) return narrow_f32;
  if (to == DType::f16) return converters().narrow_f16;
  return to == DType::bf16 ? converters().narrow_bf16 : nullptr;
}

}  // namespace heddle::cpu
#endif
