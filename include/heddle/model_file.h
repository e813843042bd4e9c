// Making model files: with random weights in a real model's shape, or from another file with its
// weights in other types.
//
// Both stream: a few MiB of the model are in memory at a time. A file appears whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::llm {

struct WriteProgress {
  std::uint64_t done = 0, total = 0;  // bytes of tensors
  std::string_view tensor;            // the one in work
};

/// What both take.
struct ModelFileOptions {
  /// All matrices in the type's own format, none in a better one.
  bool pure = false;
  /// For output.weight, and for token_embd.weight, instead of what the type says. Where the
  /// embedding is the output too, `output_type` decides, as in llama.cpp.
  std::optional<DType> output_type, embedding_type;
  int threads = 0;  // 0: HEDDLE_THREADS, or all processors this process may use
  /// Called now and then, on the calling thread or one of the team's; false stops the work, which
  /// then throws Error(cancelled).
  std::function<bool(const WriteProgress&)> progress;
};

/// What a file's weights can be said to be, under llama.cpp's names, best first: "f32" ... "q4_K_M"
/// ... "q2_K". A mix gives some tensors a better format than others.
std::vector<std::string_view> file_type_names();

/// What became of a model's tensors.
struct ModelFileSummary {
  std::uint64_t bytes_before = 0, bytes_after = 0;      // of tensors; before: 0 if synthetic
  std::vector<std::pair<DType, std::int64_t>> tensors;  // how many are of each type
  /// Tensors whose rows are not made of whole blocks of the type they were to have, and took
  /// another: name, wanted, given.
  struct Fallback {
    std::string tensor;
    DType wanted, given;
  };
  std::vector<Fallback> fallbacks;
  /// How many tensors were quantised before, and so lost precision twice.
  std::int64_t requantized = 0;
};

/// The shapes that synthesize_model knows: "qwen2.5-0.5b" ...
std::vector<std::string_view> model_shape_names();

/// Writes a model of that shape with random weights: activations of about unit size in every layer,
/// finite logits. The same seed gives the same weights in every type, as far as the type holds
/// them, and the same bytes on any number of threads. Throws invalid_argument naming the shapes or
/// types there are; io.
ModelFileSummary synthesize_model(std::string_view shape, std::string_view file_type,
                                  const std::filesystem::path& path, std::uint64_t seed,
                                  const ModelFileOptions& options = {});

/// Writes the model at `from` to `to` with its matrices as `file_type` says. Norms, biases and
/// other tensors of one dimension become f32 or stay as they are; metadata is kept but for
/// general.file_type and general.quantization_version. The parts of a split model become one file.
/// Throws invalid_argument where `from` and `to` are one file, and where a weight is not finite or
/// beyond what the type can hold, naming the tensor; io.
ModelFileSummary quantize_model(const std::filesystem::path& from, const std::filesystem::path& to,
                                std::string_view file_type, const ModelFileOptions& options = {});

}  // namespace heddle::llm
