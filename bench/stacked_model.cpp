#include "stacked_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "heddle/gguf.h"

namespace heddle {

std::shared_ptr<llm::Model> stacked_model(std::uint32_t layers) {
  const gguf::File file = llm::Model::bundled()->file();
  gguf::Writer writer;
  for (const auto& [key, value] : file.metadata().entries()) writer.metadata().set(key, value);
  writer.metadata().set("qwen2.block_count", layers);
  for (const gguf::Tensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (!name.starts_with("blk.")) {
      writer.add_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.data);
    }
    if (!name.starts_with("blk.0.")) continue;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      writer.add_tensor(fmt::format("blk.{}.{}", layer, name.substr(6)), tensor.dtype, tensor.shape,
                        tensor.data);
    }
  }
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     fmt::format("heddle-{}-layers-{}.gguf", layers, ::getpid());
  writer.write(path);
  std::shared_ptr<llm::Model> model = llm::Model::open(path);
  std::filesystem::remove(path);  // it stays mapped
  return model;
}

}  // namespace heddle
