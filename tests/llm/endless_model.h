// The bundled model without its control tokens, and for a million positions: it never ends, and has
// no beginning-of-sequence token.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "llm/altered_model.h"

namespace heddle::test {

inline bool is_role_key(const std::string& key) {
  return key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id");
}

/// The path of a temporary file that holds it; whoever asks removes it.
inline std::filesystem::path endless_model() {
  const gguf::File file = llm::Model::bundled()->file();
  auto texts = file.metadata().get_array<std::string>("tokenizer.ggml.tokens");
  auto types = file.metadata().get_array<std::int32_t>("tokenizer.ggml.token_type");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (types[i] == static_cast<std::int32_t>(TokenType::normal)) continue;
    texts[i] = "[[" + std::to_string(i) + "]]";
    types[i] = static_cast<std::int32_t>(TokenType::normal);
  }
  return altered_model("endless", [&](const std::string& key, gguf::Value& value) {
    if (key == "qwen2.context_length") value = std::uint32_t{1 << 20};
    if (key == "tokenizer.ggml.tokens") value = gguf::Array(texts);
    if (key == "tokenizer.ggml.token_type") value = gguf::Array(types);
    return !is_role_key(key);
  });
}

}  // namespace heddle::test
