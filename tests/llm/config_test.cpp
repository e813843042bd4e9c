// What a model's file must hold: configurations read, and files that are refused, by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>

#include "heddle/llm.h"
#include "heddle/ops.h"
#include "llm/tensors.h"

namespace heddle::llm {
namespace {

using testing::HasSubstr;

/// A one-layer model of any architecture: heads of 8, 4 query and 2 KV heads, 16 byte tokens.
class TinyFile {
 public:
  explicit TinyFile(const std::string& architecture) : architecture_(architecture) {
    set("context_length", std::uint32_t{64});
    set("embedding_length", std::uint32_t{32});
    set("block_count", std::uint32_t{1});
    set("feed_forward_length", std::uint32_t{48});
    set("attention.head_count", std::uint32_t{4});
    set("attention.head_count_kv", std::uint32_t{2});
    set("attention.layer_norm_rms_epsilon", 1e-5f);
    meta_.set("general.architecture", architecture);
    add_vocabulary();
    for (const auto& [name, shape] :
         std::vector<std::pair<std::string, Shape>>{{"token_embd.weight", {16, 32}},
                                                    {"output_norm.weight", {32}},
                                                    {"blk.0.attn_norm.weight", {32}},
                                                    {"blk.0.attn_q.weight", {32, 32}},
                                                    {"blk.0.attn_k.weight", {16, 32}},
                                                    {"blk.0.attn_v.weight", {16, 32}},
                                                    {"blk.0.attn_output.weight", {32, 32}},
                                                    {"blk.0.ffn_norm.weight", {32}},
                                                    {"blk.0.ffn_gate.weight", {48, 32}},
                                                    {"blk.0.ffn_up.weight", {48, 32}},
                                                    {"blk.0.ffn_down.weight", {32, 48}}}) {
      tensors_[name] = shape;
    }
  }

  void set(const std::string& key, gguf::Value value) {
    meta_.set(architecture_ + "." + key, std::move(value));
  }
  gguf::Metadata& metadata() { return meta_; }
  std::map<std::string, Shape>& tensors() { return tensors_; }
  std::map<std::string, DType>& types() { return types_; }

  gguf::File file() const {
    gguf::Writer writer;
    for (const auto& [key, value] : meta_.entries()) writer.metadata().set(key, value);
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0, 0.3f);
    for (const auto& [name, shape] : tensors_) {
      const auto type = types_.find(name);
      const TensorSpec spec{type == types_.end() ? DType::f32 : type->second, shape};
      std::vector<std::byte> bytes(byte_size(spec));
      if (spec.dtype == DType::f32) {
        for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
          const float value = normal(random);
          std::memcpy(bytes.data() + i, &value, 4);
        }
      }
      writer.add_tensor(name, spec.dtype, shape, bytes);
    }
    auto bytes = std::make_shared<std::vector<std::byte>>(writer.serialize());
    // from_memory wants 32-byte alignment, which a vector does not promise.
    const Ref<Buffer> aligned = allocate_host(bytes->size());
    std::memcpy(aligned->host(), bytes->data(), bytes->size());
    return gguf::File::from_memory({aligned->host(), bytes->size()}, "tiny.gguf",
                                   std::make_shared<Ref<Buffer>>(aligned));
  }

 private:
  void add_vocabulary() {
    std::vector<std::string> tokens;
    for (int i = 0; i < 16; ++i) tokens.push_back(std::string(1, static_cast<char>('a' + i)));
    meta_.set("tokenizer.ggml.model", std::string("gpt2"));
    meta_.set("tokenizer.ggml.pre", std::string("default"));
    meta_.set("tokenizer.ggml.tokens", gguf::Array(tokens));
    meta_.set("tokenizer.ggml.merges", gguf::Array(std::vector<std::string>{}));
  }

  std::string architecture_;
  gguf::Metadata meta_;
  std::map<std::string, Shape> tensors_;
  std::map<std::string, DType> types_;
};

std::string refusal(const TinyFile& tiny, ErrorCode code) {
  try {
    Model::from_file(tiny.file());
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr("tiny.gguf"));
    return e.what();
  }
  ADD_FAILURE() << "the file was taken";
  return "";
}

std::vector<float> logits_of(const TinyFile& tiny, std::vector<TokenId> tokens) {
  ContextOptions options;
  options.threads = 1;
  options.kv_type = DType::f32;
  Context context(Model::from_file(tiny.file()), options);
  return context.step(context.create(), tokens);
}

TEST(Config, SizesAndDefaults) {
  TinyFile tiny("llama");
  const ModelConfig c = read_config(tiny.file());
  EXPECT_EQ(c.n_vocab, 16);
  EXPECT_EQ(c.n_embd_head, 8);
  EXPECT_EQ(c.rope.dims, 8);
  EXPECT_EQ(c.rope.base, 10000.0f);
  EXPECT_EQ(c.rope.style, RopeStyle::interleaved);
  EXPECT_TRUE(c.tied_output);
  EXPECT_FALSE(c.has_qkv_bias || c.has_qk_norm || c.has_output_bias);
}

TEST(Config, QwenTurnsHalves) {
  EXPECT_EQ(read_config(TinyFile("qwen2").file()).rope.style, RopeStyle::split_half);
  EXPECT_EQ(read_config(TinyFile("qwen3").file()).rope.style, RopeStyle::split_half);
}

TEST(Config, LinearScalingStretchesPositions) {
  TinyFile tiny("llama");
  tiny.set("rope.scaling.type", std::string("linear"));
  tiny.set("rope.scaling.factor", 4.0f);
  EXPECT_EQ(read_config(tiny.file()).rope.scale, 0.25f);
}

TEST(Config, PartsThatModelsMayHaveChangeTheLogits) {
  const std::vector<TokenId> tokens{1, 2, 3, 4};
  const TinyFile plain("llama");
  const std::vector<float> base = logits_of(plain, tokens);
  std::map<std::string, std::function<void(TinyFile&)>> variants{
      {"own output matrix",
       [](TinyFile& t) {
         t.tensors()["output.weight"] = {16, 32};
       }},
      {"biases",
       [](TinyFile& t) {
         t.tensors()["blk.0.attn_q.bias"] = {32};
         t.tensors()["blk.0.attn_k.bias"] = {16};
         t.tensors()["blk.0.attn_v.bias"] = {16};
       }},
      {"output bias", [](TinyFile& t) { t.tensors()["blk.0.attn_output.bias"] = {32}; }},
      {"q and k norms",
       [](TinyFile& t) {
         t.tensors()["blk.0.attn_q_norm.weight"] = {8};
         t.tensors()["blk.0.attn_k_norm.weight"] = {8};
       }},
      {"frequency factors", [](TinyFile& t) { t.tensors()["rope_freqs.weight"] = {4}; }},
      {"rope base", [](TinyFile& t) { t.set("rope.freq_base", 500.0f); }},
      {"window", [](TinyFile& t) { t.set("attention.sliding_window", std::uint32_t{2}); }},
      {"partial rope", [](TinyFile& t) { t.set("rope.dimension_count", std::uint32_t{4}); }},
  };
  for (const auto& [name, change] : variants) {
    TinyFile changed("llama");
    change(changed);
    const std::vector<float> logits = logits_of(changed, tokens);
    EXPECT_NE(logits, base) << name;
    for (const float logit : logits) EXPECT_TRUE(std::isfinite(logit)) << name;
  }
}

TEST(Config, RefusalsNameWhatIsWrong) {
  struct Case {
    const char* name;
    std::function<void(TinyFile&)> change;
    ErrorCode code;
    const char* said;
  };
  const std::vector<Case> cases{
      {"architecture",
       [](TinyFile& t) { t.metadata().set("general.architecture", std::string("mamba")); },
       ErrorCode::unsupported, "'mamba'"},
      {"missing tensor", [](TinyFile& t) { t.tensors().erase("blk.0.ffn_up.weight"); },
       ErrorCode::io, "blk.0.ffn_up.weight"},
      {"misshapen tensor",
       [](TinyFile& t) {
         t.tensors()["blk.0.attn_k.weight"] = {24, 32};
       },
       ErrorCode::io, "'blk.0.attn_k.weight' is [24, 32]; expected [16, 32]"},
      {"left-over tensor", [](TinyFile& t) { t.tensors()["blk.0.ffn_gate.bias"] = {48}; },
       ErrorCode::unsupported, "blk.0.ffn_gate.bias"},
      {"integer weights", [](TinyFile& t) { t.types()["blk.0.attn_q.weight"] = DType::i32; },
       ErrorCode::unsupported, "type i32"},
      {"quantised norm", [](TinyFile& t) { t.types()["blk.0.attn_norm.weight"] = DType::q8_0; },
       ErrorCode::unsupported, "blk.0.attn_norm.weight"},
      {"no context", [](TinyFile& t) { t.set("context_length", std::uint32_t{0}); }, ErrorCode::io,
       "context_length"},
      {"heads", [](TinyFile& t) { t.set("attention.head_count_kv", std::uint32_t{3}); },
       ErrorCode::io, "head_count_kv"},
      {"layers", [](TinyFile& t) { t.set("block_count", std::uint32_t{2000000000}); },
       ErrorCode::io, "block_count"},
      {"text for a number", [](TinyFile& t) { t.set("embedding_length", std::string("big")); },
       ErrorCode::io, "embedding_length"},
      {"epsilon", [](TinyFile& t) { t.set("attention.layer_norm_rms_epsilon", std::nanf("")); },
       ErrorCode::io, "epsilon"},
      {"odd rope", [](TinyFile& t) { t.set("rope.dimension_count", std::uint32_t{7}); },
       ErrorCode::io, "dimension_count"},
      {"rope base", [](TinyFile& t) { t.set("rope.freq_base", 0.0f); }, ErrorCode::io, "freq_base"},
      {"yarn", [](TinyFile& t) { t.set("rope.scaling.type", std::string("yarn")); },
       ErrorCode::unsupported, "'yarn'"},
      {"scaling", [](TinyFile& t) { t.set("rope.scale_linear", -1.0f); }, ErrorCode::io, "scaling"},
      {"experts", [](TinyFile& t) { t.set("expert_count", std::uint32_t{8}); },
       ErrorCode::unsupported, "experts"},
      {"value length", [](TinyFile& t) { t.set("attention.value_length", std::uint32_t{4}); },
       ErrorCode::unsupported, "value_length"},
      {"vocabulary",
       [](TinyFile& t) {
         t.tensors()["token_embd.weight"] = {15, 32};
       },
       ErrorCode::io, "token_embd.weight"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TinyFile tiny("llama");
    c.change(tiny);
    EXPECT_THAT(refusal(tiny, c.code), HasSubstr(c.said));
  }
}

}  // namespace
}  // namespace heddle::llm
