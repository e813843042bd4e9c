// From a DType to the C++ type that holds it.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "heddle/dtype.h"
#include "heddle/half.h"

namespace heddle::cpu {

template <class T>
struct TypeTag {
  using type = T;
};

/// Calls f(TypeTag<T>{}) with the type in which values of a plain dtype are computed (float for the
/// half types) and returns what it gives. Bool is bool, one byte that is 0 or 1.
template <class F>
auto with_compute_type(DType dtype, const F& f) -> decltype(f(TypeTag<float>{})) {
  switch (dtype) {
    case DType::bool_:
      return f(TypeTag<bool>{});
    case DType::u8:
      return f(TypeTag<std::uint8_t>{});
    case DType::u16:
      return f(TypeTag<std::uint16_t>{});
    case DType::u32:
      return f(TypeTag<std::uint32_t>{});
    case DType::u64:
      return f(TypeTag<std::uint64_t>{});
    case DType::i8:
      return f(TypeTag<std::int8_t>{});
    case DType::i16:
      return f(TypeTag<std::int16_t>{});
    case DType::i32:
      return f(TypeTag<std::int32_t>{});
    case DType::i64:
      return f(TypeTag<std::int64_t>{});
    case DType::f64:
      return f(TypeTag<double>{});
    case DType::complex64:
      return f(TypeTag<std::complex<float>>{});
    default:
      return f(TypeTag<float>{});
  }
}

/// Calls f(TypeTag<U>{}) with the unsigned integer that is as large as an item of a plain dtype:
/// for what only moves them.
template <class F>
auto with_item_type(std::size_t item, const F& f) -> decltype(f(TypeTag<std::uint8_t>{})) {
  switch (item) {
    case 1:
      return f(TypeTag<std::uint8_t>{});
    case 2:
      return f(TypeTag<std::uint16_t>{});
    case 4:
      return f(TypeTag<std::uint32_t>{});
    default:
      return f(TypeTag<std::uint64_t>{});
  }
}

inline bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}
/// f32, f16 or bf16: what is computed in float.
inline bool is_float_like(DType dtype) {
  return dtype == DType::f32 || is_half(dtype);
}

/// The dtype that `with_compute_type` computes in.
inline DType compute_dtype(DType dtype) {
  return is_half(dtype) ? DType::f32 : dtype;
}

}  // namespace heddle::cpu
