// The rules are llama.cpp's, so that a file called q4_K_M is what its users expect of one.
// Sources: https://github.com/ggml-org/llama.cpp/blob/master/src/llama-quant.cpp (the rules),
// include/llama.h (enum llama_ftype).
#include "llm/file_types.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <string>

#include "base/check.h"

namespace heddle::llm {

namespace {

constexpr std::array kFileTypes{
    FileType{"f32", 0, DType::f32},
    FileType{"bf16", 32, DType::bf16},
    FileType{"f16", 1, DType::f16},
    FileType{"q8_0", 7, DType::q8_0},
    FileType{"q6_K", 18, DType::q6_K},
    FileType{"q5_1", 9, DType::q5_1},
    FileType{"q5_0", 8, DType::q5_0},
    FileType{"q5_K_M", 17, DType::q5_K, Mix::medium},
    FileType{"q5_K_S", 16, DType::q5_K, Mix::small},
    FileType{"q4_1", 3, DType::q4_1},
    FileType{"q4_0", 2, DType::q4_0},
    FileType{"q4_K_M", 15, DType::q4_K, Mix::medium},
    FileType{"q4_K_S", 14, DType::q4_K, Mix::small},
    FileType{"iq4_nl", 25, DType::iq4_nl},
    FileType{"iq4_xs", 30, DType::iq4_xs},
    FileType{"q3_K_L", 13, DType::q3_K, Mix::large},
    FileType{"q3_K_M", 12, DType::q3_K, Mix::medium},
    FileType{"q3_K_S", 11, DType::q3_K, Mix::small},
    FileType{"q2_K", 10, DType::q2_K},
};

bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// The layer that "blk.7.attn_v.weight" is of; -1 for a tensor of none.
std::int64_t layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return -1;
  std::int64_t layer = -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  return layer;
}

/// Which matrix of its layer a tensor is: "attn_v"; the name itself outside of layers, without
/// ".weight".
std::string_view part_of(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  if (layer_of(name) >= 0) name = name.substr(name.find('.', 4) + 1);
  return name;
}

/// The first and the last eighth of the layers, and every third between.
bool is_sensitive(std::int64_t layer, std::int64_t layers) {
  const std::int64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

struct Place {
  std::int64_t layer, layers;
};

/// Of q4_K_M and q5_K_M, for what errors hurt most.
DType medium_mix_type(const FileType& type, Place place) {
  const bool more = type.mix == Mix::medium && is_sensitive(place.layer, place.layers);
  return more ? DType::q6_K : type.base;
}

DType attention_values_type(const FileType& type, const ModelFacts& facts, Place place) {
  const bool shared_widely = facts.heads_per_kv_head >= 4;  // a small tensor that matters much
  switch (type.base) {
    case DType::q2_K:
      return shared_widely ? DType::q4_K : DType::q3_K;
    case DType::q3_K:
      if (type.mix == Mix::large) return DType::q5_K;
      if (type.mix == Mix::medium) return place.layer < 2 ? DType::q5_K : DType::q4_K;
      return type.base;
    case DType::iq4_nl:
    case DType::iq4_xs:
      return shared_widely ? DType::q5_K : type.base;
    case DType::q4_K:
      if (type.mix == Mix::small) return place.layer < 4 ? DType::q5_K : type.base;
      [[fallthrough]];
    case DType::q5_K:
      return medium_mix_type(type, place);
    default:
      return type.base;
  }
}

DType feed_forward_down_type(const FileType& type, Place place) {
  const bool early = place.layer < place.layers / 8;
  switch (type.base) {
    case DType::q2_K:
      return DType::q3_K;
    case DType::q3_K:
      if (type.mix == Mix::large) return DType::q5_K;
      if (type.mix == Mix::medium)
        return place.layer < place.layers / 16 ? DType::q5_K : DType::q4_K;
      return type.base;
    case DType::iq4_nl:
    case DType::iq4_xs:
      return early ? DType::q5_K : type.base;
    case DType::q4_K:
      if (type.mix == Mix::small) return early ? DType::q5_K : type.base;
      [[fallthrough]];
    case DType::q5_K:
      return medium_mix_type(type, place);
    default:
      return type.base;
  }
}

DType attention_output_type(const FileType& type) {
  if (type.base == DType::q2_K) return DType::q3_K;
  if (type.base == DType::q3_K && type.mix == Mix::medium) return DType::q4_K;
  if (type.base == DType::q3_K && type.mix == Mix::large) return DType::q5_K;
  return type.base;
}

DType fused_attention_type(const FileType& type) {
  if (type.base == DType::q3_K && type.mix != Mix::small) return DType::q4_K;
  if (type.base == DType::q4_K && type.mix == Mix::medium) return DType::q5_K;
  if (type.base == DType::q5_K && type.mix == Mix::medium) return DType::q6_K;
  return type.base;
}

/// The product that makes logits, which errors reach unsoftened.
DType output_type(DType base, std::int64_t row) {
  const bool whole = row % info(base).block_elements == 0;
  return base == DType::q8_0 || !whole ? DType::q8_0 : DType::q6_K;
}

class Chooser {
 public:
  Chooser(const FileType& type, const ModelFacts& facts, const ModelFileOptions& options,
          const std::vector<gguf::TensorEntry>& tensors)
      : type_(type), facts_(facts), options_(options) {
    for (const gguf::TensorEntry& tensor : tensors) {
      const std::string_view part = part_of(tensor.name);
      has_output_ |= tensor.name == "output.weight";
      values_ += part == "attn_v";
      downs_ += part == "ffn_down";
    }
  }

  DType wanted(const gguf::TensorEntry& tensor) const {
    const bool embedding = tensor.name == "token_embd.weight";
    const bool output = tensor.name == (has_output_ ? "output.weight" : "token_embd.weight");
    if (output && options_.output_type) return *options_.output_type;
    if (embedding && options_.embedding_type) return *options_.embedding_type;
    if (options_.pure || !is_block(type_.base)) return type_.base;
    if (output) return output_type(type_.base, tensor.shape.back());
    const std::string_view part = part_of(tensor.name);
    const std::int64_t layer = layer_of(tensor.name);
    if (part == "attn_v") return attention_values_type(type_, facts_, {layer, values_});
    if (part == "ffn_down") return feed_forward_down_type(type_, {layer, downs_});
    if (part == "attn_output") return attention_output_type(type_);
    if (part == "attn_qkv") return fused_attention_type(type_);
    return type_.base;
  }

 private:
  const FileType& type_;
  const ModelFacts& facts_;
  const ModelFileOptions& options_;
  bool has_output_ = false;
  std::int64_t values_ = 0, downs_ = 0;
};

/// What stands in for a type whose blocks do not divide the row: blocks of 32, then none.
DType fitting(DType wanted, std::int64_t row) {
  const auto fits = [row](DType dtype) { return row % info(dtype).block_elements == 0; };
  if (fits(wanted)) return wanted;
  DType smaller = DType::f16;
  switch (wanted) {
    case DType::q2_K:
    case DType::q3_K:
    case DType::iq4_xs:
      smaller = DType::iq4_nl;
      break;
    case DType::q4_K:
      smaller = DType::q5_0;
      break;
    case DType::q5_K:
      smaller = DType::q5_1;
      break;
    case DType::q6_K:
      smaller = DType::q8_0;
      break;
    default:
      break;
  }
  return fits(smaller) ? smaller : DType::f16;
}

/// Matrices by which activations are multiplied, and the embedding.
bool is_weight_matrix(const gguf::TensorEntry& tensor) {
  const std::string_view name = tensor.name;
  return tensor.shape.size() >= 2 && name.ends_with("weight") &&
         name.find("_norm.weight") == std::string_view::npos &&
         name.find("ffn_gate_inp.weight") == std::string_view::npos;  // chooses experts
}

bool is_quantizable(DType dtype) {
  return is_block(dtype) || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace

std::vector<std::string_view> file_type_names() {
  std::vector<std::string_view> names;
  for (const FileType& type : kFileTypes) names.push_back(type.name);
  return names;
}

const FileType& find_file_type(std::string_view name) {
  const auto found = std::ranges::find_if(
      kFileTypes, [&](const FileType& type) { return same_but_for_case(type.name, name); });
  if (found != kFileTypes.end()) return *found;
  std::string all;
  for (const FileType& type : kFileTypes)
    all += fmt::format("{}{}", all.empty() ? "" : ", ", type.name);
  fail(ErrorCode::invalid_argument, "there is no file type '{}'; there are {}", name, all);
}

std::vector<ModelFileSummary::Fallback> choose_types(const FileType& type, const ModelFacts& facts,
                                                     const ModelFileOptions& options,
                                                     std::vector<gguf::TensorEntry>& tensors) {
  for (const std::optional<DType> asked : {options.output_type, options.embedding_type}) {
    require(!asked || is_quantizable(*asked), ErrorCode::invalid_argument,
            "{} is no type that weights can have", asked ? to_string(*asked) : "");
  }
  const Chooser chooser(type, facts, options, tensors);
  std::vector<ModelFileSummary::Fallback> fallbacks;
  for (gguf::TensorEntry& tensor : tensors) {
    if (!is_quantizable(tensor.dtype)) continue;
    if (!is_weight_matrix(tensor)) {
      if (tensor.shape.size() <= 1) tensor.dtype = DType::f32;
      continue;
    }
    const DType wanted = chooser.wanted(tensor);
    tensor.dtype = fitting(wanted, tensor.shape.back());
    if (tensor.dtype != wanted) fallbacks.push_back({tensor.name, wanted, tensor.dtype});
  }
  return fallbacks;
}

void count_tensors(const std::vector<gguf::TensorEntry>& tensors, ModelFileSummary& summary) {
  std::map<DType, std::int64_t> counts;
  for (const gguf::TensorEntry& tensor : tensors) {
    ++counts[tensor.dtype];
    summary.bytes_after += gguf::checked_bytes(tensor);
  }
  summary.tensors.assign(counts.begin(), counts.end());
}

}  // namespace heddle::llm
