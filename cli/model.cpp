#include "cli/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/output.h"
#include "exec/parameters.h"
#include "heddle/device.h"

namespace heddle::cli {

std::shared_ptr<llm::Model> open_model(const std::string& path) {
  return path.empty() ? llm::Model::bundled() : llm::Model::open(path);
}

void show_packing(const llm::Model& model, Progress& progress) {
  model.parameters()->impl().set_progress([&progress](const LoadProgress& at) {
    if (at.done == at.total) return progress.clear();
    progress.show(
        fmt::format("packing the weights: {} of {}", bytes_text(at.done), bytes_text(at.total)));
  });
}

llm::ContextOptions context_options(const ModelArguments& arguments) {
  llm::ContextOptions options = arguments.context;
  for (const std::string& name : arguments.devices) options.devices.push_back(&find_device(name));
  return options;
}

gguf::File open_file(const std::string& path) {
  return path.empty() ? llm::Model::bundled()->file() : gguf::File::open(path);
}

DType main_dtype(const gguf::File& file) {
  std::map<DType, std::size_t> bytes;
  for (const gguf::Tensor& tensor : file.tensors()) bytes[tensor.dtype] += tensor.data.size();
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? DType::f32 : most->first;
}

}  // namespace heddle::cli
