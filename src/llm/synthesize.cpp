// Models with random weights in the shapes of released ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "heddle/llm.h"
#include "heddle/model_file.h"
#include "llm/file_types.h"
#include "llm/synthetic_vocabulary.h"
#include "llm/tensors.h"
#include "llm/write_tensors.h"
#include "tensor/quantize.h"

namespace heddle::llm {

namespace {

struct ModelShape {
  std::string_view name;
  const char* architecture;
  std::int64_t n_vocab, n_ctx, n_embd, n_layer, n_ff, n_head, n_head_kv, n_embd_head;
  float rms_eps, rope_base;
  float context_factor;  // llama-3's scaling of rope; 0: none
  bool tied_output;
};

// From each model's config.json on huggingface.co: Qwen/Qwen2.5-*-Instruct, Qwen/Qwen3-0.6B,
// meta-llama/Llama-3.*-Instruct.
constexpr std::array kShapes{
    ModelShape{"qwen2.5-0.5b", "qwen2", 151'936, 32'768, 896, 24, 4'864, 14, 2, 64, 1e-6f, 1e6f, 0,
               true},
    ModelShape{"qwen2.5-1.5b", "qwen2", 151'936, 32'768, 1'536, 28, 8'960, 12, 2, 128, 1e-6f, 1e6f,
               0, true},
    ModelShape{"qwen3-0.6b", "qwen3", 151'936, 40'960, 1'024, 28, 3'072, 16, 8, 128, 1e-6f, 1e6f, 0,
               true},
    ModelShape{"llama-3.2-1b", "llama", 128'256, 131'072, 2'048, 16, 8'192, 32, 8, 64, 1e-5f, 5e5f,
               32, true},
    ModelShape{"llama-3.1-8b", "llama", 128'256, 131'072, 4'096, 32, 14'336, 32, 8, 128, 1e-5f,
               5e5f, 8, false},
    // Of no released model: all that heddle can do to one, in a second.
    ModelShape{"tiny", "qwen2", 1'024, 2'048, 256, 2, 512, 4, 2, 64, 1e-6f, 1e4f, 0, true},
};

const ModelShape& find_shape(std::string_view name) {
  const auto found = std::ranges::find(kShapes, name, &ModelShape::name);
  if (found != kShapes.end()) return *found;
  std::string all;
  for (const ModelShape& shape : kShapes) {
    all += fmt::format("{}{}", all.empty() ? "" : ", ", shape.name);
  }
  fail(ErrorCode::invalid_argument, "there is no model shape '{}'; there are {}", name, all);
}

ModelConfig config_of(const ModelShape& shape) {
  ModelConfig config;
  config.architecture = shape.architecture;
  config.n_vocab = shape.n_vocab;
  config.n_ctx_train = shape.n_ctx;
  config.n_embd = shape.n_embd;
  config.n_layer = shape.n_layer;
  config.n_ff = shape.n_ff;
  config.n_head = shape.n_head;
  config.n_head_kv = shape.n_head_kv;
  config.n_embd_head = shape.n_embd_head;
  config.rope.dims = shape.n_embd_head;
  config.rope.has_factors = shape.context_factor > 0;
  config.has_qkv_bias = config.architecture == "qwen2";
  config.has_qk_norm = config.architecture == "qwen3";
  config.tied_output = shape.tied_output;
  return config;
}

gguf::Metadata metadata_of(const ModelShape& shape, const FileType& type, std::uint64_t seed) {
  gguf::Metadata metadata;
  const std::string architecture = shape.architecture;
  metadata.set("general.architecture", architecture);
  metadata.set("general.type", "model");
  metadata.set("general.name", fmt::format("synthetic {}", shape.name));
  metadata.set("general.description",
               fmt::format("Random weights in the shape of {}, seed {}: for measuring, not for use",
                           shape.name, seed));
  metadata.set("general.file_type", type.id);
  metadata.set("general.quantization_version", kQuantizationVersion);
  const auto set = [&](const char* key, std::int64_t value) {
    metadata.set(architecture + "." + key, static_cast<std::uint32_t>(value));
  };
  set("vocab_size", shape.n_vocab);
  set("context_length", shape.n_ctx);
  set("embedding_length", shape.n_embd);
  set("block_count", shape.n_layer);
  set("feed_forward_length", shape.n_ff);
  set("attention.head_count", shape.n_head);
  set("attention.head_count_kv", shape.n_head_kv);
  set("attention.key_length", shape.n_embd_head);
  set("attention.value_length", shape.n_embd_head);
  set("rope.dimension_count", shape.n_embd_head);
  metadata.set(architecture + ".attention.layer_norm_rms_epsilon", shape.rms_eps);
  metadata.set(architecture + ".rope.freq_base", shape.rope_base);
  set_vocabulary(metadata,
                 architecture == "llama" ? VocabularyFamily::llama3 : VocabularyFamily::qwen2,
                 shape.n_vocab);
  return metadata;
}

/// What llama-3's rope divides frequencies by: nothing for short waves, all of `factor` for those
/// longer than the context that the model was first trained for, and a ramp between.
/// Source: transformers' modeling_rope_utils.py, _compute_llama3_parameters.
std::vector<float> rope_factors(const ModelShape& shape) {
  constexpr double kFirstContext = 8192, kLowFrequency = 1, kHighFrequency = 4;
  std::vector<float> factors;
  for (std::int64_t i = 0; i < shape.n_embd_head / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(shape.n_embd_head);
    const double wave = 2 * std::numbers::pi * std::pow(double{shape.rope_base}, exponent);
    const double ramp = (kFirstContext / wave - kLowFrequency) / (kHighFrequency - kLowFrequency);
    const double unscaled = std::clamp(ramp, 0.0, 1.0);
    factors.push_back(
        static_cast<float>(1 / ((1 - unscaled) / double{shape.context_factor} + unscaled)));
  }
  return factors;
}

/// A bijection of 64-bit numbers that looks like chance (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", the variant called SplitMix64).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

std::uint64_t stream_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t state = mixed(seed);
  for (const char c : name) state = mixed(state ^ static_cast<unsigned char>(c));
  return state;
}

/// Nearly normal, of mean 0 and deviation 1: the sum of eight random bytes. Integers alone, so the
/// same everywhere.
float nearly_normal(std::uint64_t stream, std::int64_t i) {
  constexpr std::uint64_t kOddBytes = 0x00FF00FF00FF00FFu, kOnes = 0x0001000100010001u;
  constexpr float kMean = 8 * 255 / 2;
  constexpr float kDeviation = 209.02153f;  // sqrt(8 (256^2 - 1) / 12)
  const std::uint64_t bits = mixed(stream + static_cast<std::uint64_t>(i));
  const std::uint64_t pairs = (bits & kOddBytes) + (bits >> 8 & kOddBytes);
  const auto sum = static_cast<float>(pairs * kOnes >> 48);
  return (sum - kMean) * (1 / kDeviation);
}

struct Distribution {
  float mean, deviation;
};

/// Matrices keep the size of what they multiply; those that add to the residual stream let it grow
/// to about unit size over all layers. Logits get a deviation of 2: some tokens are likelier than
/// others, and none by far.
Distribution distribution_of(std::string_view name, const Shape& shape, std::int64_t layers) {
  if (name.find("norm") != std::string_view::npos) return {1, 0.1f};
  if (shape.size() == 1) return {0, 0.1f};  // biases
  const float unit = 1 / std::sqrt(static_cast<float>(shape.back()));
  if (name == "token_embd.weight" || name == "output.weight") return {0, 2 * unit};
  const bool adds = name.ends_with("attn_output.weight") || name.ends_with("ffn_down.weight");
  return {0, adds ? unit / std::sqrt(2 * static_cast<float>(layers)) : unit};
}

/// The weights of a model, any of them at any time.
class RandomWeights {
 public:
  RandomWeights(const ModelShape& shape, const std::vector<gguf::TensorEntry>& tensors,
                std::uint64_t seed)
      : tensors_(tensors), rope_factors_(rope_factors(shape)) {
    for (const gguf::TensorEntry& tensor : tensors) {
      sources_.push_back({stream_of(seed, tensor.name),
                          distribution_of(tensor.name, tensor.shape, shape.n_layer)});
    }
  }

  void make(const Piece& piece, std::byte* bytes) const {
    const gguf::TensorEntry& tensor = tensors_[piece.tensor];
    std::vector<float> values(static_cast<std::size_t>(piece.end - piece.begin));
    if (tensor.name == "rope_freqs.weight") {
      std::copy_n(rope_factors_.begin() + piece.begin, values.size(), values.begin());
    } else {
      const Source& source = sources_[piece.tensor];
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float normal =
            nearly_normal(source.stream, piece.begin + static_cast<std::int64_t>(i));
        values[i] = source.distribution.mean + source.distribution.deviation * normal;
      }
    }
    quantize_row(tensor.dtype, values.data(), bytes, std::ssize(values));
  }

 private:
  struct Source {
    std::uint64_t stream;
    Distribution distribution;
  };
  const std::vector<gguf::TensorEntry>& tensors_;
  std::vector<Source> sources_;
  std::vector<float> rope_factors_;
};

}  // namespace

std::vector<std::string_view> model_shape_names() {
  std::vector<std::string_view> names;
  for (const ModelShape& shape : kShapes) names.push_back(shape.name);
  return names;
}

ModelFileSummary synthesize_model(std::string_view shape_name, std::string_view file_type,
                                  const std::filesystem::path& path, std::uint64_t seed,
                                  const ModelFileOptions& options) {
  const ModelShape& shape = find_shape(shape_name);
  const FileType& type = find_file_type(file_type);
  std::vector<gguf::TensorEntry> tensors;
  for (const ExpectedTensor& tensor : expected_tensors(config_of(shape))) {
    tensors.push_back({tensor.name, DType::f32, tensor.shape});
  }
  ModelFileSummary summary;
  summary.fallbacks =
      choose_types(type, {.heads_per_kv_head = shape.n_head / shape.n_head_kv}, options, tensors);
  const RandomWeights weights(shape, tensors, seed);
  write_model(
      path, metadata_of(shape, type, seed), tensors,
      [&](const Piece& piece, std::byte* bytes) { weights.make(piece, bytes); }, options);
  count_tensors(tensors, summary);
  return summary;
}

}  // namespace heddle::llm
