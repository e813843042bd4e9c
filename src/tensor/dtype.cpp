#include "heddle/dtype.h"

#include <array>
#include <limits>

#include "base/check.h"

namespace heddle {

namespace {

using Kind = DTypeKind;

// In the order of the enum. Block sizes are those of GGUF (ggml's block_* structs).
constexpr std::array<DTypeInfo, kDTypeCount> kInfo{{
    {"bool", Kind::boolean, 1, 1},     {"u8", Kind::unsigned_int, 1, 1},
    {"u16", Kind::unsigned_int, 1, 2}, {"u32", Kind::unsigned_int, 1, 4},
    {"u64", Kind::unsigned_int, 1, 8}, {"i8", Kind::signed_int, 1, 1},
    {"i16", Kind::signed_int, 1, 2},   {"i32", Kind::signed_int, 1, 4},
    {"i64", Kind::signed_int, 1, 8},   {"f16", Kind::floating, 1, 2},
    {"bf16", Kind::floating, 1, 2},    {"f32", Kind::floating, 1, 4},
    {"f64", Kind::floating, 1, 8},     {"complex64", Kind::complex, 1, 8},
    {"q4_0", Kind::block, 32, 18},     {"q4_1", Kind::block, 32, 20},
    {"q5_0", Kind::block, 32, 22},     {"q5_1", Kind::block, 32, 24},
    {"q8_0", Kind::block, 32, 34},     {"q2_K", Kind::block, 256, 84},
    {"q3_K", Kind::block, 256, 110},   {"q4_K", Kind::block, 256, 144},
    {"q5_K", Kind::block, 256, 176},   {"q6_K", Kind::block, 256, 210},
    {"iq4_nl", Kind::block, 32, 18},   {"iq4_xs", Kind::block, 256, 136},
}};

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

DType signed_of_bytes(int bytes) {
  switch (bytes) {
    case 1:
      return DType::i8;
    case 2:
      return DType::i16;
    case 4:
      return DType::i32;
    default:
      return DType::i64;
  }
}

DType wider(DType a, DType b) {
  return info(a).block_bytes >= info(b).block_bytes ? a : b;
}

DType promote_mixed_signs(DType unsigned_type, DType signed_type) {
  if (unsigned_type == DType::u64) return DType::f32;
  const int unsigned_bytes = info(unsigned_type).block_bytes;
  if (info(signed_type).block_bytes > unsigned_bytes) return signed_type;
  return signed_of_bytes(2 * unsigned_bytes);
}

DType promote_floats(DType a, DType b) {
  const bool halves_differ = a != b && info(a).block_bytes == info(b).block_bytes;
  return halves_differ ? DType::f32 : wider(a, b);
}

}  // namespace

const DTypeInfo& info(DType dtype) noexcept {
  return kInfo[static_cast<std::size_t>(dtype)];
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (equal_ignoring_case(kInfo[i].name, name)) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::size_t item_size(DType dtype) {
  const DTypeInfo& type = info(dtype);
  require(type.kind != Kind::block, ErrorCode::invalid_argument,
          "{} has no size of one element: {} elements share {} bytes", type.name,
          type.block_elements, type.block_bytes);
  return static_cast<std::size_t>(type.block_bytes);
}

std::size_t row_bytes(DType dtype, std::int64_t elements) {
  const DTypeInfo& type = info(dtype);
  require(elements >= 0, ErrorCode::invalid_argument, "a row of {} {} elements", elements,
          type.name);
  require(elements % type.block_elements == 0, ErrorCode::invalid_argument,
          "a row of {} elements is not made of whole {} blocks of {}", elements, type.name,
          type.block_elements);
  const auto blocks = static_cast<std::uint64_t>(elements / type.block_elements);
  const auto bytes = static_cast<std::uint64_t>(type.block_bytes);
  // Sizes stay within int64, so that offsets and differences of them do too.
  require(blocks <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / bytes,
          ErrorCode::invalid_argument, "a row of {} {} elements overflows 64 bits", elements,
          type.name);
  return static_cast<std::size_t>(blocks * bytes);
}

DType promote_types(DType a, DType b) {
  require(!is_block(a) && !is_block(b), ErrorCode::invalid_argument,
          "{} and {}: block types do not promote; cast to a plain type first", to_string(a),
          to_string(b));
  if (a == b) return a;
  const Kind kind_a = info(a).kind;
  const Kind kind_b = info(b).kind;
  if (kind_a == Kind::complex || kind_b == Kind::complex) return DType::complex64;
  if (kind_a == Kind::floating && kind_b == Kind::floating) return promote_floats(a, b);
  if (kind_a == Kind::floating) return a;
  if (kind_b == Kind::floating) return b;
  if (kind_a == Kind::boolean) return b;
  if (kind_b == Kind::boolean) return a;
  if (kind_a == kind_b) return wider(a, b);
  return kind_a == Kind::unsigned_int ? promote_mixed_signs(a, b) : promote_mixed_signs(b, a);
}

}  // namespace heddle
