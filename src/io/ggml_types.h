// ggml's tensor type ids, as GGUF files store them, and the DType each is.
// Source: enum ggml_type in https://github.com/ggml-org/llama.cpp/blob/master/ggml/include/ggml.h
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "heddle/dtype.h"

namespace heddle::gguf {

struct GgmlType {
  std::uint32_t id;
  std::string_view name;       // ggml's own, in lower case as ggml prints it
  std::optional<DType> dtype;  // none: a type of ggml's that heddle does not have
};

/// Null for an id that is not ggml's.
const GgmlType* find_ggml_type(std::uint32_t id) noexcept;

/// None for a dtype that GGUF cannot store.
std::optional<std::uint32_t> ggml_type_id(DType dtype) noexcept;

}  // namespace heddle::gguf
