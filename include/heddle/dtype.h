// Element types: the plain ones of MLX and NumPy, and the block-quantised types of GGUF.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle {

enum class DType : std::uint8_t {
  bool_,
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64,
  complex64,
  // GGUF block types: a fixed number of elements share scales. Names and bit layouts are GGUF's.
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_K,
  q3_K,
  q4_K,
  q5_K,
  q6_K,
  iq4_nl,
  iq4_xs,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::iq4_xs) + 1;

enum class DTypeKind : std::uint8_t { boolean, unsigned_int, signed_int, floating, complex, block };

struct DTypeInfo {
  std::string_view name;  // as printed: "f16", "q4_K"
  DTypeKind kind;
  int block_elements;  // elements that are stored together; 1 for plain types
  int block_bytes;     // bytes that `block_elements` elements take
};

const DTypeInfo& info(DType dtype) noexcept;

/// The type called `name` ("f16", "q4_K"; case is ignored), if there is one.
std::optional<DType> dtype_from_name(std::string_view name) noexcept;

inline std::string_view to_string(DType dtype) noexcept {
  return info(dtype).name;
}
inline bool is_block(DType dtype) noexcept {
  return info(dtype).kind == DTypeKind::block;
}
inline bool is_floating(DType dtype) noexcept {
  return info(dtype).kind == DTypeKind::floating;
}
inline bool is_integer(DType dtype) noexcept {
  const DTypeKind kind = info(dtype).kind;
  return kind == DTypeKind::signed_int || kind == DTypeKind::unsigned_int;
}

/// Bytes of one element of a plain type. Throws invalid_argument for block types.
std::size_t item_size(DType dtype);

/// Bytes of `elements` elements in a row. Throws invalid_argument when a block type's row is not
/// made of whole blocks, or when the product overflows.
std::size_t row_bytes(DType dtype, std::int64_t elements);

/// The type two operands meet in, by MLX's rules: floats beat integers, f16 and bf16 meet in f32,
/// a signed and an unsigned integer meet in the next wider signed one (u64 with a signed one in
/// f32). Throws invalid_argument for block types.
DType promote_types(DType a, DType b);

}  // namespace heddle
