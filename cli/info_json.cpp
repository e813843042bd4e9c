#include "cli/info_json.h"

#include <nlohmann/json.hpp>

#include "heddle/error.h"

namespace heddle::cli {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const gguf::Value& value) {
  return std::visit(
      [](const auto& v) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, gguf::Array>)
          return std::visit([](const auto& elements) { return Json(elements); }, v);
        else
          return v;
      },
      value);
}

Json to_json(const gguf::Tensor& tensor) {
  return {{"name", tensor.name},
          {"dtype", to_string(tensor.dtype)},
          {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
          {"bytes", tensor.data.size()}};
}

Json to_json(const llm::ModelConfig& c) {
  return {{"architecture", c.architecture},
          {"name", c.name},
          {"n_vocab", c.n_vocab},
          {"n_ctx_train", c.n_ctx_train},
          {"n_embd", c.n_embd},
          {"n_layer", c.n_layer},
          {"n_ff", c.n_ff},
          {"n_head", c.n_head},
          {"n_head_kv", c.n_head_kv},
          {"n_embd_head", c.n_embd_head},
          {"rms_eps", c.rms_eps},
          {"rope_style", to_string(c.rope.style)},
          {"rope_dims", c.rope.dims},
          {"rope_freq_base", c.rope.base},
          {"rope_scale", c.rope.scale},
          {"rope_has_factors", c.rope.has_factors},
          {"window", c.window},
          {"has_qkv_bias", c.has_qkv_bias},
          {"has_output_bias", c.has_output_bias},
          {"has_qk_norm", c.has_qk_norm},
          {"tied_output", c.tied_output}};
}

}  // namespace

std::string info_json(const gguf::File& file) {
  Json all{{"file", file.name()}, {"version", file.version()}, {"bytes", file.file_bytes()}};
  Json& metadata = all["metadata"] = Json::object();
  for (const auto& [key, value] : file.metadata().entries()) metadata[key] = to_json(value);
  Json& tensors = all["tensors"] = Json::array();
  for (const gguf::Tensor& tensor : file.tensors()) tensors.push_back(to_json(tensor));
  try {
    all["config"] = to_json(llm::read_config(file));
  } catch (const Error& error) {
    all["config"] = nullptr;
    all["config_error"] = error.what();
  }
  // Metadata may hold bytes that are not UTF-8, which JSON cannot.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace heddle::cli
