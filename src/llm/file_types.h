// What a model's file type (q4_K_M and so on) makes of each tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "heddle/model_file.h"
#include "io/gguf_stream.h"

namespace heddle::llm {

enum class Mix : std::uint8_t {
  plain,   // the same for all matrices but the output
  small,   // _S
  medium,  // _M
  large,   // _L
};

/// A file type, with the number that general.file_type gives it.
struct FileType {
  std::string_view name;
  std::uint32_t id;
  DType base;
  Mix mix = Mix::plain;
};

/// Upper and lower case do not matter. Throws invalid_argument naming those there are.
const FileType& find_file_type(std::string_view name);

/// general.quantization_version of the block formats as they are now.
inline constexpr std::uint32_t kQuantizationVersion = 2;

/// What of the whole model the rules look at.
struct ModelFacts {
  std::int64_t heads_per_kv_head = 1;
};

/// The types of `tensors`, whose own `dtype` is what they are now, in place; tensors that do not
/// take part keep theirs, but for floats of one dimension, which become f32.
std::vector<ModelFileSummary::Fallback> choose_types(const FileType& type, const ModelFacts& facts,
                                                     const ModelFileOptions& options,
                                                     std::vector<gguf::TensorEntry>& tensors);

/// Fills in `bytes_after` and `tensors`.
void count_tensors(const std::vector<gguf::TensorEntry>& tensors, ModelFileSummary& summary);

}  // namespace heddle::llm
