// What a model file holds, as JSON.
#pragma once

#include <string>

#include "heddle/llm.h"

namespace heddle::cli {

/// Metadata arrays are whole. "config" is an object, or null beside "config_error".
std::string info_json(const gguf::File& file);

}  // namespace heddle::cli
