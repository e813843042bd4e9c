#include "io/ggml_types.h"

#include <algorithm>
#include <iterator>

namespace heddle::gguf {
namespace {

// 4, 5, 31 to 33 and 36 to 38 were types once; files with them are no longer read by anyone.
constexpr GgmlType kTypes[] = {
    {0, "f32", DType::f32},    {1, "f16", DType::f16},    {2, "q4_0", DType::q4_0},
    {3, "q4_1", DType::q4_1},  {4, "q4_2", {}},           {5, "q4_3", {}},
    {6, "q5_0", DType::q5_0},  {7, "q5_1", DType::q5_1},  {8, "q8_0", DType::q8_0},
    {9, "q8_1", {}},           {10, "q2_K", DType::q2_K}, {11, "q3_K", DType::q3_K},
    {12, "q4_K", DType::q4_K}, {13, "q5_K", DType::q5_K}, {14, "q6_K", DType::q6_K},
    {15, "q8_K", {}},          {16, "iq2_xxs", {}},       {17, "iq2_xs", {}},
    {18, "iq3_xxs", {}},       {19, "iq1_s", {}},         {20, "iq4_nl", DType::iq4_nl},
    {21, "iq3_s", {}},         {22, "iq2_s", {}},         {23, "iq4_xs", DType::iq4_xs},
    {24, "i8", DType::i8},     {25, "i16", DType::i16},   {26, "i32", DType::i32},
    {27, "i64", DType::i64},   {28, "f64", DType::f64},   {29, "iq1_m", {}},
    {30, "bf16", DType::bf16}, {31, "q4_0_4_4", {}},      {32, "q4_0_4_8", {}},
    {33, "q4_0_8_8", {}},      {34, "tq1_0", {}},         {35, "tq2_0", {}},
    {36, "iq4_nl_4_4", {}},    {37, "iq4_nl_4_8", {}},    {38, "iq4_nl_8_8", {}},
    {39, "mxfp4", {}},         {40, "nvfp4", {}},         {41, "q1_0", {}},
};

constexpr bool ids_are_positions() {
  for (std::uint32_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].id != i) return false;
  }
  return true;
}
static_assert(ids_are_positions());

}  // namespace

const GgmlType* find_ggml_type(std::uint32_t id) noexcept {
  return id < std::size(kTypes) ? &kTypes[id] : nullptr;
}

std::optional<std::uint32_t> ggml_type_id(DType dtype) noexcept {
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const GgmlType& t) { return t.dtype == dtype; });
  if (type == std::end(kTypes)) return std::nullopt;
  return type->id;
}

}  // namespace heddle::gguf
