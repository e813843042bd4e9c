// The bundled model without its control tokens, and for a million positions: it never ends, and has
// no beginning-of-sequence token.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "heddle/llm.h"

namespace heddle::test {

inline bool is_role_key(const std::string& key) {
  return key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id");
}

/// The path of a temporary file that holds it; whoever asks removes it.
inline std::filesystem::path endless_model() {
  const std::filesystem::path path =
      testing::TempDir() + "heddle-endless-" + std::to_string(getpid()) + ".gguf";
  const gguf::File file = llm::Model::bundled()->file();
  const gguf::Metadata& from = file.metadata();
  gguf::Writer writer;
  for (const auto& [key, value] : from.entries()) {
    if (!is_role_key(key)) writer.metadata().set(key, value);
  }
  writer.metadata().set("qwen2.context_length", std::uint32_t{1 << 20});
  auto texts = from.get_array<std::string>("tokenizer.ggml.tokens");
  auto types = from.get_array<std::int32_t>("tokenizer.ggml.token_type");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (types[i] == static_cast<std::int32_t>(TokenType::normal)) continue;
    texts[i] = "[[" + std::to_string(i) + "]]";
    types[i] = static_cast<std::int32_t>(TokenType::normal);
  }
  writer.metadata().set("tokenizer.ggml.tokens", gguf::Array(texts));
  writer.metadata().set("tokenizer.ggml.token_type", gguf::Array(types));
  for (const gguf::Tensor& tensor : file.tensors()) {
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.data);
  }
  writer.write(path);
  return path;
}

}  // namespace heddle::test
