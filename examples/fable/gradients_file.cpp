#include "gradients_file.h"

#include <fmt/format.h>
#include <heddle/io.h>

namespace fable {

using namespace heddle;

void write_gradients(const std::string& file, const Model& model, const Array& tokens,
                     const Array& loss, const nn::NamedArrays& gradients) {
  ArrayMap arrays{{"tokens", tokens}, {"loss", loss}};
  for (const auto& [name, weight] : nn::parameters(model)) arrays.emplace(name, weight);
  for (const auto& [name, gradient] : gradients) arrays.emplace("gradient." + name, gradient);
  save_safetensors(file, arrays,
                   {{"layers", std::to_string(model.shape.n_layer)},
                    {"heads", std::to_string(model.shape.n_head)},
                    {"kv_heads", std::to_string(model.shape.n_head_kv)},
                    {"eps", fmt::format("{}", model.shape.rms_eps)},
                    {"rope_base", fmt::format("{}", model.shape.rope_base)}});
}

}  // namespace fable
