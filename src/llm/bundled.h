#pragma once

#include <cstddef>
#include <span>

namespace heddle::llm {

/// models/fable-1m-f16.gguf, as embedded in the library.
std::span<const std::byte> bundled_model_bytes();

}  // namespace heddle::llm
