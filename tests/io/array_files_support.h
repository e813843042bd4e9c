// Arrays whose values are known, and files for tests.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "heddle/io.h"
#include "heddle/ops.h"

namespace heddle::test {

/// A folder that goes with the object; in memory, where the system has that, as each file that is
/// saved waits for the disk.
struct Folder {
  std::filesystem::path path;
  explicit Folder(const std::string& name)
      : path((std::filesystem::exists("/dev/shm") ? std::filesystem::path("/dev/shm")
                                                  : std::filesystem::temp_directory_path()) /
             ("heddle-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

/// Element i is (7 i + 3) % 100, as array_files_oracle.py has it.
inline Array known_array(DType dtype, const Shape& shape) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < elements(shape); ++i) {
    const auto number = static_cast<float>((7 * i + 3) % 100);
    if (dtype == DType::bool_) {
      numbers.push_back(static_cast<float>((7 * i + 3) % 100 % 2));
    } else {
      numbers.push_back(number);
      if (dtype == DType::complex64) numbers.push_back(-number);
    }
  }
  if (dtype == DType::complex64) {
    return Array::from_bytes({dtype, shape}, std::as_bytes(std::span(numbers)));
  }
  return astype(Array(numbers, shape), dtype);
}

inline std::vector<DType> plain_types() {
  std::vector<DType> types;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (!is_block(static_cast<DType>(i))) types.push_back(static_cast<DType>(i));
  }
  return types;
}

struct NamedShape {
  const char* name;
  Shape shape;
};
inline std::vector<NamedShape> named_shapes() {
  return {{"scalar", {}}, {"empty", {0, 3}}, {"row", {5}}, {"matrix", {3, 4}}, {"cube", {2, 3, 4}}};
}

/// By the oracle's names: "f16_row".
inline ArrayMap known_arrays(const std::vector<DType>& types) {
  ArrayMap arrays;
  for (const DType dtype : types) {
    for (const auto& [name, shape] : named_shapes()) {
      arrays.emplace(std::string(to_string(dtype)) + "_" + name, known_array(dtype, shape));
    }
  }
  return arrays;
}

inline void put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace heddle::test
