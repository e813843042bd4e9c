// The tensors of a model file, made by a team and written in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "heddle/model_file.h"
#include "io/gguf_stream.h"

namespace heddle::llm {

/// Some elements of a tensor: whole blocks of any type.
struct Piece {
  std::size_t tensor;  // its place in the list
  std::int64_t begin, end;
};

/// Writes the bytes of a piece. Called from several threads at once.
using PieceMaker = std::function<void(const Piece& piece, std::byte* bytes)>;

void write_model(const std::filesystem::path& path, const gguf::Metadata& metadata,
                 const std::vector<gguf::TensorEntry>& tensors, const PieceMaker& make,
                 const ModelFileOptions& options);

}  // namespace heddle::llm
