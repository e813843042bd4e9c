// Models as commands name them.
#pragma once

#include <memory>
#include <string>

#include "heddle/llm.h"

namespace heddle::cli {

/// The model at `path`, or the bundled one if that is empty.
std::shared_ptr<llm::Model> open_model(const std::string& path);
/// The same, without looking at more than the file's structure.
gguf::File open_file(const std::string& path);

/// The type that most of a model's bytes are.
DType main_dtype(const gguf::File& file);

}  // namespace heddle::cli
