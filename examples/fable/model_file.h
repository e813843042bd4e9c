// A trained model as a GGUF file that heddle, and others who know qwen2, can run.
#pragma once

#include <filesystem>

#include "corpus.h"
#include "model.h"

namespace fable {

/// Matrices as f16, the rest as f32. The file appears whole or not at all.
void write_model(const std::filesystem::path& path, const Model& model, const Corpus& corpus);

}  // namespace fable
