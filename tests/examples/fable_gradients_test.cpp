// The gradients of the whole model against those of NumPy in float64.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/process.h"
#include "gradients_file.h"
#include "heddle/compile.h"
#include "heddle/ops.h"
#include "model.h"
#include "support/python.h"
#include "support/temporary_dir.h"

namespace fable {
namespace {

using namespace heddle;

const std::string kOracle = HEDDLE_SOURCE_DIR "/tests/examples/gradients_oracle.py";

/// With norms and biases that are not those it begins with.
Model model_of(const ModelShape& shape, std::uint64_t seed) {
  Model model(shape, seed);
  for (const nn::Parameter& parameter : nn::parameters_in(model)) {
    Array& array = *parameter.array;
    if (array.ndim() == 1)
      array = array + 0.3f * random::normal(array.shape(), DType::f32, random::key(++seed));
  }
  return model;
}

void expect_oracle_agrees(const std::string& python, const std::string& file,
                          std::size_t gradients) {
  test::Process oracle({python, kOracle, file});
  const test::Finished finished = oracle.finish();
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  std::istringstream lines(finished.out);
  std::string name;
  std::size_t seen = 0;
  for (double error = 0; lines >> name >> error; ++seen) EXPECT_LT(error, 2e-5) << name;
  EXPECT_EQ(seen, gradients + 1) << finished.out;
}

/// The loss, then the gradients in the order of the model's parameters.
std::vector<Array> loss_and_gradients(const Model& model, const Array& tokens) {
  const auto [loss, gradients] = value_and_grad(
      [](const Model& m, const Array& batch) { return m.loss(batch); }, model, tokens);
  std::vector<Array> results{loss};
  for (const auto& [name, gradient] : nn::parameters(gradients)) results.push_back(gradient);
  return results;
}

TEST(FableModel, GradientsAreThoseOfFloat64) {
  const std::string python = test::python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "skipped: python3 with numpy is not there";
  const test::TemporaryDir folder;
  const std::string file = (folder / "example.safetensors").string();
  // One head for each query, groups of heads, and a row too long for one block of anything.
  const ModelShape shapes[] = {
      {.n_vocab = 40, .n_embd = 24, .n_layer = 2, .n_head = 3, .n_head_kv = 3, .n_ff = 20},
      {.n_vocab = 300, .n_embd = 64, .n_layer = 3, .n_head = 4, .n_head_kv = 2, .n_ff = 96}};
  const int lengths[] = {7, 300};
  for (int i = 0; i < 2; ++i) {
    const Model model = model_of(shapes[i], 3);
    const Array tokens =
        random::randint(0, shapes[i].n_vocab, {3, lengths[i]}, DType::i32, random::key(9));
    for (const bool compiled : {false, true}) {
      SCOPED_TRACE(fmt::format("model {}, compiled {}", i, compiled));
      const ArraysFunction function = [&](const std::vector<Array>& batch) {
        return loss_and_gradients(model, batch[0]);
      };
      const auto results = (compiled ? compile(function) : function)({tokens});
      auto gradients = nn::parameters(model);
      for (std::size_t g = 0; g < gradients.size(); ++g) gradients[g].second = results[g + 1];
      write_gradients(file, model, tokens, results[0], gradients);
      expect_oracle_agrees(python, file, results.size() - 1);
    }
  }
}

}  // namespace
}  // namespace fable
