// Arrays in files: .npy and .npz (NumPy's), .safetensors and .gguf. Names, arguments and defaults
// follow MLX's C++ API; savez and savez_compressed its Python's.
//
// Files are mapped: an array reads its pages as they are needed, whatever the size of the file, and
// keeps the mapping. So a file must not be written while an array over it lives; saving over it is
// fine, as saving makes a new file and then puts it in the old one's place, whole or not at all.
// What cannot be used where it lies is copied: deflated and big-endian data, and data that is not
// aligned to its dtype. Files are hostile until checked: every error is ErrorCode::io, naming the
// file and what is wrong with it. What a format cannot hold is refused with invalid_argument before
// anything is written. Saving evaluates. Any thread may call any of these.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/array.h"

namespace heddle {

using ArrayMap = std::unordered_map<std::string, Array>;

/// One array as .npy. bf16 is stored as two raw bytes ("<V2"), as MLX and ml_dtypes do. What is
/// column-major in memory is stored, and read again, as it is. ".npy" is added to names without it.
void save(const std::filesystem::path& file, const Array& array);
Array load(const std::filesystem::path& file);

/// Arrays by name, each as .npy in a ZIP archive: as they are, so that they can be mapped, or
/// deflated. ".npz" is added to names without it.
void savez(const std::filesystem::path& file, const ArrayMap& arrays);
void savez_compressed(const std::filesystem::path& file, const ArrayMap& arrays);
/// Members that are no .npy files are left out. Checksums are verified where data is inflated; what
/// is mapped is not read for that.
ArrayMap load_npz(const std::filesystem::path& file);

/// Arrays by name, and texts by name. f8_e4m3 is read as u8, for from_fp8. ".safetensors" is added
/// to names without it.
using SafetensorsLoad = std::pair<ArrayMap, std::unordered_map<std::string, std::string>>;
SafetensorsLoad load_safetensors(const std::filesystem::path& file);
void save_safetensors(const std::filesystem::path& file, const ArrayMap& arrays,
                      const std::unordered_map<std::string, std::string>& metadata = {});

/// A number or numbers (u8 ... f64, bool) as an array of no or one dimension, or text.
using GGUFMetaData = std::variant<std::monostate, Array, std::string, std::vector<std::string>>;
using GGUFLoad = std::pair<ArrayMap, std::unordered_map<std::string, GGUFMetaData>>;
/// Tensors keep their types: unlike MLX's, block-quantised ones are arrays of block types. A model
/// in several files is opened by its first. ".gguf" is added to names without it in saving. See
/// heddle/gguf.h for metadata in file order, with its exact types.
GGUFLoad load_gguf(const std::filesystem::path& file);
void save_gguf(const std::filesystem::path& file, const ArrayMap& arrays,
               const std::unordered_map<std::string, GGUFMetaData>& metadata = {});

}  // namespace heddle
