// Arrays over parts of files that are mapped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "heddle/array.h"
#include "io/npy.h"

namespace heddle {

/// An array over `data`, which `owner` keeps and which `operand` spans exactly; a copy of it if it
/// is not aligned to the dtype.
Array file_array(std::span<const std::byte> data, const OperandSpec& operand,
                 std::shared_ptr<const void> owner);

/// The array of a .npy file, `bytes` in all, which `owner` keeps.
Array npy_array(std::span<const std::byte> bytes, const std::string& name,
                std::shared_ptr<const void> owner);

/// A copy of `bytes` in memory of heddle's own.
Ref<Buffer> copied(std::span<const std::byte> bytes);

/// `file`, with `extension` added if it has another.
std::filesystem::path with_extension(std::filesystem::path file, const std::string& extension);

/// What a .npy file holds of an array: its header and its bytes.
struct NpyContents {
  std::string header;
  View view;  // keeps the bytes
  std::span<const std::byte> data;
};
/// Evaluates. Throws invalid_argument for block types.
NpyContents npy_contents(const Array& array);

}  // namespace heddle
