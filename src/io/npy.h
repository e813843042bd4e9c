// NumPy's .npy files: one array each.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::npy {

/// Whether NumPy has the type: all plain ones but bf16.
bool has(DType dtype) noexcept;

/// What a file of version 1.0 begins with, for a tensor of any plain type; its length is a multiple
/// of 64. bf16 is "<V2", two bytes that NumPy alone knows nothing of; MLX and ml_dtypes write and
/// read it so.
std::string header(const TensorSpec& spec, bool column_major = false);

/// A file's header, and where its data begins.
struct Description {
  TensorSpec spec;
  bool column_major = false, big_endian = false;
  std::size_t data = 0;
};
/// Of a file of version 1, 2 or 3, `bytes` in all. Throws Error(io) naming `name` and what is
/// wrong, a size that does not fit included.
Description describe(std::span<const std::byte> bytes, const std::string& name);

/// Turns the bytes of each number round, in place.
void swap_bytes(DType dtype, std::span<std::byte> bytes);

/// Writes a file, or replaces one. Throws Error(io) naming the path.
void write(const std::filesystem::path& path, const TensorSpec& spec,
           std::span<const std::byte> bytes);

struct Tensor {
  TensorSpec spec;
  std::vector<std::byte> bytes;  // row-major
};
/// Reads a little-endian file in C order. Throws Error(io) naming the
/// path and what is wrong with it.
Tensor read(const std::filesystem::path& path);

}  // namespace heddle::npy
