// Which tensor gets which type: against what llama.cpp's files of the same name are known to hold.
#include "llm/file_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "heddle/error.h"

namespace heddle::llm {
namespace {

using Layers = std::set<int>;

struct Sizes {
  std::int64_t layers, embedding, feed_forward;
  bool tied;
};

std::vector<gguf::TensorEntry> model_of(const Sizes& s) {
  std::vector<gguf::TensorEntry> tensors{{"token_embd.weight", DType::f32, {1024, s.embedding}},
                                         {"output_norm.weight", DType::f32, {s.embedding}}};
  if (!s.tied) tensors.push_back({"output.weight", DType::f32, {1024, s.embedding}});
  for (int layer = 0; layer < s.layers; ++layer) {
    const auto add = [&](const std::string& name, const Shape& shape) {
      tensors.push_back({"blk." + std::to_string(layer) + "." + name, DType::f32, shape});
    };
    add("attn_norm.weight", {s.embedding});
    for (const char* name :
         {"attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight"}) {
      add(name, {s.embedding, s.embedding});
    }
    add("attn_q.bias", {s.embedding});
    add("ffn_gate.weight", {s.feed_forward, s.embedding});
    add("ffn_up.weight", {s.feed_forward, s.embedding});
    add("ffn_down.weight", {s.embedding, s.feed_forward});
  }
  return tensors;
}

constexpr Sizes kLlama8B{32, 4096, 14336, false};
constexpr Sizes kQwenHalfB{24, 896, 4864, true};

struct Chosen {
  std::map<std::string, DType> types;
  std::vector<ModelFileSummary::Fallback> fallbacks;

  DType of(const std::string& name) const { return types.at(name); }
  /// The layers whose tensor of this name is of that type.
  Layers layers(const std::string& part, DType dtype) const {
    Layers found;
    for (int layer = 0; types.contains(name(layer, part)); ++layer) {
      if (of(name(layer, part)) == dtype) found.insert(layer);
    }
    return found;
  }
  std::map<DType, int> counts() const {
    std::map<DType, int> all;
    for (const auto& [tensor, dtype] : types) ++all[dtype];
    return all;
  }
  static std::string name(int layer, const std::string& part) {
    return "blk." + std::to_string(layer) + "." + part + ".weight";
  }
};

Chosen choose(const char* type, const Sizes& sizes, std::int64_t heads_per_kv_head = 4,
              const ModelFileOptions& options = {}) {
  std::vector<gguf::TensorEntry> tensors = model_of(sizes);
  Chosen chosen;
  chosen.fallbacks = choose_types(find_file_type(type), {heads_per_kv_head}, options, tensors);
  for (const gguf::TensorEntry& tensor : tensors) chosen.types[tensor.name] = tensor.dtype;
  return chosen;
}

Layers all_layers() {
  Layers all;
  for (int i = 0; i < 32; ++i) all.insert(i);
  return all;
}

const Layers kSensitive{0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31};

// As `gguf-dump` shows Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf.
TEST(FileTypes, Q4KMGivesSensitiveLayersMore) {
  const Chosen chosen = choose("q4_K_M", kLlama8B);
  EXPECT_EQ(chosen.of("token_embd.weight"), DType::q4_K);
  EXPECT_EQ(chosen.of("output.weight"), DType::q6_K);
  for (const char* part : {"attn_v", "ffn_down"}) {
    EXPECT_EQ(chosen.layers(part, DType::q6_K), kSensitive) << part;
    EXPECT_EQ(chosen.layers(part, DType::q4_K).size(), 16u) << part;
  }
  for (const char* part : {"attn_q", "attn_k", "attn_output", "ffn_gate", "ffn_up"}) {
    EXPECT_EQ(chosen.layers(part, DType::q4_K), all_layers()) << part;
  }
  EXPECT_TRUE(chosen.fallbacks.empty());
}

// As llama.cpp lists qwen2.5-0.5b-instruct-q4_k_m.gguf when it loads it.
TEST(FileTypes, RowsThatSuperBlocksDoNotDivideTakeSmallBlocks) {
  const Chosen chosen = choose("q4_K_M", kQwenHalfB, 7);
  std::map<DType, int> counts = chosen.counts();
  EXPECT_EQ(counts[DType::q5_0], 132);
  EXPECT_EQ(counts[DType::q8_0], 13);
  EXPECT_EQ(counts[DType::q4_K], 12);
  EXPECT_EQ(counts[DType::q6_K], 12);
  EXPECT_EQ(chosen.fallbacks.size(), 144u);  // the output's q8_0 is chosen, not a fallback
  EXPECT_EQ(chosen.fallbacks.front().wanted, DType::q4_K);
  EXPECT_EQ(chosen.fallbacks.front().given, DType::q5_0);
}

TEST(FileTypes, FallbacksOfEachType) {
  for (const auto& [type, given] : std::map<std::string, DType>{{"q2_K", DType::iq4_nl},
                                                                {"q3_K_S", DType::iq4_nl},
                                                                {"iq4_xs", DType::iq4_nl},
                                                                {"q4_K_S", DType::q5_0},
                                                                {"q5_K_S", DType::q5_1},
                                                                {"q6_K", DType::q8_0},
                                                                {"q4_0", DType::q4_0},
                                                                {"q8_0", DType::q8_0}}) {
    EXPECT_EQ(choose(type.c_str(), kQwenHalfB).of("blk.9.attn_q.weight"), given) << type;
    const Sizes odd{1, 100, 100, true};
    EXPECT_EQ(choose(type.c_str(), odd).of("blk.0.attn_q.weight"), DType::f16) << type;
  }
}

TEST(FileTypes, OtherMixes) {
  const Layers early{0, 1, 2, 3};
  EXPECT_EQ(choose("q4_K_S", kLlama8B).layers("attn_v", DType::q5_K), early);
  EXPECT_EQ(choose("q4_K_S", kLlama8B).layers("ffn_down", DType::q5_K), early);
  EXPECT_EQ(choose("q5_K_M", kLlama8B).layers("attn_v", DType::q6_K), kSensitive);
  EXPECT_EQ(choose("q5_K_M", kLlama8B).layers("ffn_down", DType::q6_K), kSensitive);
  EXPECT_EQ(choose("q5_K_S", kLlama8B).layers("attn_v", DType::q5_K), all_layers());
  const Chosen q3m = choose("q3_K_M", kLlama8B);
  EXPECT_EQ(q3m.layers("attn_v", DType::q5_K), (Layers{0, 1}));
  EXPECT_EQ(q3m.layers("attn_v", DType::q4_K).size(), 30u);
  EXPECT_EQ(q3m.layers("ffn_down", DType::q5_K), (Layers{0, 1}));
  EXPECT_EQ(q3m.layers("attn_output", DType::q4_K), all_layers());
  EXPECT_EQ(q3m.layers("attn_q", DType::q3_K), all_layers());
  const Chosen q3l = choose("q3_K_L", kLlama8B);
  for (const char* part : {"attn_v", "ffn_down", "attn_output"}) {
    EXPECT_EQ(q3l.layers(part, DType::q5_K), all_layers()) << part;
  }
  EXPECT_EQ(choose("q3_K_S", kLlama8B).layers("ffn_down", DType::q3_K), all_layers());
  EXPECT_EQ(choose("q2_K", kLlama8B, 4).layers("attn_v", DType::q4_K), all_layers());
  EXPECT_EQ(choose("q2_K", kLlama8B, 1).layers("attn_v", DType::q3_K), all_layers());
  EXPECT_EQ(choose("q2_K", kLlama8B).layers("ffn_down", DType::q3_K), all_layers());
  EXPECT_EQ(choose("q2_K", kLlama8B).layers("attn_output", DType::q3_K), all_layers());
  EXPECT_EQ(choose("iq4_xs", kLlama8B, 4).layers("attn_v", DType::q5_K), all_layers());
  EXPECT_EQ(choose("iq4_nl", kLlama8B, 2).layers("attn_v", DType::iq4_nl), all_layers());
  EXPECT_EQ(choose("iq4_xs", kLlama8B).layers("ffn_down", DType::q5_K), early);
}

TEST(FileTypes, NormsAndBiasesAreF32) {
  for (const std::string_view type : file_type_names()) {
    const Chosen chosen = choose(std::string(type).c_str(), kQwenHalfB);
    for (const auto& [name, dtype] : chosen.types) {
      const bool vector = name.find("norm") != std::string::npos || name.ends_with("bias");
      EXPECT_TRUE(!vector || dtype == DType::f32) << type << " " << name;
    }
  }
  std::vector<gguf::TensorEntry> others{{"a_norm.weight", DType::f16, {8}},
                                        {"counts", DType::i32, {8}},
                                        {"blk.0.attn_norm.weight", DType::bf16, {2, 32}},
                                        {"blk.0.ffn_gate_inp.weight", DType::f32, {8, 32}},
                                        {"blk.0.shift", DType::f16, {8, 32}}};
  choose_types(find_file_type("q8_0"), {}, {}, others);
  EXPECT_EQ(others[0].dtype, DType::f32);
  EXPECT_EQ(others[1].dtype, DType::i32);
  EXPECT_EQ(others[2].dtype, DType::bf16);
  EXPECT_EQ(others[3].dtype, DType::f32);
  EXPECT_EQ(others[4].dtype, DType::f16);
}

TEST(FileTypes, OutputAndEmbedding) {
  EXPECT_EQ(choose("q8_0", kLlama8B).of("output.weight"), DType::q8_0);
  EXPECT_EQ(choose("q4_0", kLlama8B).of("output.weight"), DType::q6_K);
  EXPECT_EQ(choose("q4_0", kLlama8B).of("token_embd.weight"), DType::q4_0);
  EXPECT_EQ(choose("f16", kLlama8B).of("output.weight"), DType::f16);
  EXPECT_EQ(choose("q4_0", {2, 512, 512, true}).of("token_embd.weight"), DType::q6_K);
  ModelFileOptions options{.output_type = DType::q5_K, .embedding_type = DType::q2_K};
  EXPECT_EQ(choose("q4_0", kLlama8B, 4, options).of("output.weight"), DType::q5_K);
  EXPECT_EQ(choose("q4_0", kLlama8B, 4, options).of("token_embd.weight"), DType::q2_K);
  EXPECT_EQ(choose("q4_0", {2, 512, 512, true}, 4, options).of("token_embd.weight"), DType::q5_K);
}

TEST(FileTypes, PureIsOneTypeForAllMatrices) {
  const Chosen chosen = choose("q3_K_L", kLlama8B, 4, {.pure = true});
  for (const auto& [dtype, count] : chosen.counts()) {
    EXPECT_TRUE(dtype == DType::q3_K || dtype == DType::f32) << to_string(dtype);
  }
}

TEST(FileTypes, NamesInAnyCaseWithTheNumbersOfTheFormat) {
  EXPECT_EQ(find_file_type("Q4_K_M").id, 15u);
  EXPECT_EQ(find_file_type("q4_k_m").id, 15u);
  EXPECT_EQ(find_file_type("IQ4_XS").id, 30u);
  EXPECT_EQ(find_file_type("BF16").id, 32u);
  for (const char* name : {"", "q4_K", "q9_0", "q4_K_M "}) {
    try {
      find_file_type(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), testing::HasSubstr("q5_K_S, q4_1"));
    }
  }
}

}  // namespace
}  // namespace heddle::llm
