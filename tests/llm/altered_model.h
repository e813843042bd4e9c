// The bundled model with other metadata.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "heddle/llm.h"

namespace heddle::test {

/// Writes it to a temporary file, whose path comes back; whoever asks removes it. `alter` is told
/// each key and value, may change the value, and says whether the pair stays.
inline std::filesystem::path altered_model(
    const std::string& name, const std::function<bool(const std::string&, gguf::Value&)>& alter) {
  const std::filesystem::path path =
      testing::TempDir() + "heddle-" + name + "-" + std::to_string(getpid()) + ".gguf";
  const gguf::File file = llm::Model::bundled()->file();
  gguf::Writer writer;
  for (auto [key, value] : file.metadata().entries()) {
    if (alter(key, value)) writer.metadata().set(key, std::move(value));
  }
  for (const gguf::Tensor& tensor : file.tensors())
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.data);
  writer.write(path);
  return path;
}

inline std::filesystem::path model_without_template() {
  return altered_model("no-template", [](const std::string& key, gguf::Value&) {
    return key != "tokenizer.chat_template";
  });
}

}  // namespace heddle::test
