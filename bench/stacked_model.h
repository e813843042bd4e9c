// A model of many layers, each a copy of the built-in model's first.
#pragma once

#include <cstdint>
#include <memory>

#include "heddle/llm.h"

namespace heddle {

std::shared_ptr<llm::Model> stacked_model(std::uint32_t layers);

}  // namespace heddle
