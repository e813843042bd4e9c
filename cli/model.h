// Models as commands name them.
#pragma once

#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/progress.h"
#include "heddle/llm.h"

namespace heddle::cli {

/// The model at `path`, or the bundled one if that is empty.
std::shared_ptr<llm::Model> open_model(const std::string& path);
/// Shows, until the model goes, how far its weights are packed when they first are.
void show_packing(const llm::Model& model, Progress& progress);
/// The context's options, with the devices that were named. Throws invalid_argument listing the
/// devices there are.
llm::ContextOptions context_options(const ModelArguments& arguments);
/// The file at `path`, or that of the bundled model, without looking at more than the file's
/// structure.
gguf::File open_file(const std::string& path);

/// The type that most of a model's bytes are.
DType main_dtype(const gguf::File& file);

}  // namespace heddle::cli
