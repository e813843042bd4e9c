// The compiled shaders, which the build embeds.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

namespace heddle::vulkan {

struct Shader {
  std::string_view name;
  std::span<const std::uint32_t> words;  // SPIR-V
  bool params_in_block = false;          // it defines PARAMS_IN_BLOCK
};
std::span<const Shader> shaders();

}  // namespace heddle::vulkan
