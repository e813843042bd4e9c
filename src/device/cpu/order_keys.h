// Keys: unsigned integers that are in the order of the values they stand for, as op_order.h has it.
//
// `exact` keys tell values apart that compare as equal (-0 stands before 0), so that they can be
// turned back; NaNs lose their sign. `ranked` keys of equal values are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "heddle/dtype.h"

namespace heddle::cpu {

template <class U>
inline constexpr U kTopBit = static_cast<U>(U{1} << (8 * sizeof(U) - 1));

template <class U>
struct UnsignedKey {
  using Bits = U;
  static U exact(U bits) { return bits; }
  static U ranked(U bits) { return bits; }
  static U value(U key) { return key; }
};

template <class U>
struct SignedKey {
  using Bits = U;
  static U exact(U bits) { return static_cast<U>(bits ^ kTopBit<U>); }
  static U ranked(U bits) { return exact(bits); }
  static U value(U key) { return static_cast<U>(key ^ kTopBit<U>); }
};

/// IEEE numbers, whose infinity has the bits kInfinity.
template <class U, U kInfinity>
struct FloatKey {
  using Bits = U;
  static constexpr U kNan = static_cast<U>(~U{0});  // ranked
  static U exact(U bits) {
    const U magnitude = static_cast<U>(bits & ~kTopBit<U>);
    if (magnitude > kInfinity) bits = magnitude;
    const U flipped = bits & kTopBit<U> ? kNan : kTopBit<U>;
    return static_cast<U>(bits ^ flipped);
  }
  static U ranked(U bits) {
    const U magnitude = static_cast<U>(bits & ~kTopBit<U>);
    if (magnitude > kInfinity) return kNan;
    return exact(magnitude == 0 ? U{0} : bits);
  }
  static U value(U key) { return static_cast<U>(key & kTopBit<U> ? key ^ kTopBit<U> : ~key); }
};
using F16Key = FloatKey<std::uint16_t, 0x7c00>;
using Bf16Key = FloatKey<std::uint16_t, 0x7f80>;
using F32Key = FloatKey<std::uint32_t, 0x7f80'0000>;
using F64Key = FloatKey<std::uint64_t, 0x7ff0'0000'0000'0000>;

/// complex64. Its keys cannot be turned back: of numbers with a NaN they do not hold all.
struct ComplexKey {
  using Bits = std::uint64_t;
  static std::uint64_t ranked(std::uint64_t bits) {
    const std::uint32_t real = F32Key::ranked(static_cast<std::uint32_t>(bits));
    const std::uint32_t imaginary = F32Key::ranked(static_cast<std::uint32_t>(bits >> 32));
    const bool no_real = real == F32Key::kNan, no_imaginary = imaginary == F32Key::kNan;
    // Larger than the key of infinity, in the order in which numbers with a NaN stand.
    constexpr std::uint32_t kBehind = 0xff80'0001;
    if (no_real && no_imaginary) return joined(kBehind + 2, 0);
    if (no_real) return joined(kBehind + 1, imaginary);
    if (no_imaginary) return joined(kBehind, real);
    return joined(real, imaginary);
  }

 private:
  static std::uint64_t joined(std::uint32_t high, std::uint32_t low) {
    return (std::uint64_t{high} << 32) | low;
  }
};

template <class Key>
typename Key::Bits load_bits(const std::byte* x, std::int64_t i) {
  typename Key::Bits bits;
  std::memcpy(&bits, x + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
  return bits;
}

template <class Key>
struct KeyTag {
  using type = Key;
};

/// Calls f(KeyTag<Key>{}) with the keys of a plain dtype and returns what it gives.
template <class F>
auto with_key(DType dtype, const F& f) -> decltype(f(KeyTag<F32Key>{})) {
  switch (dtype) {
    case DType::bool_:
    case DType::u8:
      return f(KeyTag<UnsignedKey<std::uint8_t>>{});
    case DType::u16:
      return f(KeyTag<UnsignedKey<std::uint16_t>>{});
    case DType::u32:
      return f(KeyTag<UnsignedKey<std::uint32_t>>{});
    case DType::u64:
      return f(KeyTag<UnsignedKey<std::uint64_t>>{});
    case DType::i8:
      return f(KeyTag<SignedKey<std::uint8_t>>{});
    case DType::i16:
      return f(KeyTag<SignedKey<std::uint16_t>>{});
    case DType::i32:
      return f(KeyTag<SignedKey<std::uint32_t>>{});
    case DType::i64:
      return f(KeyTag<SignedKey<std::uint64_t>>{});
    case DType::f16:
      return f(KeyTag<F16Key>{});
    case DType::bf16:
      return f(KeyTag<Bf16Key>{});
    case DType::f64:
      return f(KeyTag<F64Key>{});
    case DType::complex64:
      return f(KeyTag<ComplexKey>{});
    default:
      return f(KeyTag<F32Key>{});
  }
}

}  // namespace heddle::cpu
