// Model files that heddle makes: synthetic ones, and copies in other types.
#include "heddle/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/system.h"
#include "heddle/chat_template.h"
#include "heddle/llm.h"
#include "io/gguf_stream.h"
#include "support/error_message.h"
#include "support/shared_files.h"
#include "tensor/blocks.h"

namespace heddle::llm {
namespace {

namespace fs = std::filesystem;
using test::expect_refusal;
using testing::HasSubstr;

class ModelFile : public testing::Test {
 protected:
  ModelFile() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  ~ModelFile() override { fs::remove_all(directory_); }

  fs::path at(const std::string& name) const { return directory_ / name; }
  std::string bytes(const std::string& name) const {
    std::ifstream file(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  }

  const fs::path directory_ =
      fs::path(testing::TempDir()) /
      (std::string("model-file-") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::vector<float> decoded(const gguf::Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(elements(tensor.shape)));
  dequantize_row(tensor.dtype, tensor.data.data(), values.data(), std::ssize(values));
  return values;
}

std::vector<float> logits_of(const fs::path& path, const std::vector<TokenId>& tokens) {
  Context context(Model::open(path), {.n_ctx = 64, .kv_type = DType::f32, .threads = 1});
  return context.step(context.create(), tokens, true);
}

double relative_error(const auto& got, const auto& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double error = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(double{got[i]} - double{expected[i]}, 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(error / size);
}

const std::vector<TokenId> kTokens{3, 141, 59, 26, 5, 358, 97, 9};

TEST_F(ModelFile, SyntheticModelsRunInEveryType) {
  synthesize_model("tiny", "f32", at("f32"), 7);
  const std::vector<float> exact = logits_of(at("f32"), kTokens);
  double squares = 0;
  for (const float logit : exact) {
    ASSERT_TRUE(std::isfinite(logit));
    squares += double{logit} * double{logit};
  }
  const double deviation = std::sqrt(squares / static_cast<double>(exact.size()));
  EXPECT_GT(deviation, 1);
  EXPECT_LT(deviation, 4);
  for (const std::string_view type : file_type_names()) {
    synthesize_model("tiny", type, at("typed"), 7);
    const std::vector<float> logits = logits_of(at("typed"), kTokens);
    // The same weights: two-bit ones are far off, yet nearer than other weights would be.
    EXPECT_LT(relative_error(logits, exact), type == "q2_K" ? 0.8 : 0.5) << type;
  }
  synthesize_model("tiny", "f32", at("other"), 8);
  EXPECT_GT(relative_error(logits_of(at("other"), kTokens), exact), 1);
}

TEST_F(ModelFile, TheSeedDecidesEveryByte) {
  for (const char* type : {"f16", "q4_K_M"}) {
    synthesize_model("tiny", type, at("one"), 3, {.threads = 1});
    synthesize_model("tiny", type, at("four"), 3, {.threads = 4});
    EXPECT_EQ(bytes("one"), bytes("four"));
    synthesize_model("tiny", type, at("other"), 4);
    EXPECT_NE(bytes("one"), bytes("other"));
  }
}

TEST_F(ModelFile, SyntheticWeightsAreRandomNumbersOfTheirOwn) {
  synthesize_model("tiny", "f32", at("f32"), 1);
  const gguf::File file = gguf::File::open(at("f32"));
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.shape.size() != 2) continue;
    const std::vector<float> values = decoded(tensor);
    const auto n = static_cast<double>(values.size());
    double sum = 0, squares = 0, neighbours = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += values[i];
      squares += double{values[i]} * double{values[i]};
      neighbours += double{values[i]} * double{values[(i + 1) % values.size()]};
    }
    // Five deviations of the sums of independent numbers.
    EXPECT_LE(std::fabs(sum), 5 * std::sqrt(squares)) << tensor.name;
    EXPECT_LE(std::fabs(neighbours), 5 * squares / std::sqrt(n)) << tensor.name;
  }
  EXPECT_NE(decoded(file.tensor("blk.0.attn_q.weight")),
            decoded(file.tensor("blk.1.attn_q.weight")));
}

TEST_F(ModelFile, SyntheticVocabulariesTakeAnyTextAndChat) {
  synthesize_model("tiny", "q8_0", at("model"), 1);
  const auto model = Model::open(at("model"));
  const Tokenizer& tokenizer = model->tokenizer();
  EXPECT_EQ(static_cast<std::int64_t>(tokenizer.size()), model->config().n_vocab);
  for (const std::string text :
       {"hello world", "\x01\xff\x80 \n", "Zażółć gęślą jaźń 漢字 🙂"}) {
    std::string back;
    for (const TokenId id : tokenizer.encode(text)) back += tokenizer.token_bytes(id);
    EXPECT_EQ(back, text);
  }
  EXPECT_LT(tokenizer.encode("there then").size(), 8u);  // merges apply
  const auto end = tokenizer.find("<|im_end|>");
  ASSERT_TRUE(end && tokenizer.is_end(*end));
  const ChatTemplate chat(
      std::string(model->file().metadata().get_string("tokenizer.chat_template")));
  const std::string context =
      R"({"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": true})";
  EXPECT_EQ(joined(chat.render({.context = context})),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ModelFile, WhatCannotBeSynthesizedIsRefused) {
  expect_refusal([&] { synthesize_model("gpt-5", "f32", at("x"), 1); }, ErrorCode::invalid_argument,
                 "llama-3.2-1b");
  expect_refusal([&] { synthesize_model("tiny", "q7", at("x"), 1); }, ErrorCode::invalid_argument,
                 "q4_K_M");
  expect_refusal([&] { synthesize_model("tiny", "f32", "/no/such/place/x", 1); }, ErrorCode::io,
                 "/no/such/place/x");
  EXPECT_EQ(files(), 0);
}

TEST_F(ModelFile, StopsWhenAskedAndLeavesNothing) {
  std::atomic<int> calls{0};
  ModelFileOptions options;
  options.progress = [&](const WriteProgress& at) {
    EXPECT_LE(at.done, at.total);
    return ++calls < 3;
  };
  expect_refusal([&] { synthesize_model("tiny", "f32", at("x"), 1, options); },
                 ErrorCode::cancelled, "stopped");
  EXPECT_EQ(files(), 0);
  EXPECT_EQ(calls, 3);
}

// Quantising a model's f32 file must give what making it in the type gave: the same numbers by
// another way.
TEST_F(ModelFile, QuantizedIsWhatWasSynthesizedInTheType) {
  synthesize_model("tiny", "f32", at("f32"), 5);
  for (const char* type : {"f16", "q4_0", "q4_K_M", "q2_K"}) {
    synthesize_model("tiny", type, at("expected"), 5);
    quantize_model(at("f32"), at("got"), type, {.threads = 3});
    EXPECT_EQ(bytes("got"), bytes("expected")) << type;
  }
}

std::vector<double> shared_logits(const std::string& model) {
  std::ifstream file(test::shared_dir() / "reference/tiny" / (model + ".logits.f64"),
                     std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<double> logits(bytes.size() / sizeof(double));
  std::memcpy(logits.data(), bytes.data(), logits.size() * sizeof(double));
  return logits;
}

// ../shared has the same model in every type, made by another program, and the logits of each. Two
// layers of random weights blow every rounding up, so the errors themselves say little; but ours
// may not be larger than that program's, within what chance makes of them.
TEST_F(ModelFile, QuantizedModelsStayAsNearTheirSourceAsAnotherProgramsDo) {
  HEDDLE_SHARED_FILE(source, "reference/tiny/tiny-llama-f32.gguf");
  std::ifstream description(test::shared_dir() / "reference/tiny/tiny.json");
  const auto tokens = nlohmann::json::parse(description)["tokens"].get<std::vector<TokenId>>();
  const std::vector<double> exact = shared_logits("tiny-llama-f32");
  for (const char* type : {"f16", "bf16", "q8_0", "q6_K", "q5_0", "q5_1", "q5_K_M", "q4_0", "q4_1",
                           "q4_K_M", "iq4_nl", "iq4_xs", "q3_K_M", "q2_K"}) {
    std::string name = std::string("tiny-llama-") + type;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    const double theirs = relative_error(shared_logits(name), exact);
    const ModelFileSummary summary = quantize_model(source, at("model"), type, {.pure = true});
    EXPECT_LE(relative_error(logits_of(at("model"), tokens), exact), 1.3 * theirs) << type;
    EXPECT_EQ(summary.requantized, 0);
    EXPECT_TRUE(summary.fallbacks.empty());
    EXPECT_LT(summary.bytes_after, summary.bytes_before);
  }
}

TEST_F(ModelFile, MetadataIsKept) {
  synthesize_model("tiny", "f16", at("source"), 1);
  quantize_model(at("source"), at("model"), "q5_K_S");
  const gguf::File source = gguf::File::open(at("source")), file = gguf::File::open(at("model"));
  EXPECT_EQ(file.metadata().get_int("general.file_type"), 16);
  EXPECT_EQ(file.metadata().get_int("general.quantization_version"), 2);
  ASSERT_EQ(file.metadata().entries().size(), source.metadata().entries().size());
  for (const auto& [key, value] : source.metadata().entries()) {
    if (key == "general.file_type") continue;
    EXPECT_EQ(*file.metadata().find(key), value) << key;
  }
  for (std::size_t i = 0; i < source.tensors().size(); ++i) {
    EXPECT_EQ(file.tensors()[i].name, source.tensors()[i].name);
  }
}

TEST_F(ModelFile, SaysWhatWasQuantizedBefore) {
  synthesize_model("tiny", "q4_0", at("source"), 1, {.pure = true});
  const auto requantized = [&](const char* type) {
    return quantize_model(at("source"), at("model"), type, {.pure = true}).requantized;
  };
  EXPECT_EQ(requantized("q4_0"), 0);
  EXPECT_EQ(decoded(gguf::File::open(at("model")).tensor("token_embd.weight")),
            decoded(gguf::File::open(at("source")).tensor("token_embd.weight")));
  EXPECT_EQ(requantized("q8_0"), 15);
  EXPECT_EQ(requantized("f32"), 0);
}

void add(gguf::Writer& writer, const std::string& name, const Shape& shape,
         std::span<const float> values) {
  writer.add_tensor(name, DType::f32, shape, std::as_bytes(values));
}

TEST_F(ModelFile, NamesTheWeightThatCannotBeStored) {
  std::vector<float> values(64, 1);
  const auto refusal = [&](float bad, const char* type, const std::string& text) {
    values[37] = bad;
    gguf::Writer writer;
    add(writer, "blk.0.attn_q.weight", {2, 32}, values);
    writer.write(at("source"));
    expect_refusal([&] { quantize_model(at("source"), at("model"), type); },
                   ErrorCode::invalid_argument, text);
    EXPECT_EQ(files(), 1);
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const std::string where = "source: tensor 'blk.0.attn_q.weight': row 1, column 5 is ";
  refusal(std::nanf(""), "q8_0", where + "nan, which is not finite, and cannot become q8_0");
  refusal(-infinity, "bf16", where + "-inf");
  refusal(65520, "f16", where + "65520, which is too large for f16");
  refusal(std::numeric_limits<float>::max(), "bf16", "too large for bf16");
  values[37] = 65519;
  gguf::Writer writer;
  add(writer, "blk.0.attn_q.weight", {2, 32}, values);
  writer.write(at("source"));
  quantize_model(at("source"), at("model"), "f16");
  EXPECT_EQ(decoded(gguf::File::open(at("model")).tensors()[0])[37], 65504.0f);
}

TEST_F(ModelFile, ReadsOnlyWhatIsNotWritten) {
  synthesize_model("tiny", "f32", at("model"), 1);
  const std::string before = bytes("model");
  fs::create_symlink(at("model"), at("link"));
  for (const char* name : {"model", "link", "./model"}) {
    expect_refusal([&] { quantize_model(at("model"), at(name), "q8_0"); },
                   ErrorCode::invalid_argument, "a name of its own");
  }
  EXPECT_EQ(bytes("model"), before);
  expect_refusal([&] { quantize_model(at("none"), at("x"), "q8_0"); }, ErrorCode::io, "none");
}

// What sanitizers keep of freed memory would count.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(ModelFile, StreamsInLittleMemory) {
  constexpr std::int64_t kRows = 24, kRow = 1 << 20;  // 96 MiB
  const std::vector<float> row(kRow, 0.5f);
  gguf::StreamWriter writer(at("source"), gguf::Metadata(),
                            {{"blk.0.attn_q.weight", DType::f32, {kRows, kRow}}});
  for (std::int64_t i = 0; i < kRows; ++i) writer.write(std::as_bytes(std::span(row)));
  writer.commit();
  for (const char* type : {"q8_0", "f32"}) {
    std::ofstream("/proc/self/clear_refs") << "5\n";  // the peak counts from here
    const std::uint64_t before = peak_memory();
    if (before > std::uint64_t{64} << 20) GTEST_SKIP() << "skipped: the peak cannot be reset";
    quantize_model(at("source"), at("model"), type, {.threads = 2});
    EXPECT_LT(peak_memory(), before + (std::uint64_t{40} << 20)) << type;
  }
}
#endif

TEST_F(ModelFile, ASplitModelBecomesOneFile) {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (std::uint16_t part = 0; part < 2; ++part) {
    gguf::Writer writer;
    writer.metadata().set("split.no", part);
    writer.metadata().set("split.count", std::uint16_t{2});
    writer.metadata().set("split.tensors.count", std::int32_t{2});
    add(writer, "blk." + std::to_string(part) + ".attn_q.weight", {2, 32}, values);
    writer.write(at("m-0000" + std::to_string(part + 1) + "-of-00002.gguf"));
  }
  const fs::path first = at("m-00001-of-00002.gguf"), second = at("m-00002-of-00002.gguf");
  expect_refusal([&] { quantize_model(first, second, "q8_0"); }, ErrorCode::invalid_argument,
                 "a name of its own");
  quantize_model(first, at("whole"), "q8_0");
  const gguf::File file = gguf::File::open(at("whole"));
  EXPECT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.metadata().find("split.count"), nullptr);
}

}  // namespace
}  // namespace heddle::llm
