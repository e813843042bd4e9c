#include "base/check.h"
#include "exec/parameters.h"
#include "heddle/llm.h"
#include "io/mapped_file.h"
#include "llm/bundled.h"

namespace heddle::llm {

Model::Model(gguf::File file)
    : file_(std::move(file)),
      config_(read_config(file_)),
      tokenizer_(file_.metadata()),
      parameters_(make_ref<Parameters>()) {
  require(static_cast<std::int64_t>(tokenizer_.size()) <= config_.n_vocab, ErrorCode::io,
          "{}: the vocabulary has {} tokens, but tensor 'token_embd.weight' only {} rows",
          file_.name(), tokenizer_.size(), config_.n_vocab);
  file_.prefetch();
  parameters_->impl().release = release_mapped_pages;
  for (const gguf::Tensor& tensor : file_.tensors()) {
    parameters_->set_mapped(tensor.name, {tensor.dtype, tensor.shape}, tensor.data, file_.owner());
  }
}

std::shared_ptr<Model> Model::open(const std::filesystem::path& path) {
  constexpr std::string_view kRead[] = {"tokenizer.ggml.tokens", "tokenizer.ggml.merges",
                                        "tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
  std::shared_ptr<Model> model = from_file(gguf::File::open(path));
  model->file_ = model->file_.without(kRead);
  return model;
}

std::shared_ptr<Model> Model::from_file(gguf::File file) {
  return std::shared_ptr<Model>(new Model(std::move(file)));
}

std::shared_ptr<Model> Model::bundled() {
  return from_file(gguf::File::from_memory(bundled_model_bytes(), "the bundled model"));
}

std::uint64_t Model::weight_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const gguf::Tensor& tensor : file_.tensors()) bytes += tensor.data.size();
  return bytes;
}

std::int64_t Model::parameter_count() const noexcept {
  std::int64_t count = 0;
  for (const gguf::Tensor& tensor : file_.tensors()) count += elements(tensor.shape);
  return count;
}

}  // namespace heddle::llm
