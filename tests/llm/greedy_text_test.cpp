// The reference texts, to the last character, in every way of running a model.
#include <gtest/gtest.h>

#include "llm/stories.h"
#include "support/shared_files.h"

namespace heddle::test {
namespace {

using Prompt = std::vector<TokenId>;

/// Tells `prompt`'s story, alone or beside three others, and returns its text.
std::string tell(const std::shared_ptr<llm::Model>& model, const Prompt& prompt,
                 const Telling& telling, std::size_t most) {
  llm::Context context(model, options_for(telling));
  std::vector<Prompt> prompts{prompt};
  if (telling.in_company) {
    const Tokenizer& tokenizer = model->tokenizer();
    prompts.insert(prompts.begin(), tokenizer.encode("One day"));
    prompts.push_back(tokenizer.encode("The old fox and the crow, who lived near the river,"));
    prompts.push_back(tokenizer.encode("Pip"));
  }
  const auto told = greedy(context, prompts, most);
  return model->tokenizer().decode(told[telling.in_company ? 1 : 0]);
}

TEST(GreedyText, TheBundledModelTellsItsFable) {
  const std::string expected =
      contents(std::filesystem::path(HEDDLE_SOURCE_DIR) / "models/fable-1m.greedy.txt");
  const auto model = llm::Model::bundled();
  const Prompt prompt = model->tokenizer().encode("Once upon a time");
  for (const Telling& telling : all_tellings()) {
    const std::string text = tell(model, prompt, telling, 400);
    ASSERT_EQ(text, expected.substr(0, expected.find_last_not_of('\n') + 1)) << to_string(telling);
  }
}

TEST(GreedyText, EveryKvTypeTellsTheFable) {
  const std::string expected =
      contents(std::filesystem::path(HEDDLE_SOURCE_DIR) / "models/fable-1m.greedy.txt");
  const auto model = llm::Model::bundled();
  const Prompt prompt = model->tokenizer().encode("Once upon a time");
  for (const DType kv_type : {DType::f32, DType::f16, DType::q8_0}) {
    if (kv_type == DType::q8_0 && model->config().n_embd_head % 32 != 0) continue;
    for (const bool lazy : {false, true}) {
      const Telling telling{.lazy = lazy, .threads = 2, .in_company = true, .kv_type = kv_type};
      const std::string text = tell(model, prompt, telling, 400);
      EXPECT_EQ(text, expected.substr(0, expected.find_last_not_of('\n') + 1))
          << to_string(telling);
    }
  }
}

TEST(GreedyText, Stories260K) {
  HEDDLE_SHARED_FILE(file, "models/stories260K.gguf");
  HEDDLE_SHARED_FILE(text_file, "models/stories260K.greedy.txt");
  const std::string expected = contents(text_file);
  const auto model = llm::Model::open(file);
  const Prompt prompt{model->tokenizer().bos().value()};
  for (const Telling& telling : all_tellings()) {
    const std::string text = tell(model, prompt, telling, 257);
    ASSERT_EQ(text, expected.substr(0, expected.find_last_not_of('\n') + 1)) << to_string(telling);
  }
}

}  // namespace
}  // namespace heddle::test
