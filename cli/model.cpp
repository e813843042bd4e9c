#include "cli/model.h"

#include <algorithm>
#include <map>

namespace heddle::cli {

std::shared_ptr<llm::Model> open_model(const std::string& path) {
  return path.empty() ? llm::Model::bundled() : llm::Model::open(path);
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
