// Rows before the output product, and vectors of texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "heddle/half.h"
#include "llm/engine_support.h"
#include "llm/stories.h"

namespace heddle::test {
namespace {

using llm::Engine;
using llm::EngineOptions;

const std::string kText =
    "Once upon a time, a brave fox named Pip lived near the forest. Pip loved to walk to the hill.";

class HiddenTest : public testing::TestWithParam<bool> {  // the parameter: lazily?
 protected:
  llm::ContextOptions options(std::int64_t chunk = 512) const {
    llm::ContextOptions o;
    o.n_ctx = 256;
    o.n_seq_max = 3;
    o.threads = 2;
    o.chunk = chunk;
    o.lazy = GetParam();
    return o;
  }
};

/// The rows of f32 or f16 that give the logits.
std::vector<double> output_matrix(const llm::Model& model) {
  const gguf::Tensor& tensor =
      model.file().tensor(model.config().tied_output ? "token_embd.weight" : "output.weight");
  const auto count = static_cast<std::size_t>(model.config().n_vocab * model.config().n_embd);
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (tensor.dtype == DType::f32) {
      float value = 0;
      std::memcpy(&value, tensor.data.data() + i * sizeof value, sizeof value);
      numbers[i] = value;
    } else {
      f16 value;
      std::memcpy(&value, tensor.data.data() + i * sizeof value, sizeof value);
      numbers[i] = static_cast<float>(value);
    }
  }
  return numbers;
}

void expect_rows_give_logits(const std::shared_ptr<const llm::Model>& model,
                             const llm::ContextOptions& options) {
  const std::vector<TokenId> text = model->tokenizer().encode(kText);
  llm::Context context(model, options);
  const std::vector<float> logits = context.step(context.create(), text, true);
  const llm::StepItem item{context.create(), text, true};
  const std::vector<float> hidden = context.hidden({&item, 1});
  const auto n_embd = static_cast<std::size_t>(model->config().n_embd);
  const auto n_vocab = static_cast<std::size_t>(model->config().n_vocab);
  ASSERT_EQ(hidden.size(), text.size() * n_embd);
  const std::vector<double> matrix = output_matrix(*model);
  for (std::size_t t = 0; t < text.size(); ++t) {
    for (std::size_t id = 0; id < n_vocab; id += 7) {
      double sum = 0;
      for (std::size_t i = 0; i < n_embd; ++i)
        sum += matrix[id * n_embd + i] * hidden[t * n_embd + i];
      ASSERT_NEAR(sum, logits[t * n_vocab + id], 2e-4) << "token " << t << ", id " << id;
    }
  }
}

TEST_P(HiddenTest, RowsTimesTheOutputMatrixAreTheLogits) {
  expect_rows_give_logits(llm::Model::bundled(), options());
}

TEST_P(HiddenTest, AlsoOfAModelWhoseOutputIsAMatrixOfItsOwn) {
  HEDDLE_SHARED_FILE(path, "models/stories260K.gguf");
  expect_rows_give_logits(llm::Model::open(path), options());
}

TEST_P(HiddenTest, RowsAndLogitsGoOnInOneSequence) {
  const auto model = llm::Model::bundled();
  const std::vector<TokenId> text = model->tokenizer().encode(kText);
  llm::Context context(model, options(7));
  const llm::SequenceId whole = context.create(), parts = context.create();
  const std::vector<float> expected = context.step(whole, text);
  const llm::StepItem items[] = {
      {.sequence = parts, .tokens = std::span(text).first(20)},
      {.sequence = context.create(), .tokens = std::span(text).first(9), .all_logits = true}};
  const std::vector<float> hidden = context.hidden(items);
  EXPECT_EQ(hidden.size(), static_cast<std::size_t>(10 * model->config().n_embd));
  EXPECT_EQ(context.step(parts, std::span(text).subspan(20)), expected);
}

TEST_P(HiddenTest, StepsThatWantNothingGiveNothing) {
  const auto model = llm::Model::bundled();
  const std::vector<TokenId> text = model->tokenizer().encode(kText);
  llm::Context context(model, options());
  const llm::SequenceId sequence = context.create(), other = context.create();
  const llm::StepItem item{
      .sequence = sequence, .tokens = std::span(text).first(10), .wants_logits = false};
  EXPECT_TRUE(context.step({&item, 1}).empty());
  EXPECT_EQ(context.step(sequence, std::span(text).subspan(10)), context.step(other, text));
}

INSTANTIATE_TEST_SUITE_P(Executors, HiddenTest, testing::Bool(), [](const auto& param) {
  return std::string(param.param ? "Lazy" : "Planned");
});

// ---- Through engines

EngineOptions engine_options(std::int64_t chunk) {
  EngineOptions o;
  o.context.n_ctx = 256;
  o.context.threads = 2;
  o.context.chunk = chunk;
  o.n_parallel = 3;
  return o;
}

std::vector<float> embedding_of(Engine& engine, llm::EmbeddingRequest request) {
  const Heard heard = hear(*engine.submit(std::move(request)));
  EXPECT_FALSE(heard.error) << heard.error->what();
  return heard.finish ? heard.finish->embedding : std::vector<float>{};
}

TEST(Embedding, IsTheMeanOrTheLastOfTheRows) {
  const auto model = llm::Model::bundled();
  const std::vector<TokenId> text = model->tokenizer().encode(kText);
  llm::ContextOptions o;
  o.n_ctx = 256;
  llm::Context context(model, o);
  const llm::StepItem item{context.create(), text, true};
  const std::vector<float> rows = context.hidden({&item, 1});
  const auto n_embd = static_cast<std::size_t>(model->config().n_embd);
  std::vector<double> mean(n_embd);
  for (std::size_t i = 0; i < rows.size(); ++i)
    mean[i % n_embd] += rows[i] / static_cast<double>(text.size());
  double squares = 0;
  for (const double value : mean) squares += value * value;

  Engine engine(model, engine_options(16));
  const std::vector<float> plain =
      embedding_of(engine, {.tokens = text, .pooling = llm::Pooling::mean, .normalize = false});
  const std::vector<float> normal = embedding_of(engine, {.tokens = text});
  const std::vector<float> last =
      embedding_of(engine, {.tokens = text, .pooling = llm::Pooling::last, .normalize = false});
  ASSERT_EQ(plain.size(), n_embd);
  for (std::size_t i = 0; i < n_embd; ++i) {
    EXPECT_NEAR(plain[i], mean[i], 1e-6);
    EXPECT_NEAR(normal[i], mean[i] / std::sqrt(squares), 1e-6);
    EXPECT_EQ(last[i], rows[rows.size() - n_embd + i]);
  }
  expect_at_rest(engine);
}

TEST(Embedding, DoesNotDependOnCompanyOrChunks) {
  const auto model = llm::Model::bundled();
  std::vector<std::vector<float>> alone;
  std::vector<llm::EmbeddingRequest> requests;
  for (std::size_t i = 0; i < 6; ++i)
    requests.push_back({.tokens = model->tokenizer().encode(kText.substr(7 * i))});
  {
    Engine engine(model, engine_options(512));
    for (const auto& request : requests) alone.push_back(embedding_of(engine, request));
  }
  for (const std::int64_t chunk : {4, 13, 64}) {
    Engine engine(model, engine_options(chunk));
    const auto beside = engine.submit(greedily(requests[0].tokens, 60));
    const auto tickets = engine.submit(requests);
    for (std::size_t i = 0; i < tickets.size(); ++i)
      EXPECT_EQ(hear(*tickets[i]).finish->embedding, alone[i]) << "chunk " << chunk;
    EXPECT_TRUE(hear(*beside).finish);
    EXPECT_EQ(engine.stats().completed, requests.size() + 1);
  }
}

/// The bundled model with a word on how its vectors are joined.
std::shared_ptr<const llm::Model> with_pooling(std::uint32_t type) {
  const gguf::File file = llm::Model::bundled()->file();
  gguf::Writer writer;
  for (const auto& [key, value] : file.metadata().entries()) writer.metadata().set(key, value);
  writer.metadata().set("qwen2.pooling_type", type);
  for (const gguf::Tensor& tensor : file.tensors())
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.data);
  const std::filesystem::path path =
      testing::TempDir() + "heddle-pooling-" + std::to_string(getpid()) + ".gguf";
  writer.write(path);
  auto model = llm::Model::open(path);
  std::filesystem::remove(path);
  return model;
}

TEST(Embedding, TheFileSaysHowRowsAreJoined) {
  const std::vector<TokenId> text = llm::Model::bundled()->tokenizer().encode(kText);
  for (const std::uint32_t type : {1u, 3u}) {
    Engine engine(with_pooling(type), engine_options(64));
    const std::vector<float> expected = embedding_of(
        engine, {.tokens = text, .pooling = type == 3 ? llm::Pooling::last : llm::Pooling::mean});
    EXPECT_EQ(embedding_of(engine, {.tokens = text}), expected);
  }
  Engine engine(with_pooling(2), engine_options(64));
  try {
    engine.submit(llm::EmbeddingRequest{.tokens = text});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("qwen2.pooling_type is 2"));
  }
}

}  // namespace
}  // namespace heddle::test
