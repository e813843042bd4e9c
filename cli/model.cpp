#include "cli/model.h"

#include <algorithm>
#include <map>

#include "heddle/device.h"

namespace heddle::cli {

std::shared_ptr<llm::Model> open_model(const std::string& path) {
  return path.empty() ? llm::Model::bundled() : llm::Model::open(path);
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
