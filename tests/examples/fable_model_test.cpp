// The example's model against the engine that runs what it writes.
#include "model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compare.h"
#include "corpus.h"
#include "heddle/llm.h"
#include "heddle/ops.h"
#include "model_file.h"
#include "support/temporary_dir.h"
#include "training.h"

namespace fable {
namespace {

using namespace heddle;

Model small_model(const Corpus& corpus, std::uint64_t seed) {
  return Model({.n_vocab = static_cast<int>(corpus.vocabulary().tokens.size()),
                .n_embd = 64,
                .n_layer = 3,
                .n_head = 4,
                .n_head_kv = 2,
                .n_ff = 96},
               seed);
}

/// With matrices that lose nothing in the file, and biases and norms that matter.
Model as_stored(Model model) {
  std::uint64_t seed = 0;
  for (const nn::Parameter& parameter : nn::parameters_in(model)) {
    Array& array = *parameter.array;
    if (array.ndim() == 2) {
      array = astype(astype(array, DType::f16), DType::f32);
    } else {
      array = array + 0.3f * random::normal(array.shape(), DType::f32, random::key(++seed));
    }
  }
  return model;
}

/// The model's logits are those of the engine that runs `file`.
void expect_engine_agrees(const Model& model, const std::filesystem::path& file,
                          const Array& tokens) {
  const std::vector<float> expected = model.logits(tokens).to_vector<float>();
  llm::ContextOptions options;
  options.kv_type = DType::f32;
  llm::Context context(llm::Model::open(file), options);
  const std::vector<float> logits =
      context.step(context.create(), tokens.to_vector<std::int32_t>(), true);
  ASSERT_EQ(logits.size(), expected.size());
  float largest = 0, error = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    error = std::max(error, std::abs(logits[i] - expected[i]));
    largest = std::max(largest, std::abs(logits[i]));
  }
  EXPECT_LT(error, 1e-5f * largest);
  EXPECT_GT(largest, 1);
}

TEST(FableModel, TheEngineGivesItsLogits) {
  const Corpus corpus(5, 200, 400);
  const test::TemporaryDir dir;
  const Model model = as_stored(small_model(corpus, 6));
  write_model(dir / "model.gguf", model, corpus);
  expect_engine_agrees(model, dir / "model.gguf", corpus.rows(Purpose::held_out, 0, 1, 70));
}

TEST(FableModel, ReadsTheBundledModelAsTheEngineDoes) {
  const std::filesystem::path file = HEDDLE_SOURCE_DIR "/models/fable-1m-f16.gguf";
  ArrayMap arrays = load_gguf(file).first;
  for (auto& [name, array] : arrays) array = astype(array, DType::f32);
  const int n_vocab = static_cast<int>(arrays.at("token_embd.weight").shape(0));
  Model model({.n_vocab = n_vocab}, 1);
  EXPECT_EQ(parameter_count(model), llm::Model::open(file)->parameter_count());
  nn::load_parameters(model, arrays);  // all of them, of the same shapes
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(i * 37 % n_vocab);
  expect_engine_agrees(model, file, Array(ids, {1, 100}));
}

TEST(FableModel, SeesNothingOfWhatComesLater) {
  const Corpus corpus(5, 200, 400);
  const Model model = small_model(corpus, 7);
  const Array tokens = corpus.rows(Purpose::held_out, 0, 2, 20);
  const Array changed = concatenate({slice(tokens, {0, 0}, {2, 15}), zeros({2, 5}, DType::i32)}, 1);
  const auto beginning = [&](const Array& of) {
    return slice(model.logits(of), {0, 0, 0}, {2, 15, model.shape.n_vocab}).to_vector<float>();
  };
  EXPECT_EQ(beginning(tokens), beginning(changed));
}

TEST(FableModel, TheLossIsTheMeanOverTokens) {
  const Corpus corpus(5, 200, 400);
  const Model model = small_model(corpus, 8);
  const Array tokens = corpus.rows(Purpose::held_out, 0, 3, 12);
  const auto ids = tokens.to_vector<std::int32_t>();
  const auto logits = model.logits(tokens).to_vector<float>();
  const auto width = static_cast<std::size_t>(model.shape.n_vocab);
  double sum = 0;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t t = 0; t < 11; ++t) {
      const float* at = &logits[(row * 12 + t) * width];
      double total = 0;
      for (std::size_t v = 0; v < width; ++v) total += std::exp(double{at[v]});
      sum += std::log(total) - at[ids[row * 12 + t + 1]];
    }
  }
  EXPECT_NEAR(model.loss(tokens).item<float>(), sum / 33, 1e-4);
}

TEST(FableCompare, AModelOfNothingIsAsBadAsItCanBe) {
  // All logits 0: each token costs log(vocabulary).
  const Corpus corpus(5, 200, 400);
  Model model = small_model(corpus, 9);
  for (const nn::Parameter& parameter : nn::parameters_in(model)) {
    *parameter.array = zeros_like(*parameter.array);
  }
  const test::TemporaryDir dir;
  write_model(dir / "nothing.gguf", model, corpus);
  const HeldOutLoss loss = held_out_loss(dir / "nothing.gguf", 1, 20);
  EXPECT_NEAR(loss.nats / static_cast<double>(loss.tokens), std::log(model.shape.n_vocab), 1e-3);
  EXPECT_LT(loss.tokens, loss.bytes);
  EXPECT_GT(loss.grammar_nats / 20, 25);
  EXPECT_GT(loss.nats, loss.grammar_nats);
}

TEST(FableCompare, TheBundledModelTellsStoriesOfThisGrammar) {
  const HeldOutLoss loss = held_out_loss(HEDDLE_SOURCE_DIR "/models/fable-1m-f16.gguf", 123, 60);
  EXPECT_LT(loss.per_byte(), 0.09);
  EXPECT_GT(loss.per_byte(), loss.grammar_nats / static_cast<double>(loss.bytes) * 0.9);
}

}  // namespace
}  // namespace fable
