#include "model_file.h"

#include <heddle/gguf.h>
#include <heddle/ops.h>

namespace fable {
namespace {

using namespace heddle;

constexpr std::uint32_t kMostlyF16 = 1;  // general.file_type, as llama.cpp counts

void describe(gguf::Metadata& metadata, const ModelShape& shape) {
  const auto set_count = [&](const char* key, int value) {
    metadata.set(std::string("qwen2.") + key, static_cast<std::uint32_t>(value));
  };
  metadata.set("general.architecture", std::string("qwen2"));
  metadata.set("general.name", std::string("fable-1m"));
  metadata.set("general.description",
               std::string("A one-million-parameter model of made-up animal fables, trained by "
                           "heddle from a grammar that wrote every sentence."));
  metadata.set("general.license", std::string("CC0-1.0"));
  metadata.set("general.file_type", kMostlyF16);
  set_count("context_length", shape.n_ctx);
  set_count("embedding_length", shape.n_embd);
  set_count("block_count", shape.n_layer);
  set_count("feed_forward_length", shape.n_ff);
  set_count("attention.head_count", shape.n_head);
  set_count("attention.head_count_kv", shape.n_head_kv);
  set_count("vocab_size", shape.n_vocab);
  metadata.set("qwen2.attention.layer_norm_rms_epsilon", shape.rms_eps);
  metadata.set("qwen2.rope.freq_base", shape.rope_base);
}

}  // namespace

void write_model(const std::filesystem::path& path, const Model& model, const Corpus& corpus) {
  gguf::Writer writer;
  describe(writer.metadata(), model.shape);
  for (const auto& [key, value] : corpus.metadata().entries()) writer.metadata().set(key, value);
  for (const auto& [name, array] : nn::parameters(model)) {
    const Array stored = array.ndim() == 2 ? astype(array, DType::f16) : array;
    writer.add_tensor(name, stored.dtype(), stored.shape(), stored.to_bytes());
  }
  writer.write(path);
}

}  // namespace fable
