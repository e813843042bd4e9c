// NumPy's .npy files: one array each.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::npy {

/// Whether .npy has the type: all plain ones but bf16.
bool has(DType dtype) noexcept;

/// What a file of version 1.0 begins with, for a tensor of such a type in row-major order.
std::string header(const TensorSpec& spec);

/// Writes a file, or replaces one. Throws Error(io) naming the path.
void write(const std::filesystem::path& path, const TensorSpec& spec,
           std::span<const std::byte> bytes);

struct Tensor {
  TensorSpec spec;
  std::vector<std::byte> bytes;  // row-major
};
/// Reads a file of version 1, 2 or 3, little-endian and in C order. Throws Error(io) naming the
/// path and what is wrong with it.
Tensor read(const std::filesystem::path& path);

}  // namespace heddle::npy
